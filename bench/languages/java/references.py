"""Definitions in other files that a Java file refers to: the types it imports; of a package those that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, dirname

from ctxbench.bench.languages.base import DefinitionName
from ctxbench.bench.languages.java.facts import JavaImport
from ctxbench.bench.languages.java.uses import analyse

_WORD = re.compile(r"\w+")


def referred(path: str, texts: Mapping[str, str]) -> Iterator[DefinitionName]:
    """Yield the imported types; see `bench.languages.base.Language.referred`."""
    words = frozenset(_WORD.findall(texts[path]))
    for item in analyse(path, texts[path]).imports:
        owner = item.name.rpartition(".")[0] if item.static and not item.wildcard else item.name
        types = list(_types(owner, texts))
        yield from types
        if item.wildcard and not item.static and not types:
            yield from (named for named in _package(item, texts) if named.name in words)


def _types(owner: str, paths: Iterable[str]) -> Iterator[DefinitionName]:
    """Yield a qualified type in each file that may hold it, as the type that the file is named for or inside that."""
    parts = owner.split(".")
    for length in range(len(parts), 0, -1):
        ending = "/".join(parts[:length]) + ".java"
        matches = [path for path in paths if path == ending or path.endswith("/" + ending)]
        if matches:
            yield from (DefinitionName(path, "class", ".".join(parts[length - 1 :])) for path in matches)
            return


def _package(item: JavaImport, paths: Iterable[str]) -> Iterator[DefinitionName]:
    folder = item.name.replace(".", "/")
    for path in paths:
        if dirname(path) == folder or dirname(path).endswith("/" + folder):
            yield DefinitionName(path, "class", basename(path).removesuffix(".java"))

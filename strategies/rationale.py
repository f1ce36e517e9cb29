"""RepoFuse's rationale context: the definitions in other files that the target file refers to, by static analysis.

RepoFuse asks Jedi, which infers types and reads files from the disk. Here names in the shown text are resolved
through the imports in it, and no type is inferred: ``store.load`` is resolved only where ``store`` is a module or
a class. Only definitions one step away are returned, not what they refer to in turn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tree_sitter import Node

from ctxbench.bench.languages.base import DefinitionName, Language
from ctxbench.bench.languages.outline import Outline
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines

_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})


def rationale(query: Query, repo: Repository) -> list[ExternalDefinition]:
    """Return the definitions in other files that the shown part of the target file refers to, each once.

    Python: what is imported, called, instantiated, inherited from or otherwise named, and the methods of imported
    base classes that the method around the cursor overrides. Functions come whole, classes and modules as stubs;
    variables are left out. Java: the imported types, as stubs; of a package those that the file names.
    """
    sources = Sources(repo)
    names = repo.language.referred(query.path, query.cursor.line, _Texts(repo))
    others = (sources.definition(name) for name in names if name.path != query.path)
    return list(dict.fromkeys(other for other in others if other is not None and other.text.strip()))


class _Texts(Mapping[str, str]):
    """The files of a repository, each read when it is asked for."""

    def __init__(self, repo: Repository) -> None:
        self._read, self._paths = repo.read, dict.fromkeys(repo.files())

    def __getitem__(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        return self._read(path)

    def __contains__(self, path: object) -> bool:
        return path in self._paths

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalDefinition:
    """One definition in another file."""

    place: Place
    text: str
    stub: bool
    """Whether it is a class or a module with its bodies left out; a function is whole."""


class Sources:
    """The definitions in a repository's files; each file is read once."""

    def __init__(self, repo: Repository) -> None:
        """Look things up in `repo`."""
        self._repo = repo
        self.outline = cache(self._outline)

    def _outline(self, path: str) -> Outline:
        return self._repo.language.outline(self._repo.read(path))

    def definition(self, name: DefinitionName) -> ExternalDefinition | None:
        """Return what a name stands for; None if its file has no such definition."""
        if name.kind == "module":
            return self.module(name.path)
        return (self.type if name.kind == "class" else self.function)(name.path, name.name)

    def module(self, path: str) -> ExternalDefinition:
        """Return a whole file."""
        text = self._repo.read(path)
        place = Place(path=path, start=0, end=len(split_lines(text)))
        return ExternalDefinition(place=place, text=stub(text, self._repo.language), stub=True)

    def type(self, path: str, name: str) -> ExternalDefinition | None:
        """Return a type by its name, or the name of one inside (``Outer.Inner``)."""
        types = self.outline(path).types
        type_outline = next((inner for inner in types if inner.name == name.rpartition(".")[2]), None)
        if type_outline is None:
            return None
        text = self._lines(path, type_outline.lines)
        place = Place(path=path, start=type_outline.lines[0], end=type_outline.lines[1])
        return ExternalDefinition(place=place, text=stub(textwrap.dedent(text), self._repo.language), stub=True)

    def function(self, path: str, name: str) -> ExternalDefinition | None:
        """Return a function by its name with the classes around it."""
        functions = (function for function in self.outline(path).functions if not function.inside)
        function = next((function for function in functions if function.qualified == name), None)
        if function is None:
            return None
        place = Place(path=path, start=function.lines[0], end=function.lines[1])
        return ExternalDefinition(place=place, text=self._lines(path, function.lines), stub=False)

    def _lines(self, path: str, lines: tuple[int, int]) -> str:
        return "\n".join(self._repo.read(path).split("\n")[slice(*lines)])


def stub(text: str, language: Language) -> str:
    """Return a class or a file as a stub, without blank lines.

    Of a broken definition as much is taken as the parser understands.
    """
    source = Source(text, language)
    pieces, end = [], 0
    for start, stop, instead in _cuts(source.root, language):
        pieces += [source.data[end:start], instead]
        end = stop
    stubbed = b"".join([*pieces, source.data[end:]]).decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in stubbed.split("\n") if line.strip())


def _cuts(root: Node, language: Language) -> list[tuple[int, int, bytes]]:
    """Return the stretches of bytes to replace, in order, and what takes their place."""
    body = b"..." if language.indented else b"{ ... }"
    cuts, stack = [], [root]
    while stack:
        node = stack.pop()
        inner = node.child_by_field_name("body") if node.type in language.function_nodes else None
        if node.type in _COMMENTS:
            cuts.append((node.start_byte, node.end_byte, b""))
        elif inner is not None:
            cuts.append((inner.start_byte, inner.end_byte, body))
        stack.extend(child for child in node.children if child != inner)
    return sorted(cuts)

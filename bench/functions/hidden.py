"""Which files of a repository are its tests: no strategy sees them, and no sample is made of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from posixpath import basename, dirname

from ctxbench.bench.repository import is_hidden

_FOLDERS = frozenset({"test", "tests", "testdata"})
_FILE = re.compile(r"(test_.*|.*_tests?|tests?|conftest)\.py|(Test.+|.+(Tests?|TestCase|IT))\.java")


def test_places(paths: Iterable[str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the test files and test folders (ended by ``/``) among `paths`, sorted, none inside another.

    Args:
        paths: every file, POSIX and relative to the repository.
        named: where the manifest says that tests are; taken for test places only if they are called so,
            for a project's tests may lie among its sources.
    """
    places: set[str] = set()
    for path in paths:
        folder = _outermost(path)
        if folder:
            places.add(folder)
        elif _FILE.fullmatch(basename(path)) or path in named:
            places.add(path)
    return tuple(sorted(place for place in places if not is_hidden(place, sorted(places - {place}))))


def _outermost(path: str) -> str:
    """Return the outermost folder of a path that is called as tests are, ended by ``/``; empty if none is."""
    parts = dirname(path).split("/")
    for number, part in enumerate(parts):
        if part.lower() in _FOLDERS:
            return "/".join(parts[: number + 1]) + "/"
    return ""

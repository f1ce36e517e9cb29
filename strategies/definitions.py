"""Definitions in the files of a repository, as context: functions whole, classes and modules as stubs."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cache

from ctxbench.bench.languages.base import Outline
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.stubs import stub


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

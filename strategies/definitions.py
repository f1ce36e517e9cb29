"""Definitions in the files of a repository, as context: functions whole, classes and modules as stubs."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cache

from ctxbench.bench.languages.outline import Outline, outline
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.stubs import stub


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One definition in another file."""

    place: Place
    text: str
    stub: bool
    """Whether it is a class or a module with its bodies left out; a function is whole."""


class Sources:
    """Files of the repository and what stands in them, read once each."""

    def __init__(self, repo: Repository) -> None:
        """Look things up in `repo`."""
        self._repo = repo
        self.outline = cache(self._outline)

    def _outline(self, path: str) -> Outline:
        return outline(self._repo.read(path), self._repo.language)

    def module(self, path: str) -> Definition:
        """Return a whole file."""
        text = self._repo.read(path)
        place = Place(path=path, start=0, end=len(split_lines(text)))
        return Definition(place=place, text=stub(text, self._repo.language), stub=True)

    def type(self, path: str, name: str) -> Definition | None:
        """Return a type by its name, or the name of one inside (``Outer.Inner``)."""
        found = next((one for one in self.outline(path).types if one.name == name.rpartition(".")[2]), None)
        if found is None:
            return None
        text = self._lines(path, found.lines)
        place = Place(path=path, start=found.lines[0], end=found.lines[1])
        return Definition(place=place, text=stub(textwrap.dedent(text), self._repo.language), stub=True)

    def function(self, path: str, name: str) -> Definition | None:
        """Return a function by its name with the classes around it."""
        named = (one for one in self.outline(path).functions if one.qualified == name and not one.inside)
        found = next(named, None)
        if found is None:
            return None
        place = Place(path=path, start=found.lines[0], end=found.lines[1])
        return Definition(place=place, text=self._lines(path, found.lines), stub=False)

    def _lines(self, path: str, lines: tuple[int, int]) -> str:
        return "\n".join(self._repo.read(path).split("\n")[slice(*lines)])

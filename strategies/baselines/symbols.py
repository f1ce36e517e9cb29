"""The symbols of a repository, looked up by name, with the line that imports each. Python."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ctxbench.bench.languages.base import Function
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place
from ctxbench.strategies.api import Block, BlockKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A function, a method or a class."""

    name: str
    header: str
    """Its declaration, dedented, the colon left out; of a method with its class above it."""
    imports: str
    """The line that brings it, or its class, into the target file; empty for what stands there."""
    place: Place

    @property
    def text(self) -> str:
        """The line that imports it, if it takes one, and its declaration."""
        return "\n".join(part for part in (self.imports, self.header) if part)

    def block(self) -> Block:
        """Return it as a block of signatures."""
        return Block(kind=BlockKind.API, text=f"{self.text}\n", places=(self.place,))


class Symbols:
    """Looks up symbols in what a view shows."""

    def __init__(self, repo: Repository, path: str, encoder: str) -> None:
        """Prepare.

        Args:
            repo: the repository.
            path: the target file.
            encoder: finds symbols where no name is equal.
        """
        self._repo, self._path, self._encoder = repo, path, encoder
        self._modules: ModuleIndex | None = None

    def find(self, name: str, line: str, most: int = 5) -> tuple[Symbol, ...]:
        """Return the symbols of that very name, else the functions most like the line that uses it.

        Args:
            name: bare.
            line: of code.
            most: how many at most.
        """
        exact_matches = tuple(self._named(name))
        return (exact_matches or tuple(self._like(f"{name}\n{line}", most)))[:most]

    def _named(self, name: str) -> Iterator[Symbol]:
        word = re.compile(rf"^[ \t]*(?:(?:async[ \t]+)?def|class)[ \t]+{re.escape(name)}\b", re.M)
        for path in self._repo.files():
            text = self._repo.read(path)
            if not word.search(text):
                continue
            file_outline = PYTHON.outline(text)
            for type_outline in file_outline.types:
                if type_outline.name == name:
                    place = Place(path=path, start=type_outline.lines[0], end=type_outline.lines[1])
                    yield Symbol(name=name, header=type_outline.header, imports=self._import(path, name), place=place)
            functions = (function for function in file_outline.functions if function.name == name)
            yield from self._functions(path, (function for function in functions if not function.inside))

    def _functions(self, path: str, functions: Iterable[Function]) -> Iterator[Symbol]:
        for function in functions:
            # A class inside a class is reached through the outermost.
            owner = function.types[0].name if function.types else function.name
            above = "".join(f"{kind.header}:\n    " for kind in function.types[-1:])
            place = Place(path=path, start=function.lines[0], end=function.lines[1])
            header = f"{above}{' '.join(function.header.split())}"
            yield Symbol(name=function.qualified, header=header, imports=self._import(path, owner), place=place)

    def _like(self, text: str, most: int) -> Iterator[Symbol]:
        for hit in self._repo.search(text, unit="function", ranker=self._encoder, top=most):
            functions = PYTHON.outline(textwrap.dedent(hit.text)).functions
            if functions:
                *owners, _ = hit.name.split(".")
                header = " ".join(functions[0].header.split())
                header = f"class {owners[-1]}:\n    {header}" if owners else header
                imports = self._import(hit.place.path, owners[0] if owners else hit.name)
                yield Symbol(name=hit.name, header=header, imports=imports, place=hit.place)

    def _import(self, path: str, name: str) -> str:
        return "" if path == self._path else f"from {self.module(path)} import {name}"

    def module(self, path: str) -> str:
        """Return the dotted name of a file's module."""
        if self._modules is None:
            self._modules = ModuleIndex(self._repo.files(), ())
        return self._modules.name(path)

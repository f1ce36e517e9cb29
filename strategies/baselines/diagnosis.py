"""Check a drafted function statically in its file and its project (CoCoGen's compiler feedback).

The release runs pylint on a file beside the original. Here pyflakes reads the text, and members of the project's
modules and classes are looked up by a language's `ProjectNames`: no file is written and nothing is imported. The
reference is never looked at. `Symbols` finds what a wrong name may mean.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ctxbench.bench.languages.base import ProjectNames
from ctxbench.bench.languages.outline import Function
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.strategies.api import Block, BlockKind
from ctxbench.strategies.drafts import DraftedFile, bare_name


class Category(StrEnum):
    """The kind of a fault, which decides what the prompt says of it; the names are pylint's."""

    SYNTAX = "syntax-error"
    UNDEFINED = "undefined-variable"
    MEMBER = "no-member"
    REDEFINED = "function-redefined"
    OTHER = "other"
    """The prompt gives the checker's message only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftFault:
    """One thing that the checker found in the function."""

    category: Category
    line: int
    """In the file, 0-based."""
    name: str
    """The name at fault, as spelled (``rules.round_up``); empty where there is none."""
    message: str


_CATEGORIES = {
    "UndefinedName": Category.UNDEFINED,
    "UndefinedLocal": Category.UNDEFINED,
    "RedefinedWhileUnused": Category.REDEFINED,
    **dict.fromkeys(
        (
            "DuplicateArgument",
            "ReturnOutsideFunction",
            "YieldOutsideFunction",
            "ContinueOutsideLoop",
            "BreakOutsideLoop",
            "DefaultExceptNotLast",
            "TwoStarredExpressions",
            "TooManyExpressionsInStarredAssignment",
            "StringDotFormatMissingArgument",
            "StringDotFormatInvalidFormat",
            "PercentFormatMissingArgument",
            "PercentFormatInvalidFormat",
            "PercentFormatPositionalCountMismatch",
            "RaiseNotImplemented",
        ),
        Category.OTHER,
    ),
}
"""Messages of pyflakes that pylint would call errors; its others (unused names, style) are not taken."""


class RepositoryFiles(Mapping[str, str]):
    """The files of a repository as a mapping; each is read when it is first asked for."""

    def __init__(self, repo: Repository) -> None:
        """Use what the view shows."""
        self._repo, self._paths = repo, dict.fromkeys(repo.files())

    def __getitem__(self, path: str) -> str:
        """Return a file's text."""
        if path not in self._paths:
            raise KeyError(path)
        return self._repo.read(path)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the paths, sorted."""
        return iter(self._paths)

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._paths)


class Checker:
    """Checks drafts for one query; the project's names are looked up when a draft first parses."""

    def __init__(self, query: Query, repo: Repository) -> None:
        """Prepare."""
        self._query, self._repo = query, repo
        self._project: ProjectNames | None = None

    def faults(self, draft: DraftedFile) -> tuple[DraftFault, ...]:
        """Return what is wrong with the function, by line; nothing where its file cannot be read around it."""
        error = _syntax_error("\n".join(PYTHON.shift(draft.function.split("\n"), "")))
        if error is not None:
            line = draft.start + max(0, (error.lineno or 1) - 1)
            message = f"{error.msg}"
            return (DraftFault(category=Category.SYNTAX, line=min(line, draft.end - 1), name="", message=message),)
        tree = _parsed(draft.text)
        if isinstance(tree, SyntaxError):
            return ()
        faults = [*self._messages(tree, draft), *self._members(draft)]
        first_faults: dict[tuple[int, str], DraftFault] = {}
        for fault in sorted(faults, key=lambda fault: (fault.line, list(Category).index(fault.category))):
            first_faults.setdefault((fault.line, fault.name.partition(".")[0]), fault)
        return tuple(first_faults.values())

    def _messages(self, tree: ast.Module, draft: DraftedFile) -> Iterator[DraftFault]:
        """Yield pyflakes's messages about the function's lines."""
        from pyflakes.checker import Checker as Pyflakes  # type: ignore[import-untyped]  # noqa: PLC0415

        messages: Iterable[object] = Pyflakes(tree, filename=self._query.path).messages
        for message in messages:
            category = _CATEGORIES.get(type(message).__name__)
            line = int(getattr(message, "lineno", 0)) - 1
            arguments: tuple[object, ...] = getattr(message, "message_args", ())
            if category is None or not draft.start <= line < draft.end:
                continue
            name = str(arguments[0]) if arguments and category is not Category.OTHER else ""
            if category is Category.REDEFINED and name == bare_name(self._query.name or ""):
                continue  # that the file defines it twice is the file's own doing
            text = str(getattr(message, "message", "")) % arguments
            yield DraftFault(category=category, line=line, name=name, message=text)

    def _members(self, draft: DraftedFile) -> Iterator[DraftFault]:
        """Yield the names of the project that the function reads and the project does not define."""
        if self._project is None:
            self._project = PYTHON.project(RepositoryFiles(self._repo))
        for reading in self._project.readings(self._query.path, draft.text):
            if not reading.known and draft.start <= reading.line < draft.end:
                owner, _, member = reading.name.rpartition(".")
                message = f"{owner or 'the project'} has no member {member!r}"
                yield DraftFault(category=Category.MEMBER, line=reading.line, name=reading.name, message=message)


def _syntax_error(text: str) -> SyntaxError | None:
    parsed = _parsed(text)
    return parsed if isinstance(parsed, SyntaxError) else None


def _parsed(text: str) -> ast.Module | SyntaxError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))


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
        """Look things up for a target file; `encoder` finds symbols where no name is equal."""
        self._repo, self._path, self._encoder = repo, path, encoder
        self._modules: ModuleIndex | None = None

    def find(self, name: str, line: str, most: int = 5) -> tuple[Symbol, ...]:
        """Return at most `most` symbols of that bare name, or else the functions most like the line that uses it."""
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

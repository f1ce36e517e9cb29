"""Check a drafted function statically in its file and its project (CoCoGen's compiler feedback).

The release runs pylint on a file beside the original. Here pyflakes reads the text, and members of the project's
modules and classes are looked up by `bench.languages.members`: no file is written and nothing is imported. The
reference is never looked at.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ctxbench.bench.languages.base import ProjectNames
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query
from ctxbench.strategies.baselines.answer import DraftedFile
from ctxbench.strategies.icl.source import bare


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
        error = _syntax_error(textwrap.dedent(draft.function))
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
            if category is Category.REDEFINED and name == bare(self._query.name or ""):
                continue  # that the file defines it twice is the file's own doing
            text = str(getattr(message, "message", "")) % arguments
            yield DraftFault(category=category, line=line, name=name, message=text)

    def _members(self, draft: DraftedFile) -> Iterator[DraftFault]:
        """Yield the names of the project that the function reads and the project does not define."""
        if self._project is None:
            self._project = self._query.language.project(RepositoryFiles(self._repo))
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

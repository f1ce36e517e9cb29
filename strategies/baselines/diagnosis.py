"""What a static checker says of a drafted function, in its file and its project (CoCoGen's compiler feedback).

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

from ctxbench.bench.languages.members import ProjectNames, project
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query
from ctxbench.strategies.baselines.answer import Placed
from ctxbench.strategies.icl.source import bare


class Category(StrEnum):
    """What is done about a fault; the names are pylint's."""

    SYNTAX = "syntax-error"
    UNDEFINED = "undefined-variable"
    MEMBER = "no-member"
    REDEFINED = "function-redefined"
    OTHER = "other"
    """Only the checker's message is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
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


class Files(Mapping[str, str]):
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

    def faults(self, draft: Placed) -> tuple[Fault, ...]:
        """Return what is wrong with the function, by line; nothing where its file cannot be read around it."""
        error = _syntax_error(textwrap.dedent(draft.function))
        if error is not None:
            line = draft.start + max(0, (error.lineno or 1) - 1)
            message = f"{error.msg}"
            return (Fault(category=Category.SYNTAX, line=min(line, draft.end - 1), name="", message=message),)
        tree = _parsed(draft.text)
        if isinstance(tree, SyntaxError):
            return ()
        found = [*self._named(tree, draft), *self._members(draft)]
        seen: dict[tuple[int, str], Fault] = {}
        for fault in sorted(found, key=lambda one: (one.line, list(Category).index(one.category))):
            seen.setdefault((fault.line, fault.name.partition(".")[0]), fault)
        return tuple(seen.values())

    def _named(self, tree: ast.Module, draft: Placed) -> Iterator[Fault]:
        """Give what pyflakes says of the function's lines."""
        from pyflakes.checker import Checker as Pyflakes  # type: ignore[import-untyped]  # noqa: PLC0415

        messages: Iterable[object] = Pyflakes(tree, filename=self._query.path).messages
        for one in messages:
            category = _CATEGORIES.get(type(one).__name__)
            line = int(getattr(one, "lineno", 0)) - 1
            arguments: tuple[object, ...] = getattr(one, "message_args", ())
            if category is None or not draft.start <= line < draft.end:
                continue
            name = str(arguments[0]) if arguments and category is not Category.OTHER else ""
            if category is Category.REDEFINED and name == bare(self._query.name or ""):
                continue  # that the file defines it twice is the file's own doing
            message = str(getattr(one, "message", "")) % arguments
            yield Fault(category=category, line=line, name=name, message=message)

    def _members(self, draft: Placed) -> Iterator[Fault]:
        """Give the names of the project that the function reads and the project does not define."""
        if self._project is None:
            self._project = project(self._query.language, Files(self._repo))
        for one in self._project.readings(self._query.path, draft.text):
            if not one.known and draft.start <= one.line < draft.end:
                owner, _, member = one.name.rpartition(".")
                message = f"{owner or 'the project'} has no member {member!r}"
                yield Fault(category=Category.MEMBER, line=one.line, name=one.name, message=message)


def _syntax_error(text: str) -> SyntaxError | None:
    found = _parsed(text)
    return found if isinstance(found, SyntaxError) else None


def _parsed(text: str) -> ast.Module | SyntaxError:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except SyntaxError as error:
            return error
        except (ValueError, RecursionError, MemoryError) as error:
            return SyntaxError(str(error))

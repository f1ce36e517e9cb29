"""The basic types of the benchmark: samples, references and queries.

Lines and columns are 0-based, ends exclusive. Columns count characters. Paths are POSIX, relative to the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

from ctxbench.bench.languages.base import Language


class Kind(StrEnum):
    """Kind of code that a sample asks the model to write."""

    LINE = "line"
    """The rest of a line or statement, or the next line."""
    FUNCTION = "function"
    """A whole function, given its signature and docstring."""


SINGLE_LINE = "single-line"
NEXT_LINE = "next-line"
VERSION_MARK = "@"
"""Separator between a repository's name and revision: ``owner__name@revision``."""


def project_of(repo: str) -> str:
    """Return a repository's name without its revision. All revisions of a project form one cluster in statistics."""
    return repo.partition(VERSION_MARK)[0]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """Whole lines of one file. In a function sample's target file, line numbers skip the body to write."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A position in the original file."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A project-internal name that the reference uses. Strategies never receive the list of these names."""

    name: str
    """Name as bound in the file, followed by the members reached through it: ``Cart``, ``price_rules.round_up``."""
    module: str
    """Module (Python, dotted) or class (Java, qualified) that defines the name; empty if unknown."""
    kind: str
    """Kind of the name: ``module``, ``class``, ``function``, ``variable`` or ``unknown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnippet:
    """Code from the repository that the benchmark's authors stored with a sample."""

    path: str
    text: str
    score: float | None = None
    """The benchmark's retrieval score; None if the benchmark states none."""
    name: str = ""
    """The name that the code defines, or the code's relation to the sample; empty if not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """Context that a benchmark's authors retrieved for a sample and stored with it."""

    name: str
    """Name that distinguishes a sample's contexts, e.g. ``rg1_bm25`` or ``definition``."""
    text: str = ""
    """Text as the authors rendered it; empty if the authors store only snippets."""
    snippets: tuple[StoredSnippet, ...] = ()
    oracle: bool = False
    """Whether the answer was used to retrieve this context. Queries contain no such context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The part of a sample that a strategy receives. It contains neither the reference nor the tests."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    repo: str
    path: str
    cursor: Cursor
    prefix: str
    """Text of the target file before the cursor; masked import lines are blank. Some benchmarks store only its end."""
    suffix: str | None = None
    """For functions, the file after the body. None for lines: strategies see nothing after the cursor."""
    context_start: int = 0
    """Line of the target file at which the benchmark's own prompt starts; 0 for ctxbench's own samples."""
    seed: int = 0
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    stored: tuple[StoredContext, ...] = ()
    """Contexts that the benchmark's authors retrieved without the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample without its reference (a line of ``samples.jsonl``). Strategies receive only its `query`."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    """``single-line``, ``next-line`` or ``statement``; for functions the CoderEval level."""
    repo: str
    path: str
    cursor: Cursor
    """Start of the answer; for functions, of the body after signature and docstring."""
    masked: tuple[tuple[int, int], ...] = ()
    """Line spans ``[start, end)`` that strategies see blank."""
    prefix: str
    suffix: str | None = None
    uses: tuple[Use, ...] = ()
    context_start: int = 0
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    span: tuple[int, int] | None = None
    """Lines ``[start, end)`` that a completion replaces: the function without decorators. None for line samples."""
    hidden: tuple[str, ...] = ()
    """Files and folders (with a final ``/``) hidden from strategies: tests, and copies of the answer."""
    stored: tuple[StoredContext, ...] = ()
    dated: date | None = None
    """Day in UTC on which the line was written; None if unknown (see `bench.dates.dates_of`)."""

    @property
    def tested(self) -> bool:
        """Whether tests judge the completions. Lines are only compared as text."""
        return self.kind is Kind.FUNCTION

    @property
    def first_line(self) -> int:
        """Number of the line at which `prefix` starts; 0 if `prefix` is the whole file up to the cursor."""
        return self.cursor.line - self.prefix.count("\n")

    @property
    def stored_prompt(self) -> str:
        """The end of `prefix` that the benchmark's own prompt shows: from line `context_start` to the cursor."""
        return "\n".join(self.prefix.split("\n")[max(0, self.context_start - self.first_line) :])

    def query(self, *, seed: int = 0) -> Query:
        """Return the part of the sample that a strategy may see."""
        return Query(
            id=self.id,
            benchmark=self.benchmark,
            language=self.language,
            kind=self.kind,
            subkind=self.subkind,
            repo=self.repo,
            path=self.path,
            cursor=self.cursor,
            prefix=self.prefix,
            suffix=self.suffix if self.kind is Kind.FUNCTION else None,
            context_start=self.context_start,
            seed=seed,
            name=self.name,
            signature=self.signature,
            docstring=self.docstring,
            stored=tuple(context for context in self.stored if not context.oracle),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A sample's reference and tests (a line of ``references.jsonl``). Strategies never see them."""

    id: str
    target: str
    """The repository's text at the cursor; for functions the whole function without decorators, dedented."""
    original_import: str | None = None
    tests: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    """The `tests` that read or wait for a clock. They may fail on a busy machine."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """JSON data of the benchmark's record that no other field contains."""

"""The nouns of the benchmark: samples, references and queries. Frozen data, no I/O.

Lines are 0-based with an exclusive end; columns are 0-based and count characters
(Unicode code points), not bytes. Paths are POSIX and relative to the repository's root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

from ctxbench.bench.languages.base import Language


class Kind(StrEnum):
    """The kind of completion that a sample asks for."""

    LINE = "line"
    """The rest of a line, or the next line."""
    FUNCTION = "function"
    """A whole function, from its signature and docstring."""


SINGLE_LINE = "single-line"
NEXT_LINE = "next-line"
VERSION_MARK = "@"
"""What follows it in a repository's name is a revision: ``owner__name@revision``."""
UNTESTED = "untested"
"""Subkind of functions of benchmarks that bring no tests: completions are compared as texts only."""


def project_of(repo: str) -> str:
    """Return a repository's name without its revision: revisions of one project are one cluster in every number."""
    return repo.partition(VERSION_MARK)[0]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A span of whole lines in one file."""

    path: str
    start: int
    """First line, 0-based."""
    end: int
    """Line after the last one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A position in the original file."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One project-internal name that the target needs. Never shown to a strategy."""

    name: str
    """The name as it is bound in the file, e.g. ``Cart`` or ``price_rules``."""
    module: str
    """Where it is defined: dotted module (Python) or qualified class (Java)."""
    kind: str
    """``module``, ``class``, ``function``, ``variable`` or ``unknown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnippet:
    """A piece of another file that a benchmark's own file brings with a sample."""

    path: str
    text: str
    score: float | None = None
    """As the benchmark's retriever gave it; None where it gives none."""
    name: str = ""
    """What it defines or why it is there, where the benchmark says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """Context that a benchmark's authors retrieved for a sample and store with it."""

    name: str
    """Which of several, e.g. ``rg1_bm25`` or ``definition``."""
    text: str = ""
    """As rendered by the authors, to the byte; empty where they store pieces only."""
    snippets: tuple[StoredSnippet, ...] = ()
    """The pieces, in the file's order."""
    oracle: bool = False
    """Whether it was retrieved with the answer: then no query holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The part of a sample that a strategy gets: no reference, no tests, and no answer in the file."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    repo: str
    path: str
    cursor: Cursor
    prefix: str
    """The target file up to the cursor, masked import lines blanked (their newlines stay)."""
    suffix: str | None = None
    """For functions the file after the body; None for lines, where nothing after the cursor is shown."""
    context_start: int = 0
    """First line that the prompt shows which the benchmark stored; 0 for samples built by ctxbench."""
    seed: int = 0
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    stored: tuple[StoredContext, ...] = ()
    """What the benchmark's authors retrieved; never that which was retrieved with the answer."""


def is_tested(kind: Any, subkind: Any) -> Any:
    """Return whether tests judge a sample, in operators that values, arrays and SQL columns share."""
    return (kind == Kind.FUNCTION) & (subkind != UNTESTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The public part of one sample (a line of ``samples.jsonl``); its answer is a `Reference`."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    """``single-line``, ``next-line`` or ``statement``; for functions the CoderEval level, or ``untested``."""
    repo: str
    path: str
    cursor: Cursor
    """Where the answer begins; for functions the body, after signature and docstring."""
    masked: tuple[tuple[int, int], ...] = ()
    """Line spans ``[start, end)`` that are blanked before anything reads the file."""
    prefix: str
    suffix: str | None = None
    """The file after the target; shown to no strategy for line samples."""
    uses: tuple[Use, ...] = ()
    context_start: int = 0
    """First line that the benchmark's stored prompt shows, at or after the one that `prefix` begins with."""
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    span: tuple[int, int] | None = None
    """Lines ``[start, end)`` of a function, its decorators left out: what a completion replaces."""
    hidden: tuple[str, ...] = ()
    """Files, and folders (ended by ``/``), that no strategy sees: the tests, and exact copies of the answer."""
    stored: tuple[StoredContext, ...] = ()
    dated: date | None = None
    """The day (UTC) on which its line was written, where its history tells; for others `bench.dates.dates_of`."""

    @property
    def tested(self) -> bool:
        """Whether tests judge its completions: those of lines are compared as texts, and so are some functions'."""
        return bool(is_tested(self.kind, self.subkind))

    @property
    def first_line(self) -> int:
        """The line of the file that `prefix` begins with: 0 where the whole file up to the cursor is there."""
        return self.cursor.line - self.prefix.count("\n")

    @property
    def stored_prompt(self) -> str:
        """The part of `prefix` that the benchmark's own prompt shows."""
        return "\n".join(self.prefix.split("\n")[max(0, self.context_start - self.first_line) :])

    def query(self, *, seed: int = 0) -> Query:
        """Return the part of this sample that a strategy may know."""
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
    """The answer to one sample (a line of ``references.jsonl``, which strategy code never opens)."""

    id: str
    target: str
    """What follows the cursor: rest of the line, or the whole next line with its indentation, or the rest of a
    statement, which may go over several lines. It ends in no newline unless the benchmark's own does.
    For functions the whole function without its decorators, dedented."""
    original_import: str | None = None
    """The text of the masked import lines, if any."""
    tests: tuple[str, ...] = ()
    """Ids of the tests that judge a completion."""
    clocks: tuple[str, ...] = ()
    """Those of `tests` that read a clock or wait by one, so that a busy machine may fail them."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Plain JSON data of the benchmark's own record that has no other place here, for exports; never shown."""

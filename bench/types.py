"""The basic types of the benchmark: samples, references and queries. Frozen data, no I/O.

Lines are 0-based with an exclusive end. Columns are 0-based and count characters (Unicode code points), not bytes.
Paths are POSIX and relative to the repository's root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Any

from ctxbench.bench.languages.base import Language


class Kind(StrEnum):
    """The kind of completion that a sample requires."""

    LINE = "line"
    """The rest of a line, or the next line."""
    FUNCTION = "function"
    """A whole function, from its signature and docstring."""


SINGLE_LINE = "single-line"
NEXT_LINE = "next-line"
VERSION_MARK = "@"
"""Separator between a repository's name and its revision: ``owner__name@revision``."""
UNTESTED = "untested"
"""Subkind of functions of benchmarks without tests. Their completions are only compared as texts."""


def project_of(repo: str) -> str:
    """Return a repository's name without its revision. All revisions of a project form one cluster in statistics."""
    return repo.partition(VERSION_MARK)[0]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """A span of whole lines in one file.

    In the file of a function sample, lines are numbered without the body, as in the sample's view.
    """

    path: str
    start: int
    """First line, 0-based."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A position in the original file."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A project-internal name that the target uses. Never shown to a strategy."""

    name: str
    """Name as bound in the file, e.g. ``Cart`` or ``price_rules``."""
    module: str
    """Defining module (Python, dotted) or class (Java, qualified)."""
    kind: str
    """``module``, ``class``, ``function``, ``variable`` or ``unknown``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnippet:
    """A piece of another file that the benchmark stores with a sample."""

    path: str
    text: str
    score: float | None = None
    """Score by the benchmark's retriever; None if the benchmark states no score."""
    name: str = ""
    """The name that the snippet defines, or its relation to the sample; empty if the benchmark states neither."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """Context that a benchmark's authors retrieved for a sample and stored with it."""

    name: str
    """Name among several contexts, e.g. ``rg1_bm25`` or ``definition``."""
    text: str = ""
    """The text as rendered by the authors; empty if they store only pieces."""
    snippets: tuple[StoredSnippet, ...] = ()
    oracle: bool = False
    """Whether the context was retrieved with the answer. No query contains such a context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The part of a sample that a strategy receives: no reference, no tests, and no answer in the file."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    repo: str
    path: str
    cursor: Cursor
    prefix: str
    """The target file up to the cursor. Masked import lines are blank; their newlines stay."""
    suffix: str | None = None
    """For functions, the file after the body. For lines None, since strategies see nothing after the cursor."""
    context_start: int = 0
    """First line that the benchmark's stored prompt shows; 0 for samples built by ctxbench."""
    seed: int = 0
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    stored: tuple[StoredContext, ...] = ()
    """Contexts that the benchmark's authors retrieved without the answer."""


def is_tested(kind: Any, subkind: Any) -> Any:
    """Return whether tests judge a sample. Accepts single values, arrays and SQL columns."""
    return (kind == Kind.FUNCTION) & (subkind != UNTESTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The public part of a sample (a line of ``samples.jsonl``). The answer is in a `Reference`."""

    id: str
    benchmark: str
    language: Language
    kind: Kind
    subkind: str
    """``single-line``, ``next-line`` or ``statement``; for functions the CoderEval level or ``untested``."""
    repo: str
    path: str
    cursor: Cursor
    """The start of the answer; for functions, the start of the body after signature and docstring."""
    masked: tuple[tuple[int, int], ...] = ()
    """Line spans ``[start, end)`` that are blanked in every view of the file."""
    prefix: str
    suffix: str | None = None
    """The file after the target. Never shown for line samples."""
    uses: tuple[Use, ...] = ()
    context_start: int = 0
    """First line that the benchmark's stored prompt shows; not before the first line of `prefix`."""
    name: str | None = None
    signature: str | None = None
    docstring: str | None = None
    span: tuple[int, int] | None = None
    """Lines ``[start, end)`` of a function without its decorators. A completion replaces them."""
    hidden: tuple[str, ...] = ()
    """Files and folders (ending with ``/``) hidden from strategies: the tests, and exact copies of the answer."""
    stored: tuple[StoredContext, ...] = ()
    dated: date | None = None
    """Day (UTC) on which the line was written, if its history is known. See also `bench.dates.dates_of`."""

    @property
    def tested(self) -> bool:
        """Whether tests judge the completions. Lines and some functions are only compared as texts."""
        return bool(is_tested(self.kind, self.subkind))

    @property
    def first_line(self) -> int:
        """Number of the first line of `prefix` in the file; 0 if `prefix` is the whole file up to the cursor."""
        return self.cursor.line - self.prefix.count("\n")

    @property
    def stored_prompt(self) -> str:
        """The part of `prefix` that the benchmark's own prompt shows."""
        return "\n".join(self.prefix.split("\n")[max(0, self.context_start - self.first_line) :])

    def query(self, *, seed: int = 0) -> Query:
        """Return the part of this sample that a strategy may see."""
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
    """The text after the cursor: the rest of the line, the whole next line with its indentation, or the rest of a
    statement, perhaps over several lines. The text ends without a newline, unless the benchmark's own answer has one.
    For functions, the whole function without its decorators, dedented."""
    original_import: str | None = None
    tests: tuple[str, ...] = ()
    clocks: tuple[str, ...] = ()
    """The `tests` that read a clock or wait for one. They may fail on a busy machine."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """JSON data of the benchmark's own record that no other field contains, for exports. Never shown."""

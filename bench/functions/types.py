"""Functions that may become samples. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ctxbench.bench.types import Cursor, Use


class Level(StrEnum):
    """What a function needs, from nothing to the project: CoderEval's six levels, from low to high.

    A function has the highest level of what its body uses.
    """

    SELF_CONTAINED = "self_contained"
    SLIB = "slib_runnable"
    PLIB = "plib_runnable"
    CLASS = "class_runnable"
    FILE = "file_runnable"
    PROJECT = "project_runnable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A documented function that tests cover. Lines are 0-based, ends exclusive."""

    path: str
    name: str
    """Within its file: ``function`` or ``Class.method``; overloads have their parameter types added."""
    signature: str
    docstring: str
    start: int
    """Line of its declaration, decorators and annotations left out."""
    cursor: Cursor
    """Where the body begins."""
    end: int
    tail: Cursor | None = None
    """Where the body ends, if something of the function follows it: a closing brace. None: at `end`."""
    level: Level
    uses: tuple[Use, ...] = ()
    """Names of the project that the body needs."""
    tests: tuple[str, ...]
    """The tests that judge it if nothing speaks for others, few and fast; the best judges first."""
    others: tuple[str, ...] = ()
    """More tests that run it, or whose import does, in the order in which they are worth a try."""
    at_import: bool = False
    """Whether no test runs it, only what is imported before the tests."""
    clocks: frozenset[str] = frozenset()
    """Those of all these tests that read a clock."""
    seconds: float
    """Processor time that they took together when the suite was run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a language found in a repository; equal for equal repositories, whatever the machine."""

    candidates: tuple[Candidate, ...]
    """By path and line; names unique within a path."""
    hidden: tuple[str, ...]
    """Test files, and folders (ended by ``/``), that no strategy may see."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """At least ``functions``, ``documented`` and ``covered``."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Reason -> documented functions that are no candidates."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Test that failed -> the last line of why; empty where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a function stands, documented or not. Lines are 0-based, ends exclusive."""

    path: str
    name: str
    """Within its file, as a `Candidate`'s."""
    start: int
    """Line of its declaration."""
    cursor: Cursor
    """Where its body begins."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a repository's suite runs of any function."""

    hidden: tuple[str, ...]
    """Test files, and folders (ended by ``/``), that no strategy may see."""
    runs: Mapping[str, TestRun]
    """Test -> what is known of it."""
    covering: Callable[[Spot], Mapping[str, frozenset[int]]]
    """Gives the tests that run a function's body, whatever became of them, and what of it they run."""
    uses: Callable[[Spot], tuple[Use, ...]]
    """Gives the names of the project that a function's body needs."""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestRun:
    """What is known of one test of the suite."""

    __test__ = False  # pytest would take the class for a test case by its name

    passed: bool
    seconds: float
    """Of processor time."""
    breadth: int
    """Lines of the project's sources that it runs: the fewer, the more it is about its subject."""
    clock: bool = False
    """Whether it reads a clock or waits by one, so that a busy machine may fail it."""

"""Functions that may become samples. Frozen data, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Mutants:
    """What became of faulty versions of functions that no choice of tests was made by."""

    tried: int = 0
    killed: int = 0
    """By the tests that were chosen."""
    killed_by_all: int = 0
    """By these or by others that run the function."""

    def __add__(self, other: Mutants) -> Mutants:
        """Return both together."""
        return Mutants(self.tried + other.tried, self.killed + other.killed, self.killed_by_all + other.killed_by_all)


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a function sample was certified with."""

    tests: tuple[str, ...]
    """The tests that judge it, sorted."""
    mutants: Mutants | None
    """None where nothing was tried: certificates of earlier versions."""
    clocks_only: bool = False
    """Whether each of these tests reads a clock."""

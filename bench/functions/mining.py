"""The seam between mining and a language: what a language is given, and what it finds. No I/O of its own.

`bench.functions.python` and `bench.functions.java` are miners: modules with the functions of `Miner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ctxbench.bench.functions.choose import TestRun
from ctxbench.bench.functions.types import Candidate
from ctxbench.bench.home import Home
from ctxbench.bench.manifest_types import RepoManifest
from ctxbench.bench.snapshot import Snapshot
from ctxbench.bench.testing.types import Suite
from ctxbench.bench.types import Cursor, Use
from ctxbench.sandbox.types import Sandbox

Report = Callable[[str], None]
Lock = Callable[[Sequence[str], str], tuple[str, ...]]
"""Resolves requirements, and what they and a project (``name==version`` or empty) require, to one version each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A fetched repository that function samples are mined from."""

    manifest: RepoManifest
    """Its `tests` are there: a repository without them is refused before."""
    root: Path
    """The read-only folder that holds its files."""
    snapshot: Snapshot
    """Its source files, as text; lines of samples count in these."""
    home: Home
    lock: Lock


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


class Miner(Protocol):
    """What a language brings to mining."""

    def tests(self, project: Project, report: Report) -> dict[str, Any]:
        """Return what `bench.testing.suites.suite_of` needs, as a JSON object for the set's manifest.

        May use the network, by `project.lock`.

        Raises:
            InputFault: if the repository's ``[tests]`` cannot be used.
            SandboxError: if a requirement cannot be had.
        """
        ...

    def find(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
        """Return the documented functions that passing tests cover.

        Args:
            project: the repository.
            suite: what `suite_of` makes of `tests`.
            sandbox: where its tests may be run; nothing of the repository is run outside it.
            report: told what happens, a line at a time.

        Raises:
            InputFault: if its tests cannot be run.
            SandboxError: if the machine failed.
        """
        ...

    def survey(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Survey:
        """Run the suite once, as `find` does, for functions that are chosen by others; arguments and faults are its."""
        ...

    def lift(self, lines: list[str]) -> str:
        """Return a function's lines moved to the left margin, so that its `Suite` puts the same lines back."""
        ...

    def mutants(self, text: str, most: int) -> tuple[str, ...]:
        """Return faulty versions of a function, as a reference has it: the best first, always the same."""
        ...

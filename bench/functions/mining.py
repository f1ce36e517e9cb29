"""Prepare repositories for mining, and define what every language's miner returns.

`bench.functions.python` and `bench.functions.java` implement `Miner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import sandbox_explained
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import Suite
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Reference, Sample, Use
from ctxbench.sandbox.types import Sandbox

if TYPE_CHECKING:
    from ctxbench.bench.repositories.checkout import Checkout


class Level(StrEnum):
    """CoderEval's six levels of what a function depends on, from low to high."""

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
    """The name in its file: ``function`` or ``Class.method``; overloads add their parameter types."""
    signature: str
    docstring: str
    start: int
    """Line of the declaration, after decorators and annotations."""
    cursor: Cursor
    end: int
    tail: Cursor | None = None
    """End of the body before a closing brace; None: the body ends at `end`."""
    level: Level
    uses: tuple[Use, ...] = ()
    """Project names that the body uses."""
    tests: tuple[str, ...]
    """Few and fast tests that judge the function, best first."""
    others: tuple[str, ...] = ()
    """Further tests that run the function, directly or by import, most promising first."""
    at_import: bool = False
    """Whether only imports run the function, and no test does."""
    clocks: frozenset[str] = frozenset()
    """The tests in `tests` and `others` that read a clock."""
    seconds: float
    """Processor time of `tests` together, when the suite ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a miner found in a repository; the same on every machine."""

    candidates: tuple[Candidate, ...]
    """Sorted by path and line; names are unique within a path."""
    hidden: tuple[str, ...]
    """Test files and folders (ending with ``/``) that no strategy may see."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Includes ``functions``, ``documented`` and ``covered``."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of documented functions that are not candidates."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Failed test -> last line of the reason, or empty."""
    left_out: str = ""
    """Which tests are unusable, and how to repair their suite; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The location of a function, documented or not. Lines are 0-based, ends exclusive."""

    path: str
    name: str
    """The name in its file, as in `Candidate`."""
    start: int
    cursor: Cursor
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Which tests of a repository run a function, for any function."""

    hidden: tuple[str, ...]
    runs: Mapping[str, TestRun]
    covering: Callable[[Spot], Mapping[str, frozenset[int]]]
    """Returns test -> lines or blocks of the function's body that the test runs. Failed tests count too."""
    uses: Callable[[Spot], tuple[Use, ...]]
    """Returns the project names that a function's body uses."""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestRun:
    """The results of one test of the suite."""

    __test__ = False  # without this, pytest would collect the class as a test case

    passed: bool
    seconds: float
    breadth: int
    """Number of project lines that the test runs. A narrow test targets its subject."""
    clock: bool = False
    """Whether the test reads a clock or waits for one. Such a test may fail on a busy machine."""


Report = Callable[[str], None]
Lock = Callable[[Sequence[str], str], tuple[str, ...]]
"""Takes requirements and a project (``name==version`` or empty). Returns pinned versions of all dependencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A fetched repository to mine."""

    manifest: RepoManifest
    root: Path
    snapshot: Snapshot
    """The source files as text, which line numbers of samples refer to."""
    home: Home
    lock: Lock

    @property
    def tests(self) -> TestSuite:
        """The test suite.

        Raises:
            InputFault: if the manifest has no ``[tests]``.
        """
        if self.manifest.tests is None:
            raise InputFault("the manifest has no [tests]", where=self.manifest.name, cure="add a [tests] table")
        return self.manifest.tests


class Miner(Protocol):
    """A language's functions for mining."""

    def tests(self, project: Project, report: Report) -> dict[str, Any]:
        """Return the data that `bench.judging.suites.suite_of` reads from the set's manifest; may use the network.

        Raises:
            InputFault: if the repository's ``[tests]`` cannot be used.
            SandboxError: if a requirement is unavailable.
        """
        ...

    def find(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
        """Return the documented functions that passing tests cover. All code of the repository runs in `sandbox`.

        Raises:
            InputFault: if the tests cannot be run.
            SandboxError: if the machine failed.
        """
        ...

    def survey(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Survey:
        """Run the suite once and measure what it covers; arguments and errors as for `find`."""
        ...

    def lift(self, lines: list[str]) -> str:
        """Dedent a function's lines so that its `Suite` can restore them exactly."""
        ...

    def mutants(self, text: str, most: int) -> tuple[str, ...]:
        """Return at most `most` faulty versions of a reference's function, best first."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedRepository:
    """A repository whose tests can be run."""

    project: Project
    entry: dict[str, Any]
    suite: Suite


def prepare(
    manifest: RepoManifest, checkout: Checkout, home: Home, sandbox: Sandbox, lock: Lock, report: Report
) -> PreparedRepository:
    """Read a fetched repository, resolve its test requirements, and build its image.

    Raises:
        InputFault: if the tests cannot be used.
        MachineFault: if a requirement is unavailable, or the sandbox failed.
    """
    read = snapshot.load(manifest.name, checkout.root, manifest.language, manifest.source_dir)
    project = Project(manifest=manifest, root=checkout.root, snapshot=read, home=home, lock=lock)
    with sandbox_explained():
        entry = _entry(project, checkout, manifest.language.miner().tests(project, report))
        suite = suite_of(home, provisional(manifest.name, entry, [], {}), manifest.name, sandbox)
        sandbox.prepare(suite.environment, report)
    return PreparedRepository(project, entry, suite)


def certificates_of(home: Home, environment: str, back_end: str) -> Path:
    """Return the file that stores the certificates of an environment on a back end."""
    return home.cache / "certificates" / f"{sha256(f'{environment} {back_end}')[:32]}.jsonl"


def provisional(
    repo: str, entry: Mapping[str, Any], samples: Iterable[Sample], references: Mapping[str, Reference]
) -> SampleSet:
    """Wrap uncertified samples as a set. The set shares `references`, so later changes are visible in it."""
    return SampleSet("", "", tuple(samples), references, {"repositories": {repo: entry}})


def _entry(project: Project, checkout: Checkout, tests: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "language": project.manifest.language,
        **project.manifest.account(),
        "source": checkout.source,
        "checkout": checkout.root.relative_to(project.home.repos).as_posix(),
        "source_dir": project.manifest.source_dir,
        "exclude": list(project.manifest.exclude),
        "snapshot": project.snapshot.digest,
        "read_with_replacement": len(project.snapshot.undecoded),
        "encodings": dict(project.snapshot.encodings),
        "tests": dict(tests),
    }

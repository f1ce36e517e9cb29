"""Prepares repositories for mining, and defines the protocol `Miner` and its results."""

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
    """CoderEval's levels (ICSE 2024, section 3), by the most distant code that a function's body needs."""

    SELF_CONTAINED = "self_contained"
    SLIB = "slib_runnable"
    PLIB = "plib_runnable"
    CLASS = "class_runnable"
    FILE = "file_runnable"
    PROJECT = "project_runnable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A documented function that usable tests run. Lines are 0-based, and ends are exclusive."""

    path: str
    name: str
    """Name as ``function`` or ``Class.method``. Java overloads also include their parameter types."""
    signature: str
    docstring: str
    start: int
    """Line of the declaration, below decorators and annotations."""
    cursor: Cursor
    end: int
    tail: Cursor | None = None
    """End of the body, before a closing brace; None if the body ends at `end`."""
    level: Level
    uses: tuple[Use, ...] = ()
    tests: tuple[str, ...]
    """A few fast tests that judge the function, best first."""
    others: tuple[str, ...] = ()
    """Further tests that run the function, directly or on import, most promising first."""
    at_import: bool = False
    """Whether usable tests run the function only by importing a module, not in the tests themselves."""
    clocks: frozenset[str] = frozenset()
    seconds: float
    """Processor seconds that `tests` needed together when the suite ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The candidates that a miner finds in a repository, with counts of functions and tests."""

    candidates: tuple[Candidate, ...]
    """Candidates, sorted by path and line. Names are unique within a file."""
    hidden: tuple[str, ...]
    """Test files and folders (with a final ``/``) that strategies must not see."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Numbers of files, functions and tests, including ``functions``, ``documented`` and ``covered``."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Number of documented functions that are not candidates, by reason."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """One line on why each failed test failed, by test id; an empty text if the reason is unknown."""
    left_out: str = ""
    """Message on test files that do not compile, and how to repair them; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Location of a function. Lines are 0-based, and ends are exclusive."""

    path: str
    name: str
    start: int
    cursor: Cursor
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCoverage:
    """The coverage of a repository's test suite: which tests run a given function, and each test's result."""

    hidden: tuple[str, ...]
    runs: Mapping[str, TestRun]
    covering: Callable[[Spot], Mapping[str, frozenset[int]]]
    """Returns the lines or blocks of the function's body that each test runs. Failed tests are included."""
    uses: Callable[[Spot], tuple[Use, ...]]
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestRun:
    """The result of one test of the suite."""

    __test__ = False  # without this, pytest would collect the class as a test case

    passed: bool
    seconds: float
    breadth: int
    """Number of project lines (Python) or method blocks (Java) that the test runs. A narrow test runs few."""
    clock: bool = False
    """Whether the test reads a clock or waits. Such a test may fail on a busy machine."""


Report = Callable[[str], None]
Lock = Callable[[Sequence[str], str], tuple[str, ...]]
"""Resolves requirements and a project (``name==version`` or empty) to exact versions of all dependencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A fetched repository to mine."""

    manifest: RepoManifest
    root: Path
    snapshot: Snapshot
    """Source files as text. The line numbers of samples refer to these texts."""
    home: Home
    lock: Lock

    @property
    def tests(self) -> TestSuite:
        """The repository's test suite, as described in the manifest.

        Raises:
            InputFault: if the manifest has no ``[tests]``.
        """
        if self.manifest.tests is None:
            raise InputFault("the manifest has no [tests]", where=self.manifest.name, cure="add a [tests] table")
        return self.manifest.tests


class Miner(Protocol):
    """The functions that mine a language's repositories, in ``bench.functions.LANGUAGE``."""

    def tests(self, project: Project, report: Report) -> dict[str, Any]:
        """Return the data that `bench.judging.suites.suite_of` reads from a sample set's manifest. May use the network.

        Raises:
            InputFault: if the repository's ``[tests]`` cannot be used.
            SandboxError: if a requirement is unavailable.
        """
        ...

    def find(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
        """Run the tests in `sandbox`, and return the candidates: documented functions that usable tests run.

        Raises:
            InputFault: if the tests cannot be run.
            MachineFault: if the sandbox failed.
        """
        ...

    def measure_coverage(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> SuiteCoverage:
        """Run the suite, and return its coverage. Arguments and errors are those of `find`."""
        ...

    def lift(self, lines: list[str]) -> str:
        """Dedent a function's lines so that the language's `Suite` can restore the indentation."""
        ...

    def mutants(self, text: str, most: int) -> tuple[str, ...]:
        """Return up to `most` distinct faulty versions of a function. The order depends only on `text`."""
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
    """Resolve a fetched repository's test requirements, and build the image for its tests.

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
    """Return the path of the file that caches samples' certificates for one environment and one sandbox back end."""
    return home.cache / "certificates" / f"{sha256(f'{environment} {back_end}')[:32]}.jsonl"


def provisional(
    repo: str, entry: Mapping[str, Any], samples: Iterable[Sample], references: Mapping[str, Reference]
) -> SampleSet:
    """Return uncertified samples as a sample set. It shares `references`, so later changes there appear in the set."""
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

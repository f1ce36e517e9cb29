"""Mining for all languages: prepare repositories to run their tests, then let a language's miner find functions.

`bench.functions.python` and `bench.functions.java` are miners: modules with the functions of `Miner`.
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
    """The dependencies of a function, from none to the whole project: CoderEval's six levels, from low to high.

    A function has the highest level of the names in its body.
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
    """The name in its file: ``function`` or ``Class.method``; overloads have their parameter types added."""
    signature: str
    docstring: str
    start: int
    """Line of its declaration, after decorators and annotations."""
    cursor: Cursor
    """Start of the body."""
    end: int
    tail: Cursor | None = None
    """End of the body, if the function continues after it (a closing brace). None: at `end`."""
    level: Level
    uses: tuple[Use, ...] = ()
    """Names of the project that the body uses."""
    tests: tuple[str, ...]
    """The default tests to judge it, few and fast; the best judges first."""
    others: tuple[str, ...] = ()
    """Further tests that run it, directly or at import, most promising first."""
    at_import: bool = False
    """Whether no test runs it, only imports before the tests."""
    clocks: frozenset[str] = frozenset()
    """All these tests that read a clock."""
    seconds: float
    """Processor time of `tests` together in the run of the suite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A language's findings in a repository; equal for equal repositories on any machine."""

    candidates: tuple[Candidate, ...]
    """Sorted by path and line; names are unique within a path."""
    hidden: tuple[str, ...]
    """Test files and folders (ending with ``/``) that no strategy may see."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """At least ``functions``, ``documented`` and ``covered``."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Reason -> number of documented functions that are not candidates."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Failed test -> last line of the reason; empty if unknown."""
    left_out: str = ""
    """Tests that could not be used, and a possible cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The location of a function, documented or not. Lines are 0-based, ends exclusive."""

    path: str
    name: str
    """The name in its file, as in `Candidate`."""
    start: int
    """Line of its declaration."""
    cursor: Cursor
    """Start of its body."""
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The coverage of any function by a repository's suite."""

    hidden: tuple[str, ...]
    """Test files and folders (ending with ``/``) that no strategy may see."""
    runs: Mapping[str, TestRun]
    """Test -> results of its runs."""
    covering: Callable[[Spot], Mapping[str, frozenset[int]]]
    """Returns the tests that run a function's body, passed or not, with the lines or blocks that they run."""
    uses: Callable[[Spot], tuple[Use, ...]]
    """Returns the project's names that a function's body uses."""
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestRun:
    """The results of one test of the suite."""

    __test__ = False  # without this, pytest would collect the class as a test case

    passed: bool
    seconds: float
    """Processor time."""
    breadth: int
    """Lines of the project's sources that it runs; a narrow test targets its subject."""
    clock: bool = False
    """Whether it reads a clock or waits for one, so that it may fail on a busy machine."""


Report = Callable[[str], None]
Lock = Callable[[Sequence[str], str], tuple[str, ...]]
"""Resolves requirements and the dependencies of them and a project (``name==version`` or empty) to pinned versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A fetched repository that function samples are mined from."""

    manifest: RepoManifest
    """The manifest; repositories without `tests` were refused before."""
    root: Path
    """The read-only folder of its files."""
    snapshot: Snapshot
    """Its source files as text; line numbers of samples refer to them."""
    home: Home
    lock: Lock

    @property
    def tests(self) -> TestSuite:
        """Its test suite.

        Raises:
            InputFault: if its manifest declares none.
        """
        if self.manifest.tests is None:
            raise InputFault("its manifest has no [tests]", where=self.manifest.name, cure="add a [tests] table")
        return self.manifest.tests


class Miner(Protocol):
    """The functions of a language for mining."""

    def tests(self, project: Project, report: Report) -> dict[str, Any]:
        """Return the data for `bench.judging.suites.suite_of`, as a JSON object for the set's manifest.

        May use the network, through `project.lock`.

        Raises:
            InputFault: if the repository's ``[tests]`` cannot be used.
            SandboxError: if a requirement is unavailable.
        """
        ...

    def find(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Search:
        """Return the documented functions that passing tests cover.

        Args:
            project: the repository.
            suite: built by `suite_of` from the result of `tests`.
            sandbox: runs its tests; code of the repository never runs outside it.
            report: called with one line of progress at a time.

        Raises:
            InputFault: if its tests cannot be run.
            SandboxError: if the machine failed.
        """
        ...

    def survey(self, project: Project, suite: Suite, sandbox: Sandbox, report: Report) -> Survey:
        """Run the suite once, as `find` does, for given functions; arguments and errors are those of `find`."""
        ...

    def lift(self, lines: list[str]) -> str:
        """Return a function's lines, dedented, so that its `Suite` can restore them exactly."""
        ...

    def mutants(self, text: str, most: int) -> tuple[str, ...]:
        """Return faulty versions of a reference's function in a fixed order, best first."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedRepository:
    """A repository whose tests can be run."""

    project: Project
    entry: dict[str, Any]
    """Its entry in a set's manifest."""
    suite: Suite


def prepare(
    manifest: RepoManifest, checkout: Checkout, home: Home, sandbox: Sandbox, lock: Lock, report: Report
) -> PreparedRepository:
    """Read a fetched repository, resolve the requirements of its tests, and build its image.

    Raises:
        InputFault: if its tests cannot be used.
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
    """Return the file of the certificates of an environment on a back end."""
    return home.cache / "certificates" / f"{sha256(f'{environment} {back_end}')[:32]}.jsonl"


def provisional(
    repo: str, entry: Mapping[str, Any], samples: Iterable[Sample], references: Mapping[str, Reference]
) -> SampleSet:
    """Return a set of uncertified samples for code that reads sets; it holds `references` itself, not a copy."""
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

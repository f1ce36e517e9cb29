"""Mining, the same for every language: repositories are made ready to run their tests, then a language finds functions.

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
    left_out: str = ""
    """What of its tests could not be used, and what may cure that."""


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

    @property
    def tests(self) -> TestSuite:
        """How it is tested.

        Raises:
            InputFault: if its manifest does not say.
        """
        if self.manifest.tests is None:
            raise InputFault("its manifest has no [tests]", where=self.manifest.name, cure="add a [tests] table")
        return self.manifest.tests


class Miner(Protocol):
    """What a language brings to mining."""

    def tests(self, project: Project, report: Report) -> dict[str, Any]:
        """Return what `bench.judging.suites.suite_of` needs, as a JSON object for the set's manifest.

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


@dataclass(frozen=True, slots=True)
class PreparedRepository:
    """A repository whose tests could be run now."""

    project: Project
    entry: dict[str, Any]
    """What a set's manifest says of it."""
    suite: Suite


def prepare(
    manifest: RepoManifest, checkout: Checkout, home: Home, sandbox: Sandbox, lock: Lock, report: Report
) -> PreparedRepository:
    """Read a fetched repository, resolve what its tests need, and make its image.

    Raises:
        InputFault: if its tests cannot be used.
        MachineFault: if a requirement cannot be had, or the sandbox failed.
    """
    read = snapshot.load(manifest.name, checkout.root, manifest.language, manifest.source_dir)
    project = Project(manifest=manifest, root=checkout.root, snapshot=read, home=home, lock=lock)
    with sandbox_explained():
        entry = _entry(project, checkout, manifest.language.miner().tests(project, report))
        suite = suite_of(home, provisional(manifest.name, entry, [], {}), manifest.name, sandbox)
        sandbox.prepare(suite.environment, report)
    return PreparedRepository(project, entry, suite)


def certificates_of(home: Home, environment: str, back_end: str) -> Path:
    """Return where certificates of an environment on a back end are kept."""
    return home.cache / "certificates" / f"{sha256(f'{environment} {back_end}')[:32]}.jsonl"


def provisional(
    repo: str, entry: Mapping[str, Any], samples: Iterable[Sample], references: Mapping[str, Reference]
) -> SampleSet:
    """Return a set of samples that are not certified yet, for what reads sets; it holds `references` itself."""
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

"""Mining, the same for every language: repositories are made ready to run their tests, then a language finds functions.

`bench.functions.python` and `bench.functions.java` are miners: modules with the functions of `Miner`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.functions.types import Search, Survey
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import sandbox_explained
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import Suite
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Reference, Sample
from ctxbench.sandbox.types import Sandbox

if TYPE_CHECKING:
    from ctxbench.bench.repositories.checkout import Checkout

Report = Callable[[str], None]
Lock = Callable[[Sequence[str], str], tuple[str, ...]]
"""Resolves requirements, and what they and a project (``name==version`` or empty) require, to one version each."""
T = TypeVar("T")


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


def silent(_: str) -> None:
    """Tell nobody."""


def one_ahead(prepare_next: Callable[[RepoManifest], T], manifests: Sequence[RepoManifest]) -> Iterator[T]:
    """Yield each repository made ready, while the next one is: that is waiting for networks, and for images."""
    with ThreadPoolExecutor(1, thread_name_prefix="prepare") as pool:
        try:
            coming = deque(pool.submit(prepare_next, manifest) for manifest in manifests[:1])
            for manifest in [*manifests[1:], None]:
                prepared = coming.popleft().result()
                if manifest is not None:
                    coming.append(pool.submit(prepare_next, manifest))
                yield prepared
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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

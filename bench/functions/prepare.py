"""Making repositories ready to run their tests: fetched, read, locked, with an image in the sandbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ctxbench.bench import snapshot
from ctxbench.bench.files import sha256
from ctxbench.bench.functions.mining import Lock, Project, Report
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing.judge import explained
from ctxbench.bench.testing.suites import suite_of
from ctxbench.bench.testing.types import Suite
from ctxbench.bench.types import Reference, Sample

if TYPE_CHECKING:
    from ctxbench.bench.checkout import Checkout
    from ctxbench.bench.manifest_types import RepoManifest
    from ctxbench.sandbox.types import Sandbox

T = TypeVar("T")


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
    with explained():
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
    """Return what the set's manifest says of a repository before it is mined."""
    return {
        "language": project.manifest.language,
        "license": project.manifest.license,
        "version": project.manifest.version,
        "source": checkout.source,
        "checkout": checkout.root.relative_to(project.home.repos).as_posix(),
        "source_dir": project.manifest.source_dir,
        "exclude": list(project.manifest.exclude),
        "snapshot": project.snapshot.digest,
        "read_with_replacement": len(project.snapshot.undecoded),
        "encodings": dict(project.snapshot.encodings),
        "tests": dict(tests),
    }

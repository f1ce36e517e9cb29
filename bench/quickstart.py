"""The steps of the quick start: fetch the built-in repositories and build their samples."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from ctxbench.bench import samples, standard
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.functions import build as functions
from ctxbench.bench.home import Home
from ctxbench.bench.lines.build import build
from ctxbench.bench.repositories import checkout
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox import wheels
from ctxbench.sandbox.types import Sandbox

SET, FUNCTION_SET = "ctxbench-2-lite", "quickstart-functions"
"""Repository sets for line and function samples. Their sample sets have the same names."""
FUNCTIONS_PER_REPO, FUNCTION_SEED = 5, 1
_DOWNLOADS = 4

Report = Callable[[str], None]


def fetch_set(home: Home, report: Report, name: str = SET) -> tuple[RepoManifest, ...]:
    """Fetch a set's repositories, and return their manifests. Repositories out of reach are reported and left out.

    Raises:
        InputFault: if no set has this name, or an archive is invalid or has a wrong hash.
        MachineFault: if no repository can be fetched.
    """
    manifests = standard.repositories(name)

    def fetch(repo: RepoManifest) -> str:
        try:
            checkout.fetch(repo, home, report=report)
        except MachineFault as fault:
            return str(fault)
        return ""

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        faults = list(pool.map(fetch, manifests))
    for fault in filter(None, faults):
        report(f"left out: {fault}")
    reached = tuple(repo for repo, fault in zip(manifests, faults, strict=True) if not fault)
    if not reached:
        raise MachineFault(
            f"none of the {len(manifests)} repositories can be fetched; the first error is: {faults[0]}",
            where="quickstart",
            cure="check the connection to your package index, then run the quick start again",
        )
    return reached


def sample_set(home: Home, manifests: tuple[RepoManifest, ...], *, workers: int, report: Report) -> SampleSet:
    """Return the repositories' line samples. Build them if they are missing or from other repositories or versions.

    Raises:
        InputFault: if the set is unreadable, or the quick start did not build it.
    """
    members = standard.load(SET)
    built = _built_set(home, SET, manifests, members.per_repo["line"], members.seed)
    if built is not None:
        return built
    return build(
        manifests,
        home,
        SET,
        per_repo=members.per_repo["line"],
        seed=members.seed,
        workers=workers,
        report=report,
        force=True,
    )


def function_set(
    home: Home, manifests: tuple[RepoManifest, ...], sandbox: Sandbox, *, workers: int, report: Report
) -> SampleSet:
    """Return the repositories' function samples. Build them if they are missing or from other repositories or versions.

    Raises:
        InputFault: if the set is unreadable, or the quick start did not build it.
        MachineFault: if the sandbox failed. The next call resumes the build.
    """
    built = _built_set(home, FUNCTION_SET, manifests, FUNCTIONS_PER_REPO, FUNCTION_SEED)
    if built is not None:
        return built
    return functions.build(
        manifests,
        home,
        FUNCTION_SET,
        sandbox=sandbox,
        lock=functools.partial(wheels.lock, cache=home.cache / "sandbox", report=report),
        per_repo=FUNCTIONS_PER_REPO,
        seed=FUNCTION_SEED,
        workers=workers,
        report=report,
        force=True,
    )


def _built_set(
    home: Home, name: str, manifests: tuple[RepoManifest, ...], per_repo: int, seed: int
) -> SampleSet | None:
    """Return the set if it contains these repositories' samples; None if it may be built or replaced."""
    place = samples.folder(home, name)
    if not place.exists():
        return None
    move = shlex.join(["mv", str(place), str(_free(place))])
    cure = f"rename the set with `{move}`, then run the quick start again"
    try:
        built = samples.load(home, name)
    except InputFault as fault:
        raise InputFault(fault.what, where=fault.where or str(place), cure=cure) from None
    if (built.manifest.get("seed"), built.manifest.get("per_repo")) != (seed, per_repo):
        raise InputFault("another sample set has the quick start's name", where=str(place), cure=cure)
    versions = {repo: entry.get("version") for repo, entry in built.manifest["repositories"].items()}
    return built if versions == {repo.name: repo.version for repo in manifests} else None


def _free(place: Path) -> Path:
    return next(free for number in count(1) if not (free := place.with_name(f"{place.name}-{number}")).exists())

"""The main job in one call: fetch the built-in sets, build their samples, run two strategies over them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bench import checkout, manifest, samples
from bench.errors import MachineFault
from bench.functions import build as functions
from bench.home import Home
from bench.manifest_types import RepoManifest
from bench.projbench.build import build
from bench.samples import SampleSet
from sandbox import wheels
from sandbox.types import Sandbox

SET, FUNCTION_SET = "quickstart", "quickstart-functions"
"""Of lines, and of functions: the names of the repositories' sets and of the sample sets made of them."""
STRATEGIES = ("lc.infile", "lc.repocoder")
GENERATOR = "incontext"
PER_REPO, FUNCTIONS_PER_REPO = 40, 5
SEED = 1
_DOWNLOADS = 4

Report = Callable[[str], None]


def fetch_set(home: Home, report: Report, name: str = SET) -> tuple[RepoManifest, ...]:
    """Fetch the repositories of a set; one that cannot be reached is reported in one line and left out.

    Raises:
        InputFault: if one arrives with a wrong hash.
        MachineFault: if none can be reached.
    """
    wanted = manifest.in_set(name)

    def fetch(one: RepoManifest) -> str:
        try:
            checkout.fetch(one, home, report=report)
        except MachineFault as fault:
            return str(fault)
        return ""

    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        faults = list(pool.map(fetch, wanted))
    for fault in filter(None, faults):
        report(f"left out: {fault}")
    reached = tuple(one for one, fault in zip(wanted, faults, strict=True) if not fault)
    if not reached:
        raise MachineFault(
            f"none of its {len(wanted)} repositories can be fetched; the first said: {faults[0]}",
            where="quickstart",
            cure="check the connection to your package index, then run it again",
        )
    return reached


def sample_set(home: Home, manifests: tuple[RepoManifest, ...], *, workers: int, report: Report) -> SampleSet:
    """Return the line samples: those built before, or built now if these repositories have none yet."""
    known, ours = _known(home, SET, manifests, PER_REPO)
    if known is not None:
        return known
    # One that we built while other repositories could be reached is replaced; one of somebody else's making never.
    return build(manifests, home, SET, per_repo=PER_REPO, seed=SEED, workers=workers, report=report, force=ours)


def function_set(
    home: Home, manifests: tuple[RepoManifest, ...], sandbox: Sandbox, *, workers: int, report: Report
) -> SampleSet:
    """Return the function samples: those built before, or mined and certified now in the sandbox.

    Raises:
        MachineFault: if the sandbox failed; what was certified is kept for the next try.
    """
    known, ours = _known(home, FUNCTION_SET, manifests, FUNCTIONS_PER_REPO)
    if known is not None:
        return known
    return functions.build(
        manifests,
        home,
        FUNCTION_SET,
        sandbox=sandbox,
        lock=functools.partial(wheels.lock, cache=home.cache / "sandbox", report=report),
        per_repo=FUNCTIONS_PER_REPO,
        seed=SEED,
        workers=workers,
        report=report,
        force=ours,
    )


def _known(home: Home, name: str, manifests: tuple[RepoManifest, ...], per_repo: int) -> tuple[SampleSet | None, bool]:
    """Return the set if these repositories' samples are there, and whether one of that name is of our making."""
    if name not in samples.names(home):
        return None, False
    known = samples.load(home, name)
    ours = (known.manifest.get("seed"), known.manifest.get("per_repo")) == (SEED, per_repo)
    versions = {repo: entry.get("version") for repo, entry in known.manifest["repositories"].items()}
    same = ours and versions == {one.name: one.version for one in manifests}
    return (known if same else None), ours

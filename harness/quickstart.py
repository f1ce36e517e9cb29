"""The main job in one call: fetch the built-in set, build its samples, run two strategies over them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from bench import checkout, manifest, samples
from bench.errors import MachineFault
from bench.home import Home
from bench.manifest_types import RepoManifest
from bench.projbench.build import build
from bench.samples import SampleSet

SET = "quickstart"
STRATEGIES = ("lc.infile", "lc.repocoder")
GENERATOR = "incontext"
PER_REPO = 40
SEED = 1
_DOWNLOADS = 4

Report = Callable[[str], None]


def fetch_set(home: Home, report: Report) -> tuple[RepoManifest, ...]:
    """Fetch the repositories of the set; one that cannot be reached is reported in one line and left out.

    Raises:
        InputFault: if one arrives with a wrong hash.
        MachineFault: if none can be reached.
    """
    wanted = manifest.in_set(SET)

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
    """Return the set's samples: those built before, or built now if these repositories have none yet."""
    ours = False
    if SET in samples.names(home):
        known = samples.load(home, SET)
        ours = (known.manifest.get("seed"), known.manifest.get("per_repo")) == (SEED, PER_REPO)
        versions = {name: entry.get("version") for name, entry in known.manifest["repositories"].items()}
        if ours and versions == {one.name: one.version for one in manifests}:
            return known
    # One that we built while other repositories could be reached is replaced; one of somebody else's making never.
    return build(manifests, home, SET, per_repo=PER_REPO, seed=SEED, workers=workers, report=report, force=ours)

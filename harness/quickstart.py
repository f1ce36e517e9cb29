"""The main job in one call: fetch the built-in set, build its samples, run two strategies, rank them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bench.manifest import RepoManifest

from bench import checkout, manifest
from bench.errors import CtxbenchError, MachineFault
from bench.home import Home

SET = "quickstart"
STRATEGIES = ("lc.infile", "lc.repocoder")
GENERATOR = "incontext"
PER_REPO = 30
SEED = 1
_DOWNLOADS = 4

Report = Callable[[str], None]


class Reached(NamedTuple):
    """Which repositories of the set could be fetched, and what became of the others."""

    manifests: tuple[RepoManifest, ...]
    missing: tuple[str, ...]


def fetch_set(home: Home, report: Report) -> Reached:
    """Fetch every repository of the set; one that cannot be reached is reported in one line and left out.

    Raises:
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
    missing = tuple(f"{one.name}: {fault}" for one, fault in zip(wanted, faults, strict=True) if fault)
    reached = tuple(one for one, fault in zip(wanted, faults, strict=True) if not fault)
    if not reached:
        raise MachineFault(
            "none of its repositories can be fetched",
            where="quickstart",
            cure=f"check the connection to your package index; the first said: {missing[0]}",
        )
    for line in missing:
        report(f"left out {line}")
    return Reached(reached, missing)


def names(manifests: Sequence[RepoManifest]) -> str:
    """Return what the set is made of, for a person."""
    return ", ".join(f"{one.name} {one.version}" for one in manifests)


__all__ = ["GENERATOR", "PER_REPO", "SEED", "SET", "STRATEGIES", "CtxbenchError", "Reached", "fetch_set", "names"]

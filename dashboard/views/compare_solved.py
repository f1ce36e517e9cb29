"""Which samples only some runs solve (InferCom paper, Figure 8), as tables. Pure."""

from __future__ import annotations

import string
from collections.abc import Sequence

from ctxbench.harness.leaderboard.compare import Solved, SolvedRegion

Row = dict[str, object]


def letters(count: int) -> tuple[str, ...]:
    """Return the letters that stand for the runs shown."""
    return tuple(string.ascii_uppercase[:count])


def region_name(region: SolvedRegion, count: int) -> str:
    """Return which samples a region holds, in words: ``only A and B``."""
    if not region.runs:
        return "none of them"
    if len(region.runs) == count:
        return "all of them"
    return "only " + " and ".join(letters(count)[run] for run in region.runs)


def region_key(region: SolvedRegion) -> str:
    """Return the letters of a region, as they stand in an address; ``none`` for the region outside."""
    return "".join(string.ascii_uppercase[run] for run in region.runs) or "none"


def run_rows(outcome: Solved, names: Sequence[str]) -> list[Row]:
    """Return one row a run: its letter, how much it solves, and how much only it does."""
    return [
        {"letter": letter, "strategy": name, "solved": total, "only this one": only}
        for letter, name, total, only in zip(
            letters(outcome.count), names, outcome.totals(), outcome.only(), strict=True
        )
    ]


def region_rows(outcome: Solved) -> list[Row]:
    """Return one row a region, most samples first: the runs that solve it, and how many samples it holds."""
    return [
        {"solved by": region_name(region, outcome.count), "samples": len(region.samples)} for region in outcome.regions
    ]

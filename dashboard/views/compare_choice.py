"""Which runs are compared unasked, and how runs are named and told apart. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices
from ctxbench.harness.leaderboard.columns import scale_of, values
from ctxbench.harness.results import RunInfo, RunTable

FEW, MOST = 3, 6
"""Runs compared unasked, and at most."""


def spelled(table: RunTable, *, generator: bool = False) -> str:
    """Return a run as an option: its strategy and the id that `ctxbench run` printed; with its `generator` if asked."""
    return " · ".join([table.run.strategy, *([table.run.generator] if generator else []), table.run.id])


def labels(runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """Return a name for each run: its strategy, with several generators also that, and what else tells it apart."""
    found = [run.strategy for run in runs]
    if len({run.generator for run in runs}) > 1:
        found = [f"{run.strategy} · {run.generator}" for run in runs]
    for more in ("origin", "id"):
        often = Counter(found)
        # Only what differs among runs of one name is worth a reader's time.
        held = {
            name: {getattr(run, more) for run, one in zip(runs, found, strict=True) if one == name} for name in often
        }
        found = [
            f"{name} · {getattr(run, more)}" if often[name] > 1 and len(held[name]) > 1 else name
            for run, name in zip(runs, found, strict=True)
        ]
    return tuple(found)


def metrics(tables: Sequence[RunTable]) -> list[str]:
    """Return the metrics that some run has a value of, the one that ranks first."""
    found = sorted(
        {
            name
            for table in tables
            for name, column in table.metrics.items()
            if any(value is not None for value in column)
        }
    )
    ranking = choices.default_metric(found, tables[0].run) if tables else ""
    return sorted(found, key=lambda name: (name != ranking, name))


def first(tables: Sequence[RunTable]) -> RunTable:
    """Return the run that the others are compared with unasked: of ``lc.infile``, else the first that is ranked."""
    newest = choices.newest(tables)
    at = choices.baseline(newest, [index for index, table in enumerate(newest) if table.run.ranked], None)
    return newest[at or 0]


def others(tables: Sequence[RunTable], baseline: RunTable, metric: str) -> list[RunTable]:
    """Return what is compared with a baseline unasked, so much that `FEW` runs are shown; no controls.

    The best other strategies of its generator, by mean; without any, its strategy by other generators; without that
    the best of all.
    """
    generators = dict.fromkeys(table.run.generator for table in tables)
    newest = [
        one
        for name in generators
        for one in choices.newest([table for table in tables if table.run.generator == name])
        if one.run.ranked and one.run.id != baseline.run.id
    ]
    scale = scale_of(baseline.run.profile, metric)
    sign = 1.0 if scale.lower_is_better else -1.0
    means = {one.run.id: list(values(one, metric, scale).values()) for one in newest}
    able = [one for one in newest if means[one.run.id]]
    able.sort(key=lambda one: (sign * statistics.fmean(means[one.run.id]), one.run.strategy))
    alike = (
        [one for one in able if one.run.generator == baseline.run.generator],
        [one for one in able if one.run.strategy == baseline.run.strategy],
        able,
    )
    return next((found for found in alike if found), [])[: FEW - 1]

"""The default choice of runs to compare, and their names. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from ctxbench.harness.leaderboard import choices
from ctxbench.harness.leaderboard.scales import scale_of, values
from ctxbench.harness.results import RunInfo, RunTable

FEW, MOST = 3, 6
"""Runs compared unasked, and at most."""


def spelled(table: RunTable, *, generator: bool = False) -> str:
    """Return a run as an option: its strategy and the id that `ctxbench run` printed; with its `generator` if asked."""
    return " · ".join([table.run.strategy, *([table.run.generator] if generator else []), table.run.id])


def labels(runs: Sequence[RunInfo]) -> tuple[str, ...]:
    """Return a name for each run: its strategy, with several generators also that, and what else tells it apart."""
    names = [run.strategy for run in runs]
    if len({run.generator for run in runs}) > 1:
        names = [f"{run.strategy} · {run.generator}" for run in runs]
    for more in ("origin", "id"):
        often = Counter(names)
        # Only what differs among runs of one name is worth a reader's time.
        suffixes = {
            name: {getattr(run, more) for run, other in zip(runs, names, strict=True) if other == name}
            for name in often
        }
        names = [
            f"{name} · {getattr(run, more)}" if often[name] > 1 and len(suffixes[name]) > 1 else name
            for run, name in zip(runs, names, strict=True)
        ]
    return tuple(names)


def metrics(tables: Sequence[RunTable]) -> list[str]:
    """Return the metrics that some run has a value of, the one that ranks first."""
    names = sorted(
        {
            name
            for table in tables
            for name, column in table.metrics.items()
            if any(value is not None for value in column)
        }
    )
    ranking = choices.default_metric(names, tables[0].run) if tables else ""
    return sorted(names, key=lambda name: (name != ranking, name))


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
        table
        for name in generators
        for table in choices.newest([table for table in tables if table.run.generator == name])
        if table.run.ranked and table.run.id != baseline.run.id
    ]
    scale = scale_of(baseline.run.profile, metric)
    sign = 1.0 if scale.lower_is_better else -1.0
    means = {table.run.id: list(values(table, metric, scale).values()) for table in newest}
    able = [table for table in newest if means[table.run.id]]
    able.sort(key=lambda table: (sign * statistics.fmean(means[table.run.id]), table.run.strategy))
    alike = (
        [table for table in able if table.run.generator == baseline.run.generator],
        [table for table in able if table.run.strategy == baseline.run.strategy],
        able,
    )
    return next((group for group in alike if group), [])[: FEW - 1]

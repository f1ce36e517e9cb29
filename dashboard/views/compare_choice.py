"""Which runs are compared unasked, and how a run is named among options. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.leaderboard import choices
from harness.leaderboard.columns import scale_of, values
from harness.results import RunTable

FEW, MOST = 3, 6
"""Runs compared unasked, and at most."""


def spelled(table: RunTable) -> str:
    """Return a run as an option: its strategy, and the id that `ctxbench run` printed."""
    return f"{table.run.strategy} · {table.run.id}"


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
    """Return the best of the other strategies by mean, so many that `FEW` runs are shown; no controls."""
    newest = [one for one in choices.newest(tables) if one.run.ranked and one.run.id != baseline.run.id]
    of_others = [one for one in newest if one.run.generator == baseline.run.generator] or newest
    scale = scale_of(baseline.run.profile, metric)
    sign = 1.0 if scale.lower_is_better else -1.0
    means = {one.run.id: list(values(one, metric, scale).values()) for one in of_others}
    able = [one for one in of_others if means[one.run.id]]
    able.sort(key=lambda one: (sign * statistics.fmean(means[one.run.id]), one.run.strategy))
    return able[: FEW - 1]

"""Samples that only some of several runs solve: the regions of a Venn diagram. Pure.

A sample is solved if its value is the best one that the metric can have. That says something only of metrics that are
right or wrong, such as ``em`` or ``pass@1`` of one completion a sample.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.harness.leaderboard import pairs
from ctxbench.harness.leaderboard.columns import ScaleOf, scale_of, values
from ctxbench.harness.results import RunTable


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvedRegion:
    """The samples that exactly these runs solve, and no other of the runs shown."""

    runs: tuple[int, ...]
    """Positions of the runs, rising; empty for what none solves."""
    samples: tuple[str, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """How the samples that all runs completed fall into regions."""

    count: int
    """Runs."""
    n: int
    """Samples that every run completed: only these are in a region."""
    regions: tuple[SolvedRegion, ...]
    """Those that hold a sample; most samples first, then by runs."""

    def totals(self) -> tuple[int, ...]:
        """Return how many of the `n` samples each run solves."""
        return tuple(
            sum(len(region.samples) for region in self.regions if run in region.runs) for run in range(self.count)
        )

    def size(self, *runs: int) -> int:
        """Return how many samples exactly these runs solve."""
        return sum(len(region.samples) for region in self.regions if region.runs == tuple(sorted(runs)))

    def only(self) -> tuple[int, ...]:
        """Return how many samples each run solves that no other does."""
        return tuple(self.size(run) for run in range(self.count))


def solved(tables: Sequence[RunTable], metric: str, *, scale: ScaleOf = scale_of) -> Solved | None:
    """Return who solves what, over the samples that all of the runs completed.

    Args:
        tables: runs that may be compared (`harness.leaderboard.compare` says which).
        metric: one that all of them have.
        scale: how a metric of a profile is shown.

    Returns:
        None if the metric is not right or wrong: it has no bounds, or some value lies between them.
    """
    metric_scale = scale(tables[0].run.profile, metric)
    columns = [values(table, metric, metric_scale) for table in tables]
    common = sorted(set.intersection(*(set(column) for column in columns)))
    if metric_scale.range is None or any(
        column[sample] not in metric_scale.range for column in columns for sample in common
    ):
        return None
    right = pairs.best(metric_scale, metric_scale.range)
    samples_by_runs: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for sample in common:
        samples_by_runs[tuple(run for run, column in enumerate(columns) if column[sample] == right)].append(sample)
    ordered = sorted(samples_by_runs.items(), key=lambda item: (-len(item[1]), len(item[0]), item[0]))
    regions = tuple(SolvedRegion(runs=runs, samples=tuple(samples)) for runs, samples in ordered)
    return Solved(count=len(tables), n=len(common), regions=regions)

"""The runs of one group as arrays: the same numbers as `columns.values`, without an object a sample. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.leaderboard import pairs, stats
from ctxbench.harness.leaderboard.columns import Scale, completed
from ctxbench.harness.leaderboard.pairs import Aligned
from ctxbench.harness.leaderboard.stats import Array, Clustered, Codes
from ctxbench.harness.results import RunTable, Status

Places: TypeAlias = NDArray[np.intp]


class Samples:
    """The samples of all runs of a group, sorted, and the repository of each."""

    def __init__(self, tables: Sequence[RunTable]) -> None:
        """Sort them; the runs of a group are over one set, in which a sample has one repository."""
        # Most runs have the very same samples: each list of them is looked at once.
        distinct = dict.fromkeys((table.sample, table.repo) for table in tables)
        repos = {sample: repo for ids, of in distinct for sample, repo in zip(ids, of, strict=True)}
        self.ids = sorted(repos)
        self.codes: Codes = stats.coded([repos[id_] for id_ in self.ids])
        place = {id_: index for index, id_ in enumerate(self.ids)}
        self._places = {ids: np.array([place[id_] for id_ in ids], dtype=np.intp) for ids, _ in distinct}

    def places(self, table: RunTable) -> Places:
        """Return where the samples of a run stand among all, in the run's own order."""
        return self._places[table.sample]


@dataclass(frozen=True)
class Column:
    """One metric of one run, of the samples that count and have a value; in the run's order and the unit shown."""

    values: Array
    rows: Places
    """Of each, its place in the run."""
    places: Places
    """Of each, its place among the samples of the group."""
    samples: Samples
    with_marked: float | None
    """The mean of these values and of those excluded only because they are marked; None if there are none."""

    def __bool__(self) -> bool:
        """Say whether there is any value."""
        return len(self.values) > 0

    @property
    def whole(self) -> bool:
        """Whether every sample of the group has a value."""
        return len(self.values) == len(self.samples.ids)

    @cached_property
    def clustered(self) -> Clustered:
        """The values by repository."""
        return stats.clustered(self.values, self.samples.codes[self.places])

    @cached_property
    def spread(self) -> Array:
        """The values by the group's samples, shape (samples of the group,); NaN where it has none."""
        whole = np.full(len(self.samples.ids), np.nan)
        whole[self.places] = self.values
        return whole


class RunArrays:
    """One run of a group, ready to be read by metric."""

    def __init__(self, table: RunTable, samples: Samples) -> None:
        """Look at what became of each sample, once for all metrics."""
        self.table = table
        self._samples = samples
        self._counts = np.zeros(len(table.sample), dtype=np.bool_)
        self._counts[completed(table)] = True
        self._failed = _are(table, Status.MODEL_FAILED)
        self._excluded = _are(table, Status.EXCLUDED)

    def column(self, metric: str, scale: Scale) -> Column:
        """Return one metric; empty if the run lacks it."""
        stored = self.table.metrics.get(metric)
        if stored is None:
            return self._column(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0))
        scaled = np.array(stored, dtype=np.float64) * scale.factor
        excluded = scaled[self._excluded & ~np.isnan(scaled)] if self._excluded is not None else np.zeros(0)
        if self._failed is not None and scale.worst is not None:
            scaled[self._failed] = scale.worst
        rows = np.flatnonzero(self._counts & ~np.isnan(scaled))
        return self._column(scaled[rows], rows, excluded)

    def _column(self, values: Array, rows: Places, excluded: Array) -> Column:
        every = [*values.tolist(), *excluded.tolist()]
        return Column(
            values=values,
            rows=rows,
            places=self._samples.places(self.table)[rows],
            samples=self._samples,
            with_marked=math.fsum(every) / len(every) if every else None,
        )


def _are(table: RunTable, status: Status) -> NDArray[np.bool_] | None:
    """Return which samples have a status, None if none has."""
    if status not in table.status:
        return None
    return np.fromiter((actual is status for actual in table.status), dtype=np.bool_, count=len(table.status))


def align(this: Column, other: Column) -> Aligned:
    """Return two runs' values of the samples that both have, sorted by sample."""
    this_values, other_values, codes = this.spread, other.spread, this.samples.codes
    if not (this.whole and other.whole):
        both = ~(np.isnan(this_values) | np.isnan(other_values))
        this_values, other_values, codes = this_values[both], other_values[both], codes[both]
    return pairs.aligned(this_values, other_values, codes)

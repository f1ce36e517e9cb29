"""Pools runs that differ only in the seed, and splits the variance of a mean by its sources.

A pooled value is the mean over the runs. Variances are estimated by nested analysis of variance with random effects,
by the method of moments (Searle, Casella and McCulloch, Variance Components, 1992, chapters 3 and 5).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ctxbench.harness.leaderboard import selection, stats
from ctxbench.harness.leaderboard.scales import scale_of
from ctxbench.harness.leaderboard.stats import Array, Codes
from ctxbench.harness.results import PRICE, RunInfo, RunTable, Status, counting_value

_ROUNDING = 1e-9
_COUNTS_AS = (Status.EXCLUDED, Status.SCORED, Status.MODEL_FAILED)
"""Statuses by priority: the first one that occurs in any run is the pooled status. If none occurs, the machine failed
in all runs."""


def pooled(tables: Sequence[RunTable]) -> list[RunTable]:
    """Pool the runs that differ only in the seed. A pool takes the position of its last run; other runs are unchanged.

    Imported runs are never pooled, because their decoding is unknown.

    Args:
        tables: one per run and language, oldest run first. Of runs with the same seed, the newest complete run counts,
            or the newest if none is complete.
    """
    groups: dict[str, list[RunTable]] = {}
    for table in tables:
        key = _without_seed(table.run)
        groups[key] = [*groups.pop(key, []), table]
    return [_pool(members) if len(members) > 1 else members[0] for members in map(_by_seed, groups.values())]


def _by_seed(members: Sequence[RunTable]) -> list[RunTable]:
    if len(members) == 1:
        return list(members)
    distinct = selection.newest(members, _seed)
    return sorted(distinct, key=lambda table: _seed(table.run))


def _seed(run: RunInfo) -> int:
    return int(json.loads(run.sampling).get("seed", 0))


def _without_seed(run: RunInfo) -> str:
    if not run.sampling or run.repetitions:
        return repr(run)
    sampling = json.dumps(json.loads(run.sampling, parse_int=float) | {"seed": None}, sort_keys=True)
    versions = dict(sorted(run.versions.items()))
    return repr(replace(run, id="", sampling=sampling, versions=versions, loads=(), remarks=(), offline={}, began=0.0))


def _pool(members: Sequence[RunTable]) -> RunTable:
    places = [{sample: place for place, sample in enumerate(table.sample)} for table in members]
    samples = list(dict.fromkeys(itertools.chain.from_iterable(table.sample for table in members)))

    def across(columns: Sequence[Sequence[Any]], default: Any = None) -> list[tuple[Any, ...]]:
        return [
            tuple(
                column[of_run[sample]] if column and sample in of_run else default
                for column, of_run in zip(columns, places, strict=True)
            )
            for sample in samples
        ]

    def first(columns: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        return tuple(next((cell for cell in cells if cell is not None), None) for cells in across(columns))

    outcomes = across([table.status for table in members], Status.INFRA_FAILED)

    def mean(columns: Sequence[Sequence[float | None]], *, whole: bool = False) -> tuple[float | None, ...]:
        """Return each sample's mean over the runs that completed it; with `whole`, None if one of them has no value."""
        means = []
        for cells, statuses in zip(across(columns), outcomes, strict=True):
            completed = [c for c, status in zip(cells, statuses, strict=True) if status is not Status.INFRA_FAILED]
            means.append(None if whole and None in completed else _mean(completed))
        return tuple(means)

    repeated = {}
    for name in sorted({name for table in members for name in table.metrics}):
        metric_scale = scale_of(members[0].run.profile, name)
        worst = None if metric_scale.worst is None else metric_scale.worst / metric_scale.factor
        cells_by_sample = across([table.metrics.get(name, ()) for table in members])
        repeated[name] = tuple(
            tuple(_counting(own, status, worst) for own, status in zip(cells, statuses, strict=True))
            for cells, statuses in zip(cells_by_sample, outcomes, strict=True)
        )
    costs = {name: [table.costs.get(name, ()) for table in members] for table in members for name in table.costs}
    return RunTable(
        run=_info([table.run for table in members]),
        sample=tuple(samples),
        repo=first([table.repo for table in members]),
        path=first([table.path for table in members]) if any(table.path for table in members) else (),
        level=first([table.level for table in members]),
        status=tuple(next((status for status in _COUNTS_AS if status in of), Status.INFRA_FAILED) for of in outcomes),
        metrics={name: tuple(map(_mean, column)) for name, column in repeated.items()},
        context_tokens=mean([table.context_tokens for table in members]),
        calls=mean([table.calls for table in members]),
        seconds=mean([table.seconds for table in members]),
        dated=first([table.dated for table in members]) if any(table.dated for table in members) else (),
        mark=first([table.mark for table in members]) if any(table.mark for table in members) else (),
        costs={name: mean(columns, whole=name.endswith(PRICE)) for name, columns in costs.items()},
        outcomes=tuple(outcomes),
        repeated=repeated,
    )


def _info(runs: Sequence[RunInfo]) -> RunInfo:
    return replace(
        runs[0],
        sampling=json.dumps(json.loads(runs[0].sampling) | {"seed": [_seed(run) for run in runs]}, sort_keys=True),
        loads=tuple(dict.fromkeys(load for run in runs for load in run.loads)),
        remarks=tuple(dict.fromkeys(remark for run in runs for remark in run.remarks)),
        repetitions=tuple(run.id for run in runs),
    )


def _counting(own: float | None, status: Status, worst: float | None) -> float | None:
    """Return the value that a sample counts as in one run. An excluded sample keeps its own value."""
    return own if status is Status.EXCLUDED else counting_value(status, own, worst)


def _mean(cells: Sequence[float | None]) -> float | None:
    present = [cell for cell in cells if cell is not None]
    return math.fsum(present) / len(present) if present else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGaps:
    """Numbers of answers that are missing, unusable or without a value in some of a row's runs, but not in all."""

    missing: int = 0
    """Answers missing because the machine failed or the run is incomplete."""
    failed: int = 0
    """Unusable answers to samples that other runs scored. They count as the worst value."""
    undefined: int = 0
    """Completed answers without a value of the ranking metric, to samples for which other runs have a value."""


def answer_gaps(table: RunTable, metric: str) -> AnswerGaps:
    """Count the missing, failed and undefined answers of a pooled table. All counts are 0 for a single run."""
    missing = failed = undefined = 0
    by_sample = table.repeated.get(metric) or ((),) * len(table.outcomes)
    for status, outcomes, values in zip(table.status, table.outcomes, by_sample, strict=True) if table.outcomes else ():
        if status in (Status.SCORED, Status.MODEL_FAILED):
            lacking = outcomes.count(Status.INFRA_FAILED)
            missing += lacking
            failed += outcomes.count(Status.MODEL_FAILED) if status is Status.SCORED else 0
            # A sample without a value in all runs is left out of the row's mean, and noted there.
            undefined += values.count(None) - lacking if any(value is not None for value in values) else 0
    return AnswerGaps(missing=missing, failed=failed, undefined=undefined)


@dataclass(frozen=True, slots=True)
class Noise:
    """Variance that repetition adds to a single value and to each sample's mean, in the square of the metric's unit."""

    single: float
    means: Array

    @classmethod
    def of(cls, repeated: Array) -> Noise | None:
        """Estimate the noise from each sample's values over runs (NaN if missing); None if no sample has two values."""
        rows = [[value for value in row if not math.isnan(value)] for row in repeated.tolist()]
        freedom = sum(len(row) - 1 for row in rows)
        if not freedom:
            return None
        residuals = [value - math.fsum(row) / len(row) for row in rows for value in row]
        single = math.fsum(r**2 for r in residuals if abs(r) > _ROUNDING) / freedom
        return cls(single, single / np.array([len(row) for row in rows], dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSource:
    """A source of the uncertainty of a mean over samples."""

    deviation: float
    """Standard deviation of the source's effect on a sample's value in a single run, in the metric's displayed unit."""
    share: float
    """Share of the mean's variance, from 0 to 1; 0 if nothing varies."""
    negative: bool
    """Whether the variance was estimated below 0 and set to 0."""


VarianceParts: TypeAlias = Mapping[str, VarianceSource]
"""Name -> source: ``repositories`` (or ``files``), ``samples`` (within one of these) and ``repetition``. With a single
unit, the first is absent. If no unit has two samples, the second is absent and counted in the first."""


def variance_parts(values: Array, codes: Codes, noise: Noise, units: str = "repositories") -> VarianceParts:
    """Split the variance of a mean over samples by its sources. `codes` identifies the unit of each value."""
    unit = np.unique(codes, return_inverse=True)[1]
    sizes, sums, noise_sums = (np.bincount(unit, weights=of).astype(np.float64) for of in (None, values, noise.means))
    n, count, squares = len(values), len(sizes), _total(np.square(sizes))
    means = sums / sizes
    # Subtract the expected effect of repetition from the sums of squares.
    within = _total(np.square(values - means[unit])) - _total((1 - 1 / sizes) * noise_sums)
    between = _total(sizes * np.square(means - stats.mean(values))) - _total((1 / sizes - 1 / n) * noise_sums)
    of_samples = within / (n - count) if n > count else 0.0
    # Source -> variance of its effect on a single value, and its share in the variance of the mean.
    variances = {"repetition": (noise.single, _total(noise.means) / n**2)}
    if n > count:
        variances = {"samples": (of_samples, max(0.0, of_samples) / n)} | variances
    if count > 1:
        of_units = (between - (count - 1) * of_samples) / (n - squares / n)
        variances = {units: (of_units, max(0.0, of_units) * squares / n**2)} | variances
    whole = math.fsum(of_mean for _, of_mean in variances.values())
    return {
        name: VarianceSource(
            deviation=math.sqrt(max(0.0, variance)),
            share=of_mean / whole if whole > _ROUNDING**2 else 0.0,
            negative=variance < -_ROUNDING,
        )
        for name, (variance, of_mean) in variances.items()
    }


def _total(numbers: Array) -> float:
    return math.fsum(numbers.tolist())


def variance_text(parts: VarianceParts, *runs: RunInfo) -> str:
    """Describe each source's share of the variance of a mean, or of the difference of two runs."""
    if not any(source.share for source in parts.values()):
        return "nothing varies"
    shares = [
        f"{source.share:.0%} {name}{' (estimated below 0, set to 0)' * source.negative}"
        for name, source in parts.items()
    ]
    single = [run.strategy for run in runs if not run.repetitions]
    return ", ".join(shares) + "".join(f" (the repetition of {name}, a single run, is in samples)" for name in single)

"""Repeated runs: pool those that differ only in the seed, and split the variance of a mean among its sources. Pure.

A sample's value in a pooled table is its mean over the runs, so that intervals and tests count the noise of repetition
without knowing of it: they rest on units. How much of it there is says a nested analysis of variance with random
effects (unit, sample within unit, repetition within sample), by the method of moments on the samples'
means, which may have unequal numbers of samples and repetitions.

Source: Searle, Casella and McCulloch, Variance Components, 1992, chapters 3 and 5.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from ctxbench.harness.leaderboard import choices, stats
from ctxbench.harness.leaderboard.numbers import scale_of
from ctxbench.harness.leaderboard.stats import Array, Codes
from ctxbench.harness.results import PRICE, RunInfo, RunTable, Status, value_cases

_ROUNDING = 1e-9
"""Below this, two repetitions differ by what rounding left."""
_COUNTS_AS = (Status.EXCLUDED, Status.SCORED, Status.MODEL_FAILED)
"""Of the statuses of a sample in several runs the first of these holds for all; none: the machine failed in each."""


def pooled(tables: Sequence[RunTable]) -> list[RunTable]:
    """Pool the runs that differ only in the seed, each group in the place of its last run; others stay as they are.

    Imported runs, whose decoding nobody knows, are never pooled.

    Args:
        tables: one a run and language, oldest run first; of two with the same seed the newest complete one counts.
    """
    groups: dict[str, list[RunTable]] = {}
    for table in tables:
        key = _without_seed(table.run)
        groups[key] = [*groups.pop(key, []), table]
    return [_pool(members) if len(members) > 1 else members[0] for members in map(_by_seed, groups.values())]


def _by_seed(members: Sequence[RunTable]) -> list[RunTable]:
    if len(members) == 1:
        return list(members)
    distinct = choices.newest(members, _seed)
    return sorted(distinct, key=lambda table: _seed(table.run))


def _seed(run: RunInfo) -> int:
    return int(json.loads(run.sampling).get("seed", 0))


def _without_seed(run: RunInfo) -> str:
    """Return what decides a run's numbers besides its seed; all of it where that is unknown, or pooled already."""
    if not run.sampling or run.repetitions:
        return repr(run)
    sampling = json.dumps(json.loads(run.sampling, parse_int=float) | {"seed": None}, sort_keys=True)
    versions = dict(sorted(run.versions.items()))
    return repr(replace(run, id="", sampling=sampling, versions=versions, loads=(), remarks=(), offline={}))


def _pool(members: Sequence[RunTable]) -> RunTable:
    """Pool two runs or more, by seed; a sample that one of them was not to do is missing there."""
    places = [{sample: place for place, sample in enumerate(table.sample)} for table in members]
    samples = list(dict.fromkeys(itertools.chain.from_iterable(table.sample for table in members)))

    def across(columns: Sequence[Sequence[Any]], default: Any = None) -> list[tuple[Any, ...]]:
        """Return the cells of each sample, one a run."""
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
        """Return each sample's mean over the runs that completed it; None, if `whole`, where it lacks one of these."""
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
    """Return what a sample counts as in one run; an excluded one, which counts nowhere, keeps its value."""
    if status is Status.EXCLUDED:
        return own
    cases = value_cases(
        scored=status is Status.SCORED, model_failed=status is Status.MODEL_FAILED, own=own, worst=worst
    )
    return next((value for holds, value in cases if holds), None)


def _mean(cells: Sequence[float | None]) -> float | None:
    present = [cell for cell in cells if cell is not None]
    return math.fsum(present) / len(present) if present else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGaps:
    """What some of several runs lack at samples that others completed: numbers of answers, one a sample and run."""

    missing: int = 0
    """The machine failed, or the run is not done."""
    failed: int = 0
    """Nothing usable, where others were scored; counted as the worst value."""
    undefined: int = 0
    """Completed without a value of the ranking metric, where others have one."""


def answer_gaps(table: RunTable, metric: str) -> AnswerGaps:
    """Count the gaps of a table, which has none if it is not pooled."""
    missing = failed = undefined = 0
    by_sample = table.repeated.get(metric) or ((),) * len(table.outcomes)
    for status, outcomes, values in zip(table.status, table.outcomes, by_sample, strict=True) if table.outcomes else ():
        if status in (Status.SCORED, Status.MODEL_FAILED):
            lacking = outcomes.count(Status.INFRA_FAILED)
            missing += lacking
            failed += outcomes.count(Status.MODEL_FAILED) if status is Status.SCORED else 0
            # What no run has a value of is left out of the row's mean, and said there.
            undefined += values.count(None) - lacking if any(value is not None for value in values) else 0
    return AnswerGaps(missing=missing, failed=failed, undefined=undefined)


@dataclass(frozen=True, slots=True)
class Noise:
    """What repetition alone adds to values that are means over runs, as variances in the square of the unit shown."""

    single: float
    """Of a value of a single run."""
    means: Array
    """Of each mean."""

    @classmethod
    def of(cls, repeated: Array) -> Noise | None:
        """Estimate it from the values of each sample in each run, NaN where it has none; None if none has two."""
        rows = [[value for value in row if not math.isnan(value)] for row in repeated.tolist()]
        freedom = sum(len(row) - 1 for row in rows)
        if not freedom:
            return None
        residuals = [value - math.fsum(row) / len(row) for row in rows for value in row]
        single = math.fsum(r**2 for r in residuals if abs(r) > _ROUNDING) / freedom
        return cls(single, single / np.array([len(row) for row in rows], dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceSource:
    """One source of the uncertainty of a mean over samples."""

    deviation: float
    """Standard deviation of its effect on a value of a single run, in the unit shown."""
    share: float
    """Its part, 0 to 1, of the variance of the mean; 0 if nothing varies."""
    negative: bool
    """Whether its variance was estimated below 0, and set to 0."""


VarianceParts: TypeAlias = Mapping[str, VarianceSource]
"""``repositories`` (or ``files`` of one), ``samples`` (within such a unit) and ``repetition``; without the first of a
single unit, and without the second, which is then part of the first, where no unit has two samples."""


def variance_parts(values: Array, codes: Codes, noise: Noise, units: str = "repositories") -> VarianceParts:
    """Split the variance of the mean of values, a sample each; `codes` says which of the `units` each is of."""
    unit = np.unique(codes, return_inverse=True)[1]
    sizes, sums, noise_sums = (np.bincount(unit, weights=of).astype(np.float64) for of in (None, values, noise.means))
    n, count, squares = len(values), len(sizes), _total(np.square(sizes))
    means = sums / sizes
    # Sums of squares without what repetition alone is expected to add to them.
    within = _total(np.square(values - means[unit])) - _total((1 - 1 / sizes) * noise_sums)
    between = _total(sizes * np.square(means - stats.mean(values))) - _total((1 / sizes - 1 / n) * noise_sums)
    of_samples = within / (n - count) if n > count else 0.0
    # Source -> variance of its effect on a single value, and on the mean.
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
    """Say how the variance of a mean, or of a difference of means of these runs, is made up; the end of a sentence."""
    if not any(source.share for source in parts.values()):
        return "nothing varies"
    shares = [
        f"{source.share:.0%} {name}{' (estimated below 0, set to 0)' * source.negative}"
        for name, source in parts.items()
    ]
    single = [run.strategy for run in runs if not run.repetitions]
    return ", ".join(shares) + "".join(f" (that of the single run of {name} is in samples)" for name in single)

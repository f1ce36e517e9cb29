"""Compares runs in pairs: differences by metric, unit and level."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.harness.leaderboard import pairs, stats
from ctxbench.harness.leaderboard.pairs import Difference, Paired
from ctxbench.harness.leaderboard.scales import Scale, scale_of
from ctxbench.harness.leaderboard.selection import coders_of, default_metric
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.metrics import BIT_METRICS
from ctxbench.harness.results import RunInfo, RunTable


@dataclass(frozen=True, slots=True, kw_only=True)
class InUnit:
    """Means of two runs in one repository or file, over samples that both completed, in the metric's unit."""

    name: str
    n: int
    this: float
    other: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDifference:
    """Means of two runs at one level and their difference, over samples that both completed, in the metric's unit.

    Differences by level are not tested, so they need no correction.
    """

    level: str
    n: int
    this: float
    other: float
    mean: float
    """Difference of the means: this run minus the other run."""
    low: float | None
    """Lower end of the difference's 95% interval; None without an interval."""
    high: float | None
    over: IntervalScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The comparison of two runs by one metric."""

    this: RunInfo
    other: RunInfo
    metric: str
    unit: str
    difference: Difference
    units: tuple[InUnit, ...]
    levels: tuple[LevelDifference, ...] = ()
    paired: Paired = field(repr=False, compare=False)
    """Values of both runs, sample by sample."""
    lower_is_better: bool = False


def compare(tables: Sequence[RunTable], *, metric: str | None = None) -> tuple[Compared, ...]:
    """Compare every run with the first run, by metric. The p-values of a metric are corrected for all tested pairs.

    Controls are compared without a test.

    Args:
        tables: two runs or more over the same sample set, in one language and metric profile.
        metric: the only metric to compare; None for all metrics that the runs share, the ranking metric first. Bits
            from different models are not compared.

    Raises:
        InputFault: if there are fewer than two runs, or the runs or the metric cannot be compared.
        UnknownName: if the runs do not share the metric.
    """
    _check(tables)
    first, *others = tables
    shared = sorted(set.intersection(*(set(table.metrics) for table in tables)))
    if metric is not None and metric not in shared:
        raise UnknownName("metric that these runs share", metric, shared)
    if len(coders := coders_of([table.run for table in tables])) > 1:
        if metric in BIT_METRICS:
            raise InputFault(
                f"different models measured {metric} for these runs ({', '.join(map(repr, coders))}), "
                "in different units",
                cure="compare another metric, or repeat the runs with one model that measures contexts",
            )
        shared = [name for name in shared if name not in BIT_METRICS]
    ranking = default_metric(shared, first.run)
    names = [metric] if metric else sorted(set(shared), key=lambda name: (name != ranking, name))
    return tuple(itertools.chain.from_iterable(_metric(first, others, name) for name in names))


def largest_differences(pair: Compared, count: int) -> list[tuple[str, float]]:
    """Return (sample id, this run minus the other) for up to `count` largest differences, best for this run first.

    Differences of 0 are left out. If `count` is at least 2, the largest difference in each direction is included. Equal
    differences are sorted by sample id.
    """
    gaps = zip(pair.paired.samples, pair.paired.gap.values.tolist(), strict=True)
    gains = {sample: -gap if pair.lower_is_better else gap for sample, gap in gaps if gap}
    order = sorted(gains, key=lambda sample: (-abs(gains[sample]), sample))
    sides = [[sample for sample in order if (gains[sample] > 0) is ahead][:1] for ahead in (True, False)]
    samples = list(dict.fromkeys([*sides[0], *sides[1], *order]))[:count]
    sign = -1 if pair.lower_is_better else 1
    return [(sample, sign * gains[sample]) for sample in sorted(samples, key=lambda sample: (-gains[sample], sample))]


def _metric(first: RunTable, others: Sequence[RunTable], metric: str) -> list[Compared]:
    metric_scale = scale_of(first.run.profile, metric)
    text = f"0/{first.run.samples_digest}/{first.run.language}/all/{metric}"
    levels = dict(zip(first.sample, first.level, strict=True))
    # All pairs share the codes of units, because their units flip together.
    samples = pairs.Samples((first, *others))
    base_column, *columns = [pairs.RunArrays(table, samples).column(metric, metric_scale) for table in (first, *others)]
    paired = [pairs.align(column, base_column) for column in columns]
    differences = pairs.differences(paired, metric_scale)
    # Controls see the answer or nothing, so they are described but not tested.
    tested = [place for place, other in enumerate(others) if not first.run.control and not other.run.control]
    found = pairs.corrected(
        [differences[place] for place in tested], [paired[place] for place in tested], metric_scale, seed=text
    )
    for place, difference in zip(tested, found, strict=True):
        differences[place] = difference
    return [
        Compared(
            this=other.run,
            other=first.run,
            metric=metric,
            unit=metric_scale.unit,
            difference=difference,
            units=_by_unit(pair),
            levels=_by_level(pair, levels, metric_scale),
            paired=pair,
            lower_is_better=metric_scale.lower_is_better,
        )
        for other, pair, difference in zip(others, paired, differences, strict=True)
    ]


def _by_unit(pair: Paired) -> tuple[InUnit, ...]:
    rows = []
    for code in pair.gap.codes.tolist():
        mine = pair.codes == code
        means = stats.mean(pair.this[mine]), stats.mean(pair.other[mine])
        rows.append(InUnit(name=pair.of.names[code], n=int(mine.sum()), this=means[0], other=means[1]))
    return tuple(rows)


def _by_level(pair: Paired, levels: Mapping[str, str], scale: Scale) -> tuple[LevelDifference, ...]:
    at = np.asarray([levels[sample] for sample in pair.samples], dtype=np.str_)
    gap = pair.gap.values
    rows = []
    for level in sorted(set(at.tolist())):
        mine = at == level
        of_level = stats.clustered(gap[mine], pair.codes[mine], pair.of.unit)
        estimate = stats.estimate_of(of_level, pairs.gap_bounds(scale))
        rows.append(
            LevelDifference(
                level=level,
                n=estimate.n,
                this=stats.mean(pair.this[mine]),
                other=stats.mean(pair.other[mine]),
                mean=stats.mean(gap[mine]),
                low=estimate.low,
                high=estimate.high,
                over=estimate.over,
            )
        )
    return tuple(rows)


def _check(tables: Sequence[RunTable]) -> None:
    if len(tables) < 2:
        raise InputFault("a comparison needs at least two runs", cure="name another run")
    first = tables[0].run
    for table in tables[1:]:
        run = table.run
        for what, mine, its in (
            ("sample sets", first.samples_digest, run.samples_digest),
            ("languages", first.language, run.language),
            ("metric profiles", first.profile, run.profile),
        ):
            if mine != its:
                raise InputFault(
                    f"runs {first.id} and {run.id} have different {what} ({mine[:12]}, {its[:12]})",
                    cure="compare runs of one sample set, language and profile; `ctxbench leaderboard` lists them",
                )

"""Two runs side by side: paired differences per metric, and where they come from: repositories, levels. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.harness.leaderboard import comparability, pairs, stats
from ctxbench.harness.leaderboard.choices import default_metric
from ctxbench.harness.leaderboard.columns import Scale, ScaleOf, repositories, scale_of, values
from ctxbench.harness.leaderboard.pairs import Difference, Paired
from ctxbench.harness.leaderboard.stats import IntervalScope
from ctxbench.harness.metrics.context import BIT_METRICS
from ctxbench.harness.results import RunInfo, RunTable


@dataclass(frozen=True, slots=True, kw_only=True)
class InRepository:
    """The two means in one repository, over the samples that both completed, in the unit shown."""

    repo: str
    n: int
    this: float
    other: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDifference:
    """The two means at one level, over the samples that both completed, and their difference, in the unit shown.

    Description only: a level has no p-value, so that looking at levels adds no comparison to the family.
    """

    level: str
    n: int
    this: float
    other: float
    mean: float
    """This run minus the other."""
    low: float | None
    """95% interval of the difference, None where it cannot be given; so is the next."""
    high: float | None
    over: IntervalScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One metric of one pair of runs."""

    this: RunInfo
    other: RunInfo
    metric: str
    unit: str
    difference: Difference
    repositories: tuple[InRepository, ...]
    levels: tuple[LevelDifference, ...] = ()
    """Sorted by name; one only where the samples have one level."""


def compare(
    tables: Sequence[RunTable], *, metric: str | None = None, seed: int = 0, scale: ScaleOf = scale_of
) -> tuple[Compared, ...]:
    """Compare every run with the first one, per metric; corrected by Holm over the pairs of one metric.

    Controls are compared without a test.

    Args:
        tables: two runs or more over the same sample set, in one language and metric profile.
        metric: only this one; None takes all that the runs share, the one that would rank first, but bits only if one
            model measured them in all of the runs.
        seed: decides drawn flips and bootstrap samples.
        scale: how a metric of a profile is shown.

    Raises:
        InputFault: if there is nothing to compare, or the runs are not comparable, by this metric or at all.
        UnknownName: if the runs do not share the metric.
    """
    _check(tables)
    first, *others = tables
    shared = sorted(set.intersection(*(set(table.metrics) for table in tables)))
    if metric is not None and metric not in shared:
        raise UnknownName("metric that these runs share", metric, shared)
    if len(coders := comparability.coders([table.run for table in tables])) > 1:
        if metric in BIT_METRICS:
            raise InputFault(
                f"{metric} of these runs was measured by different models ({', '.join(map(repr, coders))}), "
                "and bits of two models are two units",
                cure="compare them by another metric, or make the runs with one model that measures contexts",
            )
        shared = [name for name in shared if name not in BIT_METRICS]
    ranking = default_metric(shared, first.run)
    names = [metric] if metric else sorted(shared, key=lambda name: (name != ranking, name))
    return tuple(itertools.chain.from_iterable(_metric(first, others, name, seed, scale) for name in names))


def _metric(first: RunTable, others: Sequence[RunTable], metric: str, seed: int, scale: ScaleOf) -> list[Compared]:
    metric_scale = scale(first.run.profile, metric)
    base = values(first, metric, metric_scale)
    text = f"{seed}/{first.run.samples_digest}/{first.run.language}/all/{metric}"
    levels = dict(zip(first.sample, first.level, strict=True))
    aligned = [
        pairs.paired(values(other, metric, metric_scale), base, {**repositories(first), **repositories(other)})
        for other in others
    ]
    plain = [pairs.difference(pair, metric_scale, seed=text) for pair in aligned]
    controls = [first.run.control or other.run.control for other in others]
    # Description only, and no part of the family: what was made with the answer is no competitor.
    tested = iter(pairs.corrected([d for d, control in zip(plain, controls, strict=True) if not control]))
    differences = [pairs.untested(d) if control else next(tested) for d, control in zip(plain, controls, strict=True)]
    return [
        Compared(
            this=other.run,
            other=first.run,
            metric=metric,
            unit=metric_scale.unit,
            difference=difference,
            repositories=_by_repository(pair),
            levels=_by_level(pair, levels, metric_scale, seed=text),
        )
        for other, pair, difference in zip(others, aligned, differences, strict=True)
    ]


def _by_repository(pair: Paired) -> tuple[InRepository, ...]:
    repos = np.asarray(pair.repos, dtype=np.str_)
    rows = []
    for repo in sorted(set(pair.repos)):
        mine = repos == repo
        rows.append(
            InRepository(
                repo=repo,
                n=int(mine.sum()),
                this=stats.mean(pair.this[mine]),
                other=stats.mean(pair.other[mine]),
            )
        )
    return tuple(rows)


def _by_level(pair: Paired, levels: Mapping[str, str], scale: Scale, *, seed: str) -> tuple[LevelDifference, ...]:
    at = np.asarray([levels[sample] for sample in pair.samples], dtype=np.str_)
    gap = pairs.gap(pair.this, pair.other)
    rows = []
    for level in sorted(set(at.tolist())):
        mine = at == level
        repos = [repo for repo, is_at_level in zip(pair.repos, mine.tolist(), strict=True) if is_at_level]
        estimate = stats.estimate(gap[mine].tolist(), repos, seed=f"{seed}/{level}", bounds=pairs.gap_bounds(scale))
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
        raise InputFault("one run alone cannot be compared", cure="name two runs or more")
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
                    f"runs {first.id} and {run.id} are over different {what} ({mine[:12]}, {its[:12]})",
                    cure="compare runs of one sample set, language and profile; `ctxbench leaderboard` lists them",
                )

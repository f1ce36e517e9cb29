"""Estimates power before a run: how many repositories and samples the board's test needs to show a difference.

Stored runs provide the variances between and within repositories, which are estimated as in S. R. Searle, G. Casella
and C. E. McCulloch, Variance Components (1992), section 3.6.
"""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cutoffs import NO_CUTOFFS
from ctxbench.harness.leaderboard import scales, selection, signflip, stats
from ctxbench.harness.leaderboard.pairs import LEAST_FILES, NUMBERS, reach
from ctxbench.harness.leaderboard.repetitions import pooled
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, listed
from ctxbench.harness.leaderboard.signflip import step_down
from ctxbench.harness.leaderboard.stats import REPOSITORY, Array, Clustered
from ctxbench.harness.leaderboard.table import GroupBuilder, comparable
from ctxbench.harness.results import RunTable

REPOSITORIES = (6, 8, 12, 16, 24, 40, 64)
SAMPLES = (5, 10, 25, 50)
_BOARDS = 1_000
_DRAWS = 10_000
_CRITICAL_BOARDS = 4
_MANY = 100
"""Number of repositories above which the critical statistic is nearly constant."""
_FEW = 8
"""Maximum number of repositories for which each simulated board is tested: its critical statistic depends on all rows.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The variances of paired differences between and within repositories, in the square of the metric's unit."""

    between: float
    within: float

    def deviation(self, samples: float) -> float:
        """Return the standard deviation of a repository's mean over `samples` samples; `samples` may be infinite."""
        return math.sqrt(self.between + self.within / samples)


def spread(gap: Clustered) -> Spread | None:
    """Estimate the variances from the paired differences of two runs.

    Returns:
        The variances; None for fewer than `stats.FEWEST` repositories, one sample in each, or no variation.
    """
    count, n = len(gap.sums), len(gap.values)
    if count < stats.FEWEST or n == count:
        return None
    squares = math.fsum(np.square(gap.values).tolist())
    of_means = math.fsum((np.square(gap.sums) / gap.sizes).tolist())
    within = max(0.0, squares - of_means) / (n - count)
    mean_square = (of_means - math.fsum(gap.sums.tolist()) ** 2 / n) / (count - 1)
    size = (n - math.fsum(np.square(gap.sizes).tolist()) / n) / (count - 1)
    between = max(0.0, (mean_square - within) / size)
    return Spread(between=between, within=within) if between + within > 0 else None


def power(effect: float, deviation: float, repositories: int, *, rows: int = 2) -> float:
    """Return the probability of a significant difference for a row that is better than the baseline by `effect`.

    Args:
        effect: true mean difference, above 0.
        deviation: standard deviation of a repository's mean difference, in the same unit; may be 0.
        repositories: number of repositories of the planned run, all of one size.
        rows: number of rows on the board, 2 or more, including the baseline. The others equal the baseline, which is
            the hardest case.
    """
    ratio = effect / deviation if deviation else math.inf
    if signflip.smallest_p(repositories) > signflip.ALPHA:
        return 0.0
    # Beyond this ratio, even the smallest normal number drawn below changes nothing.
    ratio = min(ratio, 100.0)
    if repositories <= _FEW:
        boards = [_sums(scores, ratio) for scores in _boards(repositories, rows, _BOARDS)]
        # Single pairs can be tested in one batch.
        alone = signflip.p_values(np.concatenate(boards), seed="power") if rows == 2 else None
        p = [step_down(sums, seed="power").p[0] for sums in boards] if alone is None else alone
        return float(np.mean(np.array(p) <= signflip.ALPHA))
    critical = _critical(min(repositories, _MANY), rows)
    if critical is None:
        return 0.0
    sums = _normal(repositories) + ratio
    return float(np.mean(np.abs(sums.sum(axis=1)) > critical * np.sqrt(np.square(sums).sum(axis=1))))


WITHIN_ONE: Mapping[str, Spread] = {
    "es": Spread(between=4.0**2, within=15.0**2),
    "copyable_bits": Spread(between=15.0**2, within=22.0**2),
}
"""Metric -> typical variances between and within files of one repository, for line samples, in squared metric units.
Source: `scripts.one_repository`, `lc.repocoder` against `lc.infile` by `incontext`."""


def detectable(sizes: Sequence[int], spread: Spread, *, pairs: int = 1) -> float | None:
    """Return the mean difference that a test within one repository detects with 80% power.

    Args:
        sizes: number of samples of each file.
        spread: expected variances, from `WITHIN_ONE` or estimated from pilot runs by the function `spread`.
        pairs: number of comparisons that are corrected together, 1 or more.

    Returns:
        The difference, in the unit of `spread`'s standard deviations; None with fewer files than `LEAST_FILES`.
    """
    files, samples = len(sizes), sum(sizes)
    if files < LEAST_FILES:
        return None
    variance = spread.between * sum(size * size for size in sizes) + spread.within * samples
    return reach(files, pairs) * math.sqrt(variance * files) / samples


def repositories_needed(effect: float, deviation: float, *, rows: int = 2) -> int | None:
    """Return how many repositories show `effect` with 80% power: the smallest such number in `pairs.NUMBERS`, or None.

    Arguments are those of `power`.
    """
    low, high = 0, len(NUMBERS)
    while low < high:
        middle = (low + high) // 2
        if power(effect, deviation, NUMBERS[middle], rows=rows) >= stats.POWER:
            high = middle
        else:
            low = middle + 1
    return NUMBERS[low] if low < len(NUMBERS) else None


def _boards(repositories: int, rows: int, boards: int) -> Iterator[Array]:
    random = stats.generator(f"power/{repositories}/{rows}")
    for _ in range(boards):
        yield random.standard_normal((rows, repositories)) / math.sqrt(2)


def _sums(scores: Array, lead: float) -> Array:
    return np.array([scores[row] - scores[-1] + lead * (row == 0) for row in range(len(scores) - 1)])


@lru_cache(maxsize=256)
def _critical(repositories: int, rows: int) -> float | None:
    if rows == 2 and repositories > signflip.EXACT_UP_TO:
        # For a single pair, drawn flips approach Student's t, and the statistic is a function of t.
        t = stats.quantile(1 - signflip.ALPHA / 2, repositories - 1)
        return t * math.sqrt(repositories / (repositories - 1 + t * t))
    criticals = [
        step_down(_sums(scores, 0.0), seed="power").critical for scores in _boards(repositories, rows, _CRITICAL_BOARDS)
    ]
    return statistics.fmean(critical for critical in criticals if critical is not None) if all(criticals) else None


@lru_cache(maxsize=2)
def _normal(repositories: int) -> Array:
    draws = min(_DRAWS, max(2_000, _DRAWS * 32 // repositories))
    return stats.generator(f"power/{repositories}").standard_normal((draws, repositories))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Power of planned runs, estimated from stored runs of a sample set and generator."""

    samples: str
    language: str
    generator: str
    baseline: str
    strategies: tuple[str, ...]
    metric: str
    unit: str
    effect: float
    rows: int
    repositories: int
    samples_each: int
    """Mean number of samples per repository in the stored pairs."""
    between: float
    """Standard deviation of repositories' true mean differences (root mean square over the pairs), in `unit`."""
    within: float
    """Standard deviation of the differences of a repository's samples (root mean square over the pairs), in `unit`."""
    table: tuple[tuple[int, int, float], ...]
    needed: int | None
    """Number of repositories of `samples_each` samples that show the effect with 80% power; None if more than 1,000."""
    needed_at_least: int | None
    """`needed` with infinitely many samples per repository."""
    needed_by_pair: tuple[int | None, int | None]
    """`needed` for the pair that varies least, and for the pair that varies most."""

    def answer(self) -> str:
        """Return a sentence that states how many repositories are needed to show the effect."""
        size = "1 sample" if self.samples_each == 1 else f"{self.samples_each} samples"
        pair = "" if self.rows == 2 else f", corrected for {self.rows - 1} rows against the baseline"
        effect = scales.written(self.effect, self.effect)
        if self.needed is None:
            return f"A difference of {effect} {self.unit} needs more than {NUMBERS[-1]} repositories of {size}{pair}."
        more = f"; with more samples per repository, still {self.needed_at_least}"
        return (
            f"A difference of {effect} {self.unit} needs about {REPOSITORY.count(self.needed)} of {size} "
            f"(80% power at 5%{pair}){more if self.needed_at_least != self.needed else ''}."
        )

    def basis(self) -> str:
        """Return a sentence that names the runs behind the estimate and states how much their differences vary."""
        between, within = (scales.written(deviation, deviation) for deviation in (self.between, self.within))
        low, high = (f"more than {NUMBERS[-1]}" if needed is None else str(needed) for needed in self.needed_by_pair)
        span = f"; the pair that varies least needs {low}, the pair that varies most {high}"
        return (
            f"Estimated from {self.baseline} and {listed(self.strategies)} "
            f"on {REPOSITORY.count(self.repositories)}: mean differences of repositories vary by {between} "
            f"{self.unit}, samples in one repository by {within} (standard "
            f"deviations){span if len(self.strategies) > 1 else ''}."
        )


def plans(
    tables: Sequence[RunTable], *, baseline: str, effect: float, metric: str | None = None, rows: int = 2
) -> tuple[list[Plan], list[InputFault]]:
    """Estimate how many repositories show a difference from a baseline, for each group of runs that has the baseline.

    Args:
        baseline: a strategy (spec or name), or a run id.
        effect: the difference to detect, in the metric's displayed unit, above 0.
        metric: metric of the difference; None for the ranking metric.
        rows: number of rows on the planned board, including the baseline.

    Returns:
        The plans, and the reasons why other groups with the baseline have none.

    Raises:
        UnknownName: if no run has the metric or the baseline.
    """
    tables = selection.file_labelled(tables)
    strategy_by_run = {table.run.id: table.run.strategy for table in tables}
    strategy = strategy_by_run.get(baseline, baseline)
    selection.check(tables, metric, strategy)
    plans_by_group: list[Plan] = []
    faults: list[InputFault] = []
    for members in comparable(tables).values():
        if baseline in strategy_by_run and all(table.run.id != baseline for table in members):
            continue
        # Use the named run of the baseline, or its newest run.
        named = [table for table in members if table.run.id == baseline]
        others = [table for table in members if not (named and table.run.strategy == strategy)]
        maker = GroupBuilder(
            selection.of_one_coder(selection.newest(pooled([*others, *named])), members),
            ALL_LEVELS,
            metric=metric,
            baseline=strategy,
            all_pairs=True,
            cutoffs=NO_CUTOFFS,
        )
        base = maker.base
        if base is None or not selection.is_named(strategy, maker.tables[base].run.strategy):
            continue
        try:
            plans_by_group.append(_plan(maker, base, effect, rows))
        except InputFault as fault:
            faults.append(fault)
    return plans_by_group, faults


def _plan(maker: GroupBuilder, base: int, effect: float, rows: int) -> Plan:
    run, metric = maker.tables[base].run, maker.metric
    others = [index for index in maker.ranked if index != base] if base in maker.ranked else []
    gaps = [pair.gap for pair in maker.aligned([(index, base) for index in others], metric)]
    spreads = {index: spread(gap) for index, gap in zip(others, gaps, strict=True) if len(gap.sums)}
    estimated = {index: estimate for index, estimate in spreads.items() if estimate is not None}
    if not estimated:
        raise _untold(maker, base, max((len(gap.sums) for gap in gaps), default=0))
    repositories = max(len(gap.sums) for gap in gaps)
    samples_each = max(1, round(sum(len(gap.values) for gap in gaps) / sum(len(gap.sums) for gap in gaps)))
    both = Spread(
        between=statistics.fmean(estimate.between for estimate in estimated.values()),
        within=statistics.fmean(estimate.within for estimate in estimated.values()),
    )
    deviations = sorted(estimate.deviation(samples_each) for estimate in estimated.values())
    least, most = (repositories_needed(effect, deviation, rows=rows) for deviation in (deviations[0], deviations[-1]))
    return Plan(
        samples=run.samples,
        language=run.language,
        generator=run.generator,
        baseline=run.strategy,
        strategies=tuple(maker.tables[index].run.strategy for index in estimated),
        metric=metric,
        unit=maker.scales[metric].unit,
        effect=effect,
        rows=rows,
        repositories=repositories,
        samples_each=samples_each,
        between=math.sqrt(both.between),
        within=math.sqrt(both.within),
        table=tuple(
            (count, size, power(effect, both.deviation(size), count, rows=rows))
            for count in REPOSITORIES
            for size in SAMPLES
        ),
        needed=repositories_needed(effect, both.deviation(samples_each), rows=rows),
        needed_at_least=repositories_needed(effect, both.deviation(math.inf), rows=rows),
        needed_by_pair=(least, most),
    )


def _untold(maker: GroupBuilder, base: int, repositories: int) -> InputFault:
    run = maker.tables[base].run
    place = f"{run.samples}, {run.language}, {run.generator}"
    name = run.samples.partition("[")[0]
    generator = shlex.quote(run.generator.removesuffix(" [fim]"))
    command = f"`ctxbench run --samples {name} --strategy SPEC --generator {generator}`"
    if base not in maker.ranked:
        return InputFault(
            f"{run.strategy} is not ranked by {maker.metric}: it is a control, incomplete, or has no values",
            where=place,
            cure="name a ranked baseline or another --metric, or complete the run",
        )
    if not repositories:
        return InputFault(
            f"no other run is paired with {run.strategy}, so the variance of differences is unknown",
            where=place,
            cure=f"store a run of another strategy: {command}",
        )
    if repositories < stats.FEWEST:
        return InputFault(
            f"the runs share {REPOSITORY.count(repositories)}, and an estimate needs at least {stats.FEWEST}",
            where=place,
            cure=f"store both runs over a set with more repositories: {command}",
        )
    return InputFault(
        "the stored pairs never differ, or have one sample per repository, so the variance of differences is unknown",
        where=place,
        cure=f"store a run of another strategy, with several samples per repository: {command}",
    )

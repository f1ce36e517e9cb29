"""Paired differences of runs over samples that both completed, and a group's runs as arrays."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ctxbench.harness.leaderboard import signflip, stats
from ctxbench.harness.leaderboard.repetitions import Noise, VarianceParts, variance_parts
from ctxbench.harness.leaderboard.scales import Outcomes, Scale
from ctxbench.harness.leaderboard.signflip import step_down
from ctxbench.harness.leaderboard.stats import REPOSITORY, Array, Clustered, Codes, FlipUnit, IntervalScope
from ctxbench.harness.results import RunTable

Places: TypeAlias = NDArray[np.intp]

NUMBERS = (
    *range(signflip.LEAST, 20), *range(20, 50, 2), *range(50, 100, 5), *range(100, 200, 10), *range(200, 500, 50),
    *range(500, 1001, 100),
)  # fmt: skip
"""Possible values of `Difference.needed`, with larger steps where estimates are less exact."""
_NOISE = 1e-9
"""Differences and standard errors below this are rounding errors and count as 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Paired difference of two runs (this minus the other) in the metric's displayed unit. Unknown numbers are None."""

    n_common: int
    units: int
    """Number of units (repositories or files) with a common sample. The test flips whole units."""
    mean: float | None
    low: float | None
    """Lower end of the 95% interval; None if unknown. The interval of a tested pair belongs to the test: it excludes 0
    exactly if p is at most 5%."""
    high: float | None
    over: IntervalScope
    p: float | None
    """Two-sided p-value by sign flips of whole units, corrected for `pairs` comparisons (step-down maximum statistic).
    None for untested pairs."""
    pairs: int
    visible: float | None
    """Smallest difference that this pair's data can show (80% power at 5%, corrected like `p`). None if untested, if no
    difference can be shown, or if nothing varies."""
    needed: int | None
    """Approximate number of units that would show a difference like this one (80% power, corrected). None if it is
    already significant, or if unknown."""
    wins: int
    ties: int
    losses: int
    variance: VarianceParts = field(default_factory=dict)
    """Sources of the mean's variance; empty if neither run was repeated."""
    unit: FlipUnit = REPOSITORY

    def __neg__(self) -> Difference:
        mean, low, high = (None if end is None else -end for end in (self.mean, self.high, self.low))
        return replace(self, mean=mean, low=low, high=high, wins=self.losses, losses=self.wins)

    @property
    def significant(self) -> bool:
        """Whether the runs differ significantly at 5%, after the correction."""
        return self.p is not None and self.p <= signflip.ALPHA

    @property
    def claim(self) -> str:
        """The sentence that limits the test's claim to one repository; empty if untested or without such a limit."""
        return "" if self.p is None else self.unit.claim(self.units)

    @property
    def decidable(self) -> bool:
        """Whether a difference over this many units can be significant."""
        return signflip.smallest_p(self.units) <= signflip.ALPHA


@dataclass(frozen=True, slots=True)
class Paired:
    """Values of two runs on the samples that both completed, sorted by sample."""

    this: Array
    other: Array
    gap: Clustered
    places: Places
    of: Samples
    variance: VarianceParts = field(default_factory=dict)
    """Sources of the mean difference's variance; empty if neither run was repeated."""

    @property
    def codes(self) -> Codes:
        """Integer code of each sample's unit (repository or file)."""
        return self.of.codes[self.places]

    @property
    def samples(self) -> list[str]:
        """Ids of the samples."""
        return [self.of.ids[place] for place in self.places.tolist()]


def gap(this: Array, other: Array) -> Array:
    """Subtract two runs' values, sample by sample.

    Rounding errors become 0: the mean of three equal completions may differ from one completion in the last bit.
    """
    gaps = this - other
    gaps[np.abs(gaps) < _NOISE] = 0.0
    return gaps


def differences(aligned_pairs: Sequence[Paired], scale: Scale) -> list[Difference]:
    """Return the difference of each pair without a test; `corrected` adds the tests."""
    return [_difference(pair, scale) for pair in aligned_pairs]


def _difference(pair: Paired, scale: Scale) -> Difference:
    gap, estimate = pair.gap.values, stats.estimate_of(pair.gap, gap_bounds(scale))
    better = -gap if scale.lower_is_better else gap
    return Difference(
        n_common=len(gap),
        units=estimate.units,
        mean=estimate.mean,
        low=estimate.low,
        high=estimate.high,
        over=estimate.over,
        p=None,
        pairs=0,
        visible=None,
        needed=None,
        wins=int(np.count_nonzero(better > 0)),
        ties=int(np.count_nonzero(better == 0)),
        losses=int(np.count_nonzero(better < 0)),
        variance=pair.variance,
        unit=estimate.unit,
    )


def corrected(
    family: Sequence[Difference], aligned_pairs: Sequence[Paired], scale: Scale, *, seed: str
) -> list[Difference]:
    """Test the pairs of one question together, and return their differences with p-values and intervals.

    `family` are the `differences` of these pairs. All pairs must use the same code for the same unit.
    """
    tested = [place for place, difference in enumerate(family) if difference.n_common]
    if not tested:
        return list(family)
    gaps = [aligned_pairs[place].gap for place in tested]
    sums, sizes = np.zeros((2, len(gaps), 1 + max(int(gap.codes[-1]) for gap in gaps)))
    for row, gap in enumerate(gaps):
        sums[row, gap.codes], sizes[row, gap.codes] = gap.sums, gap.sizes
    # The family's units are those with a sample in some pair.
    present = np.unique(np.concatenate([gap.codes for gap in gaps]))
    found = step_down(sums[:, present], sizes[:, present], seed=seed)
    differences = list(family)
    ends = zip(found.low.tolist(), found.high.tolist(), strict=True)
    for place, gap, p, interval in zip(tested, gaps, found.p.tolist(), ends, strict=True):
        tested_pair = replace(_within(family[place], interval, scale), p=p, pairs=len(tested))
        error = gap.error if tested_pair.units > 1 else None
        differences[place] = replace(
            tested_pair,
            visible=_visible(tested_pair, error, found.critical),
            needed=None if tested_pair.significant else _needed(tested_pair, error),
        )
    return differences


def _within(difference: Difference, interval: tuple[float, float], scale: Scale) -> Difference:
    if not difference.wins and not difference.losses:
        return difference
    if not any(map(math.isfinite, interval)):
        return replace(difference, low=None, high=None, over=IntervalScope.NONE)
    least, most = gap_bounds(scale) or (-math.inf, math.inf)
    low, high = max(interval[0], least), min(interval[1], most)
    return replace(
        difference,
        low=low if math.isfinite(low) else None,
        high=high if math.isfinite(high) else None,
        over=IntervalScope.FLIPS,
    )


def _visible(difference: Difference, error: float | None, critical: float | None) -> float | None:
    """Return the difference that is significant with about 80% power, given standard error and critical statistic."""
    count = difference.units
    # Without variation the sensitivity is unknown, which does not mean that any difference would be significant.
    if not difference.decidable or error is None or error <= _NOISE or critical is None or critical**2 >= count:
        return None
    # The statistic is a function of Student's t of the sums.
    t = critical * math.sqrt((count - 1) / (count - critical**2))
    return (t + stats.quantile(stats.POWER, count - 1)) * error


def _needed(difference: Difference, error: float | None) -> int | None:
    """Return how many units like these would show a mean difference as large as this one."""
    mean, count = abs(difference.mean or 0.0), difference.units
    # Fewer units give no standard error over units.
    if error is None or count < stats.FEWEST or mean <= _NOISE:
        return None
    ratio = mean / (error * math.sqrt(count)) if error > _NOISE else math.inf
    larger = [number for number in NUMBERS if number > count]
    # More units show smaller differences, so a binary search suffices.
    place = bisect_left(larger, True, key=lambda number: reach(number, difference.pairs) <= ratio)
    return larger[place] if place < len(larger) else None


@lru_cache(maxsize=4096)
def reach(units: int, pairs: int) -> float:
    """Return the mean difference that is detected with 80% power, in standard deviations between units' means."""
    df = units - 1
    t = stats.quantile(1 - signflip.ALPHA / (2 * pairs), df) + stats.quantile(stats.POWER, df)
    return t / math.sqrt(units)


def gap_bounds(scale: Scale) -> tuple[float, float] | None:
    """Return the range of the difference of two values on a scale; None for an unbounded scale."""
    return None if scale.range is None else (scale.range[0] - scale.range[1], scale.range[1] - scale.range[0])


def best(scale: Scale, bounds: tuple[float, float]) -> float:
    """Return the better of two bounds: the lower bound if lower values are better, otherwise the upper bound."""
    return bounds[0] if scale.lower_is_better else bounds[1]


LEAST_FILES = 10
"""Minimum number of files to test within one repository. Fewer cause too many false positives (docs/statistics.md)."""


def units_of(repos: Mapping[str, str], files: Mapping[str, str]) -> tuple[FlipUnit, Mapping[str, str]]:
    """Return the kind of unit that a test over some samples flips, and each sample's unit by sample id.

    The unit is the repository, or the file if all samples are from one repository. If files are unknown, too few or too
    uneven in size, the unit is the repository and states why files are not tested.

    Args:
        repos: repository of every sample, by sample id.
        files: file of each sample whose file is known, by sample id.
    """
    if len(set(repos.values())) != 1:
        return stats.REPOSITORY, repos
    [repo] = set(repos.values())
    sizes = Counter(files.values())
    if len(files) < len(repos):
        refusal = f"the files of some samples of {repo} are unknown"
    elif len(sizes) < LEAST_FILES:
        refusal = f"all samples are of {FlipUnit('file', repo).count(len(sizes))}, but {LEAST_FILES} are needed"
    elif 2 * max(sizes.values()) >= len(repos):
        refusal = f"one file of {repo} has at least half of the samples"
    else:
        return FlipUnit("file", repo), files
    return FlipUnit(refusal=refusal), repos


class Samples:
    """The samples of all runs of a group, sorted, and their units."""

    def __init__(self, tables: Sequence[RunTable]) -> None:
        # Most runs have the same samples, so each distinct list is read once.
        distinct = dict.fromkeys((table.sample, table.repo, table.path) for table in tables)
        repos = {sample: repo for ids, of, _ in distinct for sample, repo in zip(ids, of, strict=True)}
        files = {sample: path for ids, _, of in distinct if of for sample, path in zip(ids, of, strict=True) if path}
        self.unit, names = units_of(repos, files)
        self.ids = sorted(repos)
        self.names = sorted(set(names.values()))
        self.codes: Codes = stats.coded([names[id_] for id_ in self.ids])
        place = {id_: index for index, id_ in enumerate(self.ids)}
        self._places = {ids: np.array([place[id_] for id_ in ids], dtype=np.intp) for ids, *_ in distinct}

    def places(self, table: RunTable) -> Places:
        """Return the positions of a run's samples among all samples, in the run's order."""
        return self._places[table.sample]


@dataclass(frozen=True)
class MetricColumn:
    """One metric of a run: values of the samples that count, in the run's order and the metric's displayed unit."""

    values: Array
    rows: Places
    places: Places
    samples: Samples
    with_invalid: float | None
    """Mean of these values and those of invalid samples; None without values."""
    noise: Noise | None = None
    """Variance that repetition adds to these values; None for a single run, or if no sample has two values."""

    def __bool__(self) -> bool:
        return len(self.values) > 0

    @property
    def whole(self) -> bool:
        """Whether every sample of the group has a value."""
        return len(self.values) == len(self.samples.ids)

    @cached_property
    def clustered(self) -> Clustered:
        """The values, grouped by unit."""
        return stats.clustered(self.values, self.samples.codes[self.places], self.samples.unit)

    def clustered_at(self, indices: Sequence[int]) -> Clustered:
        """Return the values at these positions of `values`, grouped by unit."""
        return stats.clustered(self.values[indices], self.samples.codes[self.places[indices]], self.samples.unit)

    @cached_property
    def variance(self) -> VarianceParts:
        """Sources of the mean's variance; empty without `noise`."""
        if self.noise is None:
            return {}
        return variance_parts(self.values, self.samples.codes[self.places], self.noise, self.samples.unit.plural)

    @cached_property
    def spread(self) -> Array:
        """The values at the positions of the group's samples; NaN for a sample without a value."""
        return self._spread(self.values)

    @cached_property
    def spread_noise(self) -> Noise:
        """Variance that repetition adds, at the positions of the group's samples; 0 without `noise`."""
        noise = self.noise or Noise(0.0, np.zeros(len(self.values)))
        return Noise(noise.single, self._spread(noise.means))

    def _spread(self, numbers: Array) -> Array:
        whole = np.full(len(self.samples.ids), np.nan)
        whole[self.places] = numbers
        return whole


class RunArrays:
    """One run of a group, with a column of values per metric."""

    def __init__(self, table: RunTable, samples: Samples) -> None:
        self.table = table
        self._samples = samples
        self._outcomes = Outcomes(table)

    def column(self, metric: str, scale: Scale) -> MetricColumn:
        """Return the column of a metric; without values if the run lacks the metric."""
        if metric not in self.table.metrics:
            return self._column(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0))
        own = self._outcomes.own(metric, scale)
        counting = self._outcomes.counting(own, scale)
        rows = np.flatnonzero(~np.isnan(counting))
        repeated = self.table.repeated.get(metric)
        noise = Noise.of(np.array(repeated, dtype=np.float64)[rows] * scale.factor) if repeated else None
        return self._column(counting[rows], rows, own[self._outcomes.excluded & ~np.isnan(own)], noise)

    def _column(self, values: Array, rows: Places, excluded: Array, noise: Noise | None = None) -> MetricColumn:
        every = [*values.tolist(), *excluded.tolist()]
        return MetricColumn(
            values=values,
            rows=rows,
            places=self._samples.places(self.table)[rows],
            samples=self._samples,
            with_invalid=math.fsum(every) / len(every) if every else None,
            noise=noise,
        )


def align(this: MetricColumn, other: MetricColumn) -> Paired:
    """Pair two runs' values over the samples that both have, sorted by sample."""
    this_values, other_values, samples = this.spread, other.spread, this.samples
    both = slice(None) if this.whole and other.whole else ~(np.isnan(this_values) | np.isnan(other_values))
    this_values, other_values = this_values[both], other_values[both]
    places = np.arange(len(samples.ids))[both]
    gaps = gap(this_values, other_values)
    clustered = stats.clustered(gaps, samples.codes[both], samples.unit)
    pair = Paired(this_values, other_values, clustered, places, samples)
    if not len(gaps) or this.noise is other.noise is None:
        return pair
    mine, its = this.spread_noise, other.spread_noise
    noise = Noise(mine.single + its.single, (mine.means + its.means)[both])
    return replace(pair, variance=variance_parts(gaps, pair.codes, noise, samples.unit.plural))

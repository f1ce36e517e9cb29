"""Means and 95% intervals of values clustered by a unit (repository or file), and Student's t.

Student's t is implemented here because scipy's quantiles differ between processors in the last bits.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.elementary import exp, log

FEWEST = 5
"""Minimum number of units for an interval over units."""
CONFIDENCE = 0.95
POWER = 0.8

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class IntervalScope(StrEnum):
    """The population that an interval covers."""

    REPOSITORIES = "repositories"
    FILES = "files"
    """Files of the samples' only repository."""
    SAMPLES = "samples"
    """More samples from the same repositories, because units are too few, or all values equal a bound or 0."""
    FLIPS = "flips"
    """Units like the tested ones. The interval belongs to the test that gives the p-value."""
    NONE = "none"


@dataclass(frozen=True, slots=True)
class FlipUnit:
    """The unit that a test flips as a whole: a repository, or a file of the only repository."""

    noun: str = "repository"
    repo: str = ""
    """Name of the only repository; empty if the unit is the repository."""
    refusal: str = ""
    """Why the files of the only repository cannot be tested; otherwise empty."""

    @property
    def plural(self) -> str:
        """Plural of the unit's noun."""
        return f"{self.noun}s" if self.repo else "repositories"

    def count(self, number: int) -> str:
        """Return a number of units with their noun: ``6 repositories``, ``37 files of mistune``."""
        return f"{number} {self.noun if number == 1 else self.plural}{f' of {self.repo}' if self.repo else ''}"

    def claim(self, number: int) -> str:
        """Return a sentence that limits a test's claim to one repository; empty if the units are repositories."""
        return f"Tested over {self.count(number)}; the claim is limited to this repository." if self.repo else ""


REPOSITORY = FlipUnit()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over samples with its 95% interval. Unknown numbers are None."""

    n: int
    units: int
    mean: float | None
    low: float | None
    high: float | None
    over: IntervalScope
    mean_of_repositories: float | None
    unit: FlipUnit = REPOSITORY
    mean_of_levels: float | None = None
    """Mean of the means of levels, for benchmarks that print it."""
    mean_with_invalid: float | None = None
    """Mean that includes the invalid samples (broken or vacuous)."""
    median: float | None = None
    """Median, only for bits, where a few samples can dominate the mean."""
    trimmed: float | None = None
    """Mean without the lowest and highest tenth, only for bits."""


def estimate(values: Sequence[float], repos: Sequence[str], *, bounds: tuple[float, float] | None = None) -> Estimate:
    """Estimate the mean of values, with an interval over repositories, or over samples for fewer than `FEWEST`.

    Args:
        repos: repository of each sample.
        bounds: range of the values, if any, which limits the interval. If all values equal one bound, or all
            differences are 0, the interval is a score interval over samples.
    """
    return estimate_of(clustered(np.asarray(values, dtype=np.float64), coded(repos)), bounds)


@dataclass(frozen=True)
class Clustered:
    """Values, with their sums by unit in the order of the units' names."""

    values: Array
    sums: Array
    sizes: Array
    codes: Codes
    unit: FlipUnit = REPOSITORY

    @cached_property
    def error(self) -> float:
        """Cluster-robust standard error of the mean; needs two units or more."""
        return cluster_error(self.sums, self.sizes)


def mean(values: Array) -> float:
    """Return the mean of one or more values. The sum is rounded once, so the order does not matter."""
    return math.fsum(values.tolist()) / len(values)


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the mean of one or more values without the lowest and the highest tenth."""
    cut = len(values) // 10
    return math.fsum(sorted(values)[cut : len(values) - cut]) / (len(values) - 2 * cut)


def coded(names: Sequence[str]) -> Codes:
    """Return the position of each sample's unit among the distinct names, sorted."""
    return np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)[1]


def clustered(values: Array, codes: Codes, unit: FlipUnit = REPOSITORY) -> Clustered:
    """Sum values by unit. `codes` identifies the unit of each value, as returned by `coded`."""
    sums, sizes = (np.bincount(codes, weights=weights).astype(np.float64) for weights in (values, None))
    present = np.flatnonzero(sizes)
    return Clustered(values, sums[present], sizes[present], present, unit)


def estimate_of(column: Clustered, bounds: tuple[float, float] | None = None) -> Estimate:
    """Estimate the mean of clustered values; `bounds` as in `estimate`."""
    x, sums = column.values, column.sums
    if not len(x):
        return Estimate(
            n=0, units=0, mean=None, low=None, high=None, over=IntervalScope.NONE,
            mean_of_repositories=None, unit=column.unit,
        )  # fmt: skip
    centre = mean(x)
    low, high, over = _interval(column, centre, bounds)
    return Estimate(
        n=len(x),
        units=len(sums),
        mean=centre,
        low=low,
        high=high,
        over=over,
        mean_of_repositories=centre if column.unit.repo else mean(sums / column.sizes),
        unit=column.unit,
    )


def cluster_error(sums: Array, sizes: Array) -> float:
    """Return the cluster-robust standard error of the mean over samples, for two clusters or more.

    The formula is ``sqrt(C / (C-1) * sum(r**2)) / n``: r is a cluster's sum of residuals, C the number of clusters.
    """
    count, n = len(sums), sizes.sum()
    residuals = sums - sizes * (math.fsum(sums.tolist()) / n)
    return math.sqrt(count / (count - 1) * math.fsum(np.square(residuals).tolist())) / float(n)


def generator(seed: str) -> np.random.Generator:
    """Return a random generator that depends only on the text of the seed."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16])))


def _interval(
    column: Clustered, centre: float, bounds: tuple[float, float] | None
) -> tuple[float | None, float | None, IntervalScope]:
    x, count = column.values, len(column.sums)
    if bounds and all(map(math.isfinite, bounds)) and (x == x[0]).all() and x[0] in (*bounds, 0.0):
        return (*_score(len(x), float(x[0]), bounds), IntervalScope.SAMPLES)
    if count >= FEWEST:
        error, df, over = column.error, count - 1, IntervalScope(column.unit.plural)
    elif len(x) > 1:
        variance = math.fsum(np.square(x - centre).tolist()) / (len(x) - 1)
        error, df, over = math.sqrt(variance / len(x)), len(x) - 1, IntervalScope.SAMPLES
    else:
        return None, None, IntervalScope.NONE
    half = quantile(1 - (1 - CONFIDENCE) / 2, df) * error
    least, most = bounds or (-math.inf, math.inf)
    return max(least, centre - half), min(most, centre + half), over


def _score(n: int, value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the score interval for n equal values: Wilson's at a bound, Tango's for differences that are all 0.

    An event that never occurs in n samples has a share of at most z^2 / (n + z^2).
    """
    z2 = 1.959963984540054**2
    low, high = bounds
    share = z2 / (n + z2)
    if value in bounds:
        reach = share * (high - low)
        return max(low, value - reach), min(high, value + reach)
    return share * low, share * high


_TINY = 1e-300
_EPSILON = 1e-16
_TERMS = 100_000
_LARGE = 64
"""Smallest argument for which the series in `_log_gamma_step` is exact to the last digit."""
_LOG_GAMMA_HALF = 0.5723649429247001


def cdf(t: float, df: float) -> float:
    """Return P(T <= t) for Student's t with `df` > 0 degrees of freedom."""
    tail = 0.5 * _incomplete_beta(df / 2, df / (df + t * t))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def quantile(p: float, df: float) -> float:
    """Return t with P(T <= t) = p, for 0 < p < 1 and `df` > 0.

    Bisects the lower half, where the distribution function keeps its relative precision.
    """
    if not (0 < p < 1 and df > 0):
        raise ValueError(f"no t quantile at p={p} with {df} degrees of freedom")
    if p == 0.5:
        return 0.0
    tail = min(p, 1 - p)
    low, high = -1.0, 0.0
    while cdf(low, df) > tail:
        low, high = 2 * low, low
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if cdf(middle, df) > tail:
            high = middle
        else:
            low = middle
    return middle if p < 0.5 else -middle


def _incomplete_beta(a: float, x: float) -> float:
    b = 0.5
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    log_front = _log_gamma_step(a) - _LOG_GAMMA_HALF + a * log(x) + b * log(1 - x)
    # The fraction converges fast only on this side of the mean. The other side follows by symmetry.
    if x < (a + 1) / (a + b + 2):
        return exp(log_front) * _fraction(a, b, x) / a
    return 1 - exp(log_front) * _fraction(b, a, 1 - x) / b


def _log_gamma_step(a: float) -> float:
    ratio = 1.0
    while a < _LARGE:
        ratio *= a / (a + 0.5)
        a += 1
    return log(ratio) + 0.5 * log(a) - 1 / (8 * a) + 1 / (192 * a * a * a) - 1 / (640 * a * a * a * a * a)


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for coefficient in (even, odd):
            d = 1 / _away_from_zero(1 + coefficient * d)
            c = _away_from_zero(1 + coefficient / c)
            value *= c * d
        if abs(c * d - 1) < _EPSILON:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY

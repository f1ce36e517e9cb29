"""Means and 95% intervals of values that are clustered by repository, tests of differences, and tiers. Pure.

The repository is the unit: samples of one repository resemble each other, so an interval that treats them as
independent is too narrow. With fewer than `FEWEST` repositories no interval over repositories can be given.

Differences are tested by flipping signs: under the null hypothesis a repository favours either strategy alike, so the
sign of its summed difference is a coin. All samples of a repository flip together: tests over samples (McNemar, paired
t) find differences that are not there when the advantage varies from repository to repository.
"""

from __future__ import annotations

import hashlib
import math
import string
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard import student

ALPHA = 0.05
EXACT_UP_TO = 16
"""Repositories up to which every flip is enumerated; above, flips are drawn."""
DRAWS = 20_000
TOLERANCE = 1e-9
"""Sums that are equal but for the rounding of their parts are ties, and ties count as hits."""
_FLIPS = 2_000
_ALONE = 1 << 18
"""Multiplications up to which a product of matrices is left to one thread: more threads wait for each other longer than
they work, the more so on a busy machine."""

FEWEST = 5
"""Fewest repositories over which an interval is given."""
CONFIDENCE = 0.95
POWER = 0.8
_RESAMPLES = 2000
_CHUNK = 1 << 20

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


class IntervalScope(StrEnum):
    """What an interval generalises to."""

    REPOSITORIES = "repositories"
    SAMPLES = "samples"
    """More samples of these same repositories: said so wherever it is shown."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over samples with its 95% interval; None where it cannot be given."""

    n: int
    repositories: int
    mean: float | None
    low: float | None
    high: float | None
    over: IntervalScope
    mean_of_repositories: float | None
    """Every repository weighs the same, whatever its number of samples."""
    bootstrap_low: float | None
    """Percentile cluster bootstrap, seeded; None with fewer than `FEWEST` repositories."""
    bootstrap_high: float | None
    mean_of_levels: float | None = None
    """Every level weighs the same, whatever its number of tasks; only of sets whose benchmark prints it."""
    mean_with_marked: float | None = None
    """The mean if the samples that are marked as broken or vacuous counted too."""


def estimate(
    values: Sequence[float], repos: Sequence[str], *, seed: str, bounds: tuple[float, float] | None = None
) -> Estimate:
    """Estimate the mean of aligned `values` and `repos`.

    Args:
        values: one number a sample.
        repos: the repository of each sample.
        seed: decides the bootstrap's draws.
        bounds: the range of the values, if they have one: the interval is cut to it, and values that all lie
            on one bound, or differences that all are 0, get a score interval over samples, because a spread of zero
            would claim certainty.
    """
    return estimates([clustered(np.asarray(values, dtype=np.float64), coded(repos))], seed=seed, bounds=bounds)[0]


@dataclass(frozen=True)
class Clustered:
    """Values, and what their repositories come to, in the order of the repositories' names."""

    values: Array
    sums: Array
    """Of the values of each repository that has one."""
    sizes: Array
    """Samples of each of these repositories."""
    codes: Codes
    """Of each of these repositories."""

    @cached_property
    def error(self) -> float:
        """The cluster-robust standard error of the mean; with two repositories or more."""
        return cluster_error(self.sums, self.sizes)


def mean(values: Array) -> float:
    """Return the mean of values, one or more; its sum is rounded once, so that their order cannot matter."""
    return math.fsum(values.tolist()) / len(values)


def coded(repos: Sequence[str]) -> Codes:
    """Return for each sample the place of its repository among the sorted names."""
    return np.unique(np.asarray(repos, dtype=np.str_), return_inverse=True)[1]


def clustered(values: Array, codes: Codes) -> Clustered:
    """Add aligned values up by repository."""
    sums, sizes = (np.bincount(codes, weights=weights).astype(np.float64) for weights in (values, None))
    present = np.flatnonzero(sizes)
    return Clustered(values, sums[present], sizes[present], present)


def estimates(
    columns: Sequence[Clustered], *, seed: str, bounds: tuple[float, float] | None = None, resampled: bool = True
) -> list[Estimate]:
    """Estimate the mean of each column, as `estimate` does; all of them draw the same repositories.

    Args:
        columns: what to estimate.
        seed: decides the bootstrap's draws.
        bounds: the range of the values, if they have one.
        resampled: whether the bootstrap's interval is asked for; it takes most of the time.
    """
    resampled_columns = [column if resampled and len(column.sums) >= FEWEST else None for column in columns]
    return [
        _estimate(column, bounds, drawn)
        for column, drawn in zip(columns, _bootstraps(resampled_columns, seed), strict=True)
    ]


def _estimate(
    column: Clustered, bounds: tuple[float, float] | None, drawn: tuple[float | None, float | None]
) -> Estimate:
    x, sums = column.values, column.sums
    if not len(x):
        return Estimate(
            n=0, repositories=0, mean=None, low=None, high=None, over=IntervalScope.NONE,
            mean_of_repositories=None, bootstrap_low=None, bootstrap_high=None,
        )  # fmt: skip
    centre = mean(x)
    low, high, over = _interval(column, centre, bounds)
    return Estimate(
        n=len(x),
        repositories=len(sums),
        mean=centre,
        low=low,
        high=high,
        over=over,
        mean_of_repositories=mean(sums / column.sizes),
        bootstrap_low=drawn[0],
        bootstrap_high=drawn[1],
    )


def cluster_error(sums: Array, sizes: Array) -> float:
    """Return the cluster-robust standard error of the mean over samples (two clusters or more).

    The variance of the clusters' summed residuals, with the C/(C-1) correction, over n squared.
    """
    count, n = len(sums), sizes.sum()
    residuals = sums - sizes * (math.fsum(sums.tolist()) / n)
    return math.sqrt(count / (count - 1) * math.fsum(np.square(residuals).tolist())) / float(n)


def generator(seed: str) -> np.random.Generator:
    """Return a random generator that depends on the seed's text only."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16])))


def _interval(
    column: Clustered, centre: float, bounds: tuple[float, float] | None
) -> tuple[float | None, float | None, IntervalScope]:
    x, count = column.values, len(column.sums)
    if bounds and all(map(math.isfinite, bounds)) and (x == x[0]).all() and x[0] in (*bounds, 0.0):
        return (*_score(len(x), float(x[0]), bounds), IntervalScope.SAMPLES)
    if count >= FEWEST:
        error, df, over = column.error, count - 1, IntervalScope.REPOSITORIES
    elif len(x) > 1:
        variance = math.fsum(np.square(x - centre).tolist()) / (len(x) - 1)
        error, df, over = math.sqrt(variance / len(x)), len(x) - 1, IntervalScope.SAMPLES
    else:
        return None, None, IntervalScope.NONE
    half = student.quantile(1 - (1 - CONFIDENCE) / 2, df) * error
    least, most = bounds or (-math.inf, math.inf)
    return max(least, centre - half), min(most, centre + half), over


def _score(n: int, value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the score interval for n equal values: Wilson's on a bound, Tango's for differences that are all 0.

    What was never seen in n samples happens in at most a share z^2 / (n + z^2) of all.
    """
    z2 = 1.959963984540054**2
    low, high = bounds
    share = z2 / (n + z2)
    if value in bounds:
        reach = share * (high - low)
        return max(low, value - reach), min(high, value + reach)
    return share * low, share * high


def _bootstraps(columns: Sequence[Clustered | None], seed: str) -> list[tuple[float | None, float | None]]:
    """Draw whole repositories with replacement; return the percentile intervals of the means over samples."""
    intervals: list[tuple[float | None, float | None]] = [(None, None)] * len(columns)
    places = [place for place, column in enumerate(columns) if column is not None]
    means = [_resampled(column, seed) for column in columns if column is not None]
    if means:
        ends = np.quantile(np.stack(means), [(1 - CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / 2], axis=1)
        for place, low, high in zip(places, *ends.tolist(), strict=True):
            intervals[place] = low, high
    return intervals


def _resampled(column: Clustered, seed: str) -> Array:
    """Return the means of all draws, shape (draws,)."""
    count = len(column.sums)
    sums = rounded(column.sums, 0, term_bits(count))
    totals = [sums.take(drawn).sum(axis=1) for drawn in _draws(seed, count)]
    return np.concatenate(totals) / _drawn_sizes(seed, column.sizes.tobytes())


@lru_cache(maxsize=8)
def _drawn_sizes(seed: str, sizes: bytes) -> Array:
    """Return how many samples each draw has; kept, since most rows have the same samples."""
    repository_sizes = np.frombuffer(sizes, dtype=np.float64)
    return np.concatenate([repository_sizes[drawn].sum(axis=1) for drawn in _draws(seed, len(repository_sizes))])


@lru_cache(maxsize=2)
def _draws(seed: str, count: int) -> tuple[NDArray[np.int64], ...]:
    """Draw repositories, shapes (draws, count); kept, since all rows of one metric draw alike."""
    random = generator(f"bootstrap/{seed}")
    step = max(1, _CHUNK // count)
    return tuple(
        random.integers(0, count, size=(min(step, _RESAMPLES - start), count)) for start in range(0, _RESAMPLES, step)
    )


def p_values(sums: Array, *, seed: str) -> Array:
    """Return the two-sided p-value of each row of repository sums of paired differences.

    The statistic is the absolute mean difference over samples; as the number of samples is fixed, the sum does.

    Args:
        sums: shape (tests, repositories).
        seed: decides the drawn flips; unused where the test is exact.
    """
    tests, repositories = sums.shape
    if not tests or not repositories:
        return np.ones(tests)
    # So rounded, every sum of theirs is exact, and hits do not depend on how a processor's BLAS adds.
    sums = rounded(sums, 1, term_bits(repositories))
    bar = np.abs(sums.sum(axis=1)) - TOLERANCE * np.abs(sums).sum(axis=1)
    if repositories <= EXACT_UP_TO:
        return np.array([_exact(row, least) for row, least in zip(sums, bar, strict=True)])
    hits = np.zeros(tests, dtype=np.int64)
    for flips in drawn_flips(seed, repositories):
        block = block_rows(flips)
        for start in range(0, tests, block):
            least = bar[start : start + block, np.newaxis]
            totals = sums[start : start + block] @ flips
            hit = np.abs(totals, out=totals) >= least
            hits[start : start + block] += [np.count_nonzero(row) for row in hit]
    return np.asarray((hits + 1) / (DRAWS + 1), dtype=np.float64)


def block_rows(flips: Array) -> int:
    """Return of how many rows the product with these flips, shape (repositories, flips), is left to one thread."""
    return max(2, _ALONE // flips.size)


def drawn_flips(seed: str, repositories: int) -> Iterator[Array]:
    """Yield all drawn signs, some at once, shape (repositories, draws)."""
    width = max(1, min(_FLIPS, _ALONE // (2 * repositories)))
    for chunk in _flips(seed, repositories):
        for start in range(0, _FLIPS, width):
            yield chunk[start : start + width].T.astype(np.float64)


@lru_cache(maxsize=2)
def _flips(seed: str, repositories: int) -> NDArray[np.int8]:
    """Draw signs, shape (chunks, `_FLIPS`, repositories); kept, since all pairs of one metric flip alike."""
    random = generator(f"signflip/{seed}")
    drawn = [random.integers(0, 2, size=(_FLIPS, repositories)).astype(np.int8) for _ in range(DRAWS // _FLIPS)]
    return np.stack(drawn) * np.int8(2) - np.int8(1)


def p_value(sums: Array, *, seed: str) -> float:
    """Return the p-value of one pair from its repository sums, shape (repositories,)."""
    return float(p_values(sums[np.newaxis, :], seed=seed)[0])


def smallest_p(repositories: int) -> float:
    """Return the smallest p-value that the test can reach with that many repositories."""
    return min(1.0, 2 / 2**repositories) if repositories <= EXACT_UP_TO else 1 / (DRAWS + 1)


def _exact(sums: Array, bar: float) -> float:
    # A flip and its mirror image have the same absolute sum: the first repository need not flip.
    totals = sums[:1]
    for repository_sum in sums[1:]:
        totals = np.concatenate((totals + repository_sum, totals - repository_sum))
    return float((np.abs(totals) >= bar).mean())


LEAST = next(count for count in range(1, EXACT_UP_TO + 1) if smallest_p(count) <= ALPHA)
"""Fewest repositories of which a difference can be significant."""


def standing(order: Sequence[int], beats: Collection[tuple[int, int]]) -> list[int]:
    """Return rows by mean, but none before one that beats it.

    Means may be over different samples: one over the easier of them can be higher, and its row the worse wherever the
    two can be compared.

    Args:
        order: rows, the best mean first.
        beats: pairs (winner, loser) that are told apart.
    """
    remaining, standings = list(order), []
    while remaining:
        unbeaten = (row for row in remaining if not any((other, row) in beats for other in remaining))
        standings.append(next(unbeaten, remaining[0]))
        remaining.remove(standings[-1])
    return standings


def rank_ranges(count: int, beats: Collection[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the best and the worst rank of each of `count` rows.

    Args:
        count: number of rows.
        beats: pairs (winner, loser) that are told apart; only these count.
    """
    better, worse = [0] * count, [0] * count
    for winner, loser in beats:
        better[loser] += 1
        worse[winner] += 1
    return tuple((1 + up, count - down) for up, down in zip(better, worse, strict=True))


def tier_letters(count: int, apart: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the compact letter display: two rows share a letter exactly if they are not told apart.

    Rows are given best first, so that "a" holds the best. Insert and absorb: begin with one letter for all; a pair
    told apart splits every letter that holds both; a letter within another is dropped.
    """
    columns: list[frozenset[int]] = [frozenset(range(count))] if count else []
    for pair in apart:
        split: list[frozenset[int]] = []
        for column in columns:
            split += [column - {row_index} for row_index in pair] if set(pair) <= column else [column]
        unique = list(dict.fromkeys(split))
        columns = [column for column in unique if not any(column < other for other in unique)]
    columns.sort(key=sorted)
    marks = [_mark(index) for index in range(len(columns))]
    return tuple("".join(m for m, column in zip(marks, columns, strict=True) if row in column) for row in range(count))


def _mark(index: int) -> str:
    """Return a, b, …, z, A, …, Z, then (53), (54), …: always readable one after the other."""
    return string.ascii_letters[index] if index < len(string.ascii_letters) else f"({index + 1})"

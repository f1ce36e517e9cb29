"""Tests differences by sign flips of whole repositories or files, for one pair or a family of pairs, and ranks rows.

docs/statistics.md explains the method. Family-wise error is controlled as in P. H. Westfall and S. S. Young,
Resampling-Based Multiple Testing (1993), algorithm 2.8 (step-down maxT).
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.float64 import rounded, term_bits
from ctxbench.harness.leaderboard.stats import Array, generator

ALPHA = 0.05
EXACT_UP_TO = 16
"""Maximum number of repositories for which every flip is enumerated. For more, flips are drawn at random."""
DRAWS = 20_000
TOLERANCE = 1e-9
"""Relative tolerance for ties. A flip that ties with the observation counts against it."""
_LEAST = 1e-6
"""Distance from 0 of an interval's end that must exclude 0. The distance is too small to be printed."""
_FLIPS = 2_000
_WIDTH = 2_000
_ALONE = 1 << 18
"""Maximum multiplications in a matrix product that runs in one thread. With more threads, waiting would take longer
than the work."""


def p_values(sums: Array, *, seed: str) -> Array:
    """Return the two-sided p-value of each row of `sums`, a test's paired differences summed by repository.

    The statistic is the absolute sum, equivalent to the absolute mean because the number of samples is fixed.

    Args:
        sums: shape (tests, repositories).
        seed: seed of drawn flips; unused if the test is exact.
    """
    tests, repositories = sums.shape
    if not tests or not repositories:
        return np.ones(tests)
    # Rounded sums are exact, so the result does not depend on the order in which a processor's BLAS adds.
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


def _exact(sums: Array, bar: float) -> float:
    # A flip and its mirror image have the same absolute sum: the first repository need not flip.
    totals = sums[:1]
    for repository_sum in sums[1:]:
        totals = np.concatenate((totals + repository_sum, totals - repository_sum))
    return float((np.abs(totals) >= bar).mean())


def smallest_p(repositories: int) -> float:
    """Return the smallest p-value that the test can reach with this many repositories."""
    return min(1.0, 2 / 2**repositories) if repositories <= EXACT_UP_TO else 1 / (DRAWS + 1)


LEAST = next(count for count in range(1, EXACT_UP_TO + 1) if smallest_p(count) <= ALPHA)
"""Minimum number of repositories for a significant difference."""


def drawn_flips(seed: str, repositories: int) -> Iterator[Array]:
    """Yield the drawn signs of all flips in chunks, shape (repositories, draws)."""
    width = max(1, min(_FLIPS, _ALONE // (2 * repositories)))
    for chunk in _flips(seed, repositories):
        for start in range(0, _FLIPS, width):
            yield chunk[start : start + width].T.astype(np.float64)


@lru_cache(maxsize=2)
def _flips(seed: str, repositories: int) -> NDArray[np.int8]:
    """Draw signs, shape (chunks, `_FLIPS`, repositories). Cached, because all pairs of a metric use the same flips."""
    random = generator(f"signflip/{seed}")
    drawn = [random.integers(0, 2, size=(_FLIPS, repositories)).astype(np.int8) for _ in range(DRAWS // _FLIPS)]
    return np.stack(drawn) * np.int8(2) - np.int8(1)


def block_rows(flips: Array) -> int:
    """Return how many rows can be multiplied at once with `flips`, shape (repositories, flips), in one thread."""
    return max(2, _ALONE // flips.size)


@dataclass(frozen=True, slots=True)
class StepDown:
    """The test results of a family of pairs."""

    p: Array
    """Two-sided p-value of each pair, corrected for all pairs."""
    critical: float | None
    """Statistic above which another pair would be significant at 5%. If all pairs are significant, the bound for the
    pair with the smallest statistic. None if there are too few flips for significance."""
    low: Array
    """Lower end of each pair's simultaneous 95% interval. Above 0 exactly if the difference is significantly positive;
    -inf if unbounded; NaN without `sizes`. `high` is the upper end."""
    high: Array


def step_down(sums: Array, sizes: Array | None = None, *, seed: str) -> StepDown:
    """Test a family of pairs together.

    The statistic of a pair is its absolute sum over the root of its sum of squares, so that all pairs have equal
    weight. It is 0 for a pair that never differs.

    Args:
        sums: sums of paired differences, shape (pairs, repositories), at least one of each; 0 if a pair has no sample
            of a repository.
        sizes: number of samples in each sum, same shape; None skips the intervals.
        seed: seed of drawn flips; unused up to `EXACT_UP_TO` repositories, where every flip is tried.
    """
    ordered = _Ordered(sums, seed)
    return ordered.tested() if sizes is None else ordered.bounded(ordered.tested(), sizes)


class _Ordered:
    def __init__(self, sums: Array, seed: str) -> None:
        self._seed = seed
        # Rounded sums are exact, so the result does not depend on the order in which a processor's BLAS adds.
        sums = rounded(sums, 1, term_bits(sums.shape[1]))
        scale = np.array([math.sqrt(math.fsum(np.square(row).tolist())) or 1.0 for row in sums])
        observed = np.abs(sums.sum(axis=1)) / scale
        self._order = np.argsort(observed, kind="stable")
        self._sums, self._scale = sums[self._order], scale[self._order, np.newaxis]
        self._bar = (observed - TOLERANCE * np.abs(sums).sum(axis=1) / scale)[self._order, np.newaxis]

    def tested(self) -> StepDown:
        pairs, repositories = self._sums.shape
        hits, flips = np.zeros(pairs, dtype=np.int64), 0
        for signs in flip_signs(self._seed, repositories):
            for rows, largest in self._largest(signs, pairs):
                hits[rows] += np.count_nonzero(largest >= self._bar[rows], axis=1)
            flips += signs.shape[1]
        # The observation counts as a flip. Enumerated flips include it; add it to drawn flips here.
        drawn = int(repositories > EXACT_UP_TO)
        p = np.maximum.accumulate(((hits + drawn) / (flips + drawn))[::-1])[::-1]
        adjusted = np.empty(pairs)
        adjusted[self._order] = p
        undecided = max(1, int(np.count_nonzero(p > ALPHA)))
        unknown = np.full(pairs, np.nan)
        return StepDown(adjusted, self._critical(undecided, math.floor(ALPHA * (flips + drawn))), unknown, unknown)

    def bounded(self, found: StepDown, sizes: Array) -> StepDown:
        """Return the tests with simultaneous intervals of the mean differences.

        Each candidate difference is subtracted from the pair's repository sums before flipping, and the largest
        statistic under each flip is taken over all pairs. The candidates that are not refuted form the interval. The
        step-down test finds more pairs significant than these intervals do, so the intervals of those pairs end next to
        0.
        """
        signs = np.concatenate(list(flip_signs(self._seed, self._sums.shape[1])), axis=1)
        flips, drawn = signs.shape[1], int(self._sums.shape[1] > EXACT_UP_TO)
        # Maximum flips that may reach a refuted difference.
        allowed = math.floor(ALPHA * (flips + drawn)) - drawn
        low, high = np.empty(len(self._order)), np.empty(len(self._order))
        first, second, whose = np.zeros(flips), np.zeros(flips), np.zeros(flips, dtype=np.intp)
        for row, sums in enumerate(self._sums):
            statistic = np.abs(sums @ signs) / self._scale[row]
            np.maximum(second, np.minimum(first, statistic), out=second)
            whose[statistic > first] = row
            np.maximum(first, statistic, out=first)
        for row, pair in enumerate(self._order.tolist()):
            others = np.where(whose == row, second, first)
            ends = _not_refuted(self._sums[row], sizes[pair], signs, others)
            lowest, highest = np.partition(ends[0], allowed)[allowed], -np.partition(-ends[1], allowed)[allowed]
            if found.p[pair] > ALPHA:
                # Rounding may have moved an end across 0.
                lowest, highest = min(lowest, 0.0), max(highest, 0.0)
            elif self._sums[row].sum() > 0:
                lowest = max(lowest, _LEAST)
            else:
                highest = min(highest, -_LEAST)
            low[pair], high[pair] = lowest, highest
        return replace(found, low=low, high=high)

    def _critical(self, pairs: int, allowed: int) -> float | None:
        """Return what the largest of the first `pairs` statistics exceeds under fewer than `allowed` other flips."""
        if not allowed:
            return None
        maxima = [list(self._largest(signs, pairs))[-1][1][-1] for signs in flip_signs(self._seed, self._sums.shape[1])]
        others = np.concatenate(maxima)[0 if self._sums.shape[1] > EXACT_UP_TO else 1 :]
        return float(np.partition(others, -allowed)[-allowed])

    def _largest(self, signs: Array, pairs: int) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of the first pairs with the running maximum of their statistics under each flip."""
        block = block_rows(signs)
        before = np.zeros(signs.shape[1])
        for start in range(0, pairs, block):
            rows = slice(start, min(pairs, start + block))
            largest = np.abs(self._sums[rows] @ signs)
            largest /= self._scale[rows]
            np.maximum(largest[0], before, out=largest[0])
            np.maximum.accumulate(largest, axis=0, out=largest)
            before = largest[-1]
            yield rows, largest


def _not_refuted(sums: Array, sizes: Array, signs: Array, others: Array) -> tuple[Array, Array]:
    """Return, for each flip, the range of mean differences under which it reaches the observation.

    With the difference d the observed statistic is |A - dN| / D(d) and the flipped one is |a - db| / D(d). A and N are
    the sums of differences and sizes over repositories, a and b those of the flipped ones, and D(d)² = Σ (s - dn)².
    Each flip, and `others`, the largest statistic of the other pairs, reach the observed statistic in a range around A
    / N.
    """
    totals, size_totals = sums @ signs, sizes @ signs
    total, size = math.fsum(sums.tolist()), math.fsum(sizes.tolist())
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack(((total - totals) / (size - size_totals), (total + totals) / (size + size_totals)))
        # A flip of all repositories or of none equals the observation, for any difference.
        is_all = np.isnan(ends).any(axis=0) | np.isinf(ends).any(axis=0)
        square = others**2
        a = size**2 - square * math.fsum(np.square(sizes).tolist())
        b = -2 * (total * size - square * math.fsum((sums * sizes).tolist()))
        c = total**2 - square * math.fsum(np.square(sums).tolist())
        inside = b**2 - 4 * a * c
        root = np.sqrt(np.maximum(inside, 0.0))
        roots = np.sort(np.stack(((-b - root) / (2 * a), (-b + root) / (2 * a))), axis=0)
        # Statistics of others that are this large are reached beyond a root, on the side of the mean.
        mean = total / size if size else 0.0
        is_open, is_above = a < 0, mean > (roots[0] + roots[1]) / 2
        low_root = np.where(is_open, np.where(is_above, roots[1], -np.inf), roots[0])
        high_root = np.where(is_open, np.where(is_above, np.inf, roots[0]), roots[1])
    is_all |= (a == 0) | (is_open & (inside <= 0))
    low, high = np.minimum(ends.min(axis=0), low_root), np.maximum(ends.max(axis=0), high_root)
    return np.where(is_all, -np.inf, low), np.where(is_all, np.inf, high)


def flip_signs(seed: str, repositories: int) -> Iterator[Array]:
    """Yield the signs of flips in chunks, shape (repositories, flips). The first enumerated flip changes no sign."""
    if repositories > EXACT_UP_TO:
        yield from drawn_flips(seed, repositories)
        return
    # A flip and its mirror image have the same absolute sum: the last repository need not flip.
    count = 1 << (repositories - 1)
    for start in range(0, count, _WIDTH):
        numbers = np.arange(start, min(count, start + _WIDTH))
        bits = (numbers >> np.arange(repositories)[:, np.newaxis]) & 1
        yield (1 - 2 * bits).astype(np.float64)


def order_rows(order: Sequence[int], beats: Collection[tuple[int, int]]) -> list[int]:
    """Return the rows in the given order, by mean, but each row after all rows that beat it.

    Means may be over different samples: a row with easier samples can have a higher mean and be worse on the common
    samples.
    """
    remaining, standings = list(order), []
    while remaining:
        unbeaten = (row for row in remaining if not any((other, row) in beats for other in remaining))
        standings.append(next(unbeaten, remaining[0]))
        remaining.remove(standings[-1])
    return standings


def rank_ranges(count: int, beats: Collection[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the best and the worst rank of each row, given the pairs (winner, loser) that differ significantly."""
    better, worse = [0] * count, [0] * count
    for winner, loser in beats:
        better[loser] += 1
        worse[winner] += 1
    return tuple((1 + up, count - down) for up, down in zip(better, worse, strict=True))


def group_letters(count: int, significant: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the compact letter display: two rows share a letter exactly if they do not differ significantly.

    Rows are given best first, so "a" contains the best. Algorithm (insert and absorb): start with one letter for all
    rows; split every letter that contains both rows of a differing pair; drop a letter contained in another.
    """
    columns: list[frozenset[int]] = [frozenset(range(count))] if count else []
    for pair in significant:
        split: list[frozenset[int]] = []
        for column in columns:
            split += [column - {row_index} for row_index in pair] if set(pair) <= column else [column]
        unique = list(dict.fromkeys(split))
        columns = [column for column in unique if not any(column < other for other in unique)]
    columns.sort(key=sorted)
    marks = [_mark(index) for index in range(len(columns))]
    return tuple("".join(m for m, column in zip(marks, columns, strict=True) if row in column) for row in range(count))


def _mark(index: int) -> str:
    return string.ascii_letters[index] if index < len(string.ascii_letters) else f"({index + 1})"

"""Tests of differences by sign flips of whole repositories, each pair alone or a family step-down, and ranks. Pure.

Under the null hypothesis a repository favours either strategy alike, so the sign of its summed difference is a coin.
All samples of a repository flip together: tests over samples (McNemar, paired t) find differences that are not there
when the advantage varies from repository to repository.

Pairs of rows share rows, and all of them share repositories: their tests are far from independent. A correction that
only counts pairs, as Bonferroni's and Holm's do, pays for each in full: with 8 repositories its smallest corrected
p-value over ten pairs is 0.078. `step_down` changes the signs of whole repositories in all pairs at once, and a pair is
judged against the largest statistic that it and the pairs behind it reach under the same flip. The family-wise error is
kept, whichever of the null hypotheses are true, if in each repository the differences of the true ones are as likely as
the same with the other sign.

Source: P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993), algorithm 2.8 (step-down maxT).
"""

from __future__ import annotations

import math
import string
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard.stats import Array, generator

ALPHA = 0.05
EXACT_UP_TO = 16
"""Repositories up to which every flip is enumerated; above, flips are drawn."""
DRAWS = 20_000
TOLERANCE = 1e-9
"""Sums that are equal but for the rounding of their parts are ties, and ties count as hits."""
_LEAST = 1e-6
"""The end of an interval that must not reach 0, as near to it as is printed."""
_FLIPS = 2_000
_WIDTH = 2_000
"""Flips held at once."""
_ALONE = 1 << 18
"""Multiplications up to which a product of matrices is left to one thread: more threads wait for each other longer than
they work, the more so on a busy machine."""


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


def _exact(sums: Array, bar: float) -> float:
    # A flip and its mirror image have the same absolute sum: the first repository need not flip.
    totals = sums[:1]
    for repository_sum in sums[1:]:
        totals = np.concatenate((totals + repository_sum, totals - repository_sum))
    return float((np.abs(totals) >= bar).mean())


def smallest_p(repositories: int) -> float:
    """Return the smallest p-value that the test can reach with that many repositories."""
    return min(1.0, 2 / 2**repositories) if repositories <= EXACT_UP_TO else 1 / (DRAWS + 1)


LEAST = next(count for count in range(1, EXACT_UP_TO + 1) if smallest_p(count) <= ALPHA)
"""Fewest repositories of which a difference can be significant."""


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


def block_rows(flips: Array) -> int:
    """Return of how many rows the product with these flips, shape (repositories, flips), is left to one thread."""
    return max(2, _ALONE // flips.size)


@dataclass(frozen=True, slots=True)
class StepDown:
    """What the flips say of a family of pairs."""

    p: Array
    """Of each pair: two-sided, corrected for all of them."""
    critical: float | None
    """What the statistic of a pair that is not significant has to exceed at 5%; the pair that is nearest to chance
    stands for them where all are significant. None if no flips are rare enough."""
    low: Array
    """Of each pair the least mean difference that the same flips do not refute at 5%, for all pairs together: above 0
    exactly where the pair is significantly better. -inf where they refute none; NaN without `sizes`, as is the next."""
    high: Array


def step_down(sums: Array, sizes: Array | None = None, *, seed: str) -> StepDown:
    """Test a family of pairs together.

    The statistic of a pair is its absolute sum over the root of its sum of squares, which flips do not change: pairs
    are weighed alike, however large their differences are, and one of few repositories, whose statistic is at most the
    root of their number, does not stand in the way of the others. A pair that never differs has the statistic 0.

    Args:
        sums: what each repository's paired differences sum up to, shape (pairs, repositories), at least one of each; 0
            where a pair has no sample of a repository.
        sizes: of how many samples each is the sum, in that shape; None where no intervals are wanted.
        seed: decides the drawn flips; unused up to `EXACT_UP_TO` repositories, where every flip is tried.
    """
    ordered = _Ordered(sums, seed)
    return ordered.tested() if sizes is None else ordered.bounded(ordered.tested(), sizes)


class _Ordered:
    """The pairs of a family, the smallest statistic first."""

    def __init__(self, sums: Array, seed: str) -> None:
        self._seed = seed
        # So rounded, every sum of theirs is exact, and hits do not depend on how a processor's BLAS adds.
        sums = rounded(sums, 1, term_bits(sums.shape[1]))
        scale = np.array([math.sqrt(math.fsum(np.square(row).tolist())) or 1.0 for row in sums])
        observed = np.abs(sums.sum(axis=1)) / scale
        self._order = np.argsort(observed, kind="stable")
        self._sums, self._scale = sums[self._order], scale[self._order, np.newaxis]
        self._bar = (observed - TOLERANCE * np.abs(sums).sum(axis=1) / scale)[self._order, np.newaxis]

    def tested(self) -> StepDown:
        """Return p-values, and the statistic that is needed where there is no significance yet."""
        pairs, repositories = self._sums.shape
        hits, flips = np.zeros(pairs, dtype=np.int64), 0
        for signs in flip_signs(self._seed, repositories):
            for rows, largest in self._largest(signs, pairs):
                hits[rows] += np.count_nonzero(largest >= self._bar[rows], axis=1)
            flips += signs.shape[1]
        # What was observed is a flip itself: all flips have it, drawn ones get it here.
        drawn = int(repositories > EXACT_UP_TO)
        p = np.maximum.accumulate(((hits + drawn) / (flips + drawn))[::-1])[::-1]
        adjusted = np.empty(pairs)
        adjusted[self._order] = p
        undecided = max(1, int(np.count_nonzero(p > ALPHA)))
        unknown = np.full(pairs, np.nan)
        return StepDown(adjusted, self._critical(undecided, math.floor(ALPHA * (flips + drawn))), unknown, unknown)

    def bounded(self, found: StepDown, sizes: Array) -> StepDown:
        """Return what was found with the intervals of the mean differences, which hold for all pairs together.

        Of a pair every mean difference is asked about: its repositories' sums less that difference are flipped, and the
        largest statistic under each flip is taken over all pairs. Those that are not refuted are the interval. Going
        down step by step makes more pairs significant than that: their intervals end next to 0.
        """
        signs = np.concatenate(list(flip_signs(self._seed, self._sums.shape[1])), axis=1)
        flips, drawn = signs.shape[1], int(self._sums.shape[1] > EXACT_UP_TO)
        # So many flips at most may reach what is refuted.
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
                # Rounding may have moved an end.
                lowest, highest = min(lowest, 0.0), max(highest, 0.0)
            elif self._sums[row].sum() > 0:
                lowest = max(lowest, _LEAST)
            else:
                highest = min(highest, -_LEAST)
            low[pair], high[pair] = lowest, highest
        return replace(found, low=low, high=high)

    def _critical(self, pairs: int, allowed: int) -> float | None:
        """Return what the largest of the first pairs exceeds under fewer than `allowed` flips beside the observed."""
        if not allowed:
            return None
        maxima = [list(self._largest(signs, pairs))[-1][1][-1] for signs in flip_signs(self._seed, self._sums.shape[1])]
        others = np.concatenate(maxima)[0 if self._sums.shape[1] > EXACT_UP_TO else 1 :]
        return float(np.partition(others, -allowed)[-allowed])

    def _largest(self, signs: Array, pairs: int) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of the first pairs with, under each flip, the largest statistic up to each pair."""
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
    """Return, of each flip, the range of mean differences under which it reaches what was observed.

    With the difference d the observed statistic is |A - dN| / D(d), the flipped one |a - db| / D(d), where A and N are
    the sums over repositories, a and b those of the flipped ones, and D(d)² = Σ (s - dn)². Each flip reaches the
    observed one in a range about A / N; so does the largest statistic of the other pairs, which is `others`.
    """
    totals, size_totals = sums @ signs, sizes @ signs
    total, size = math.fsum(sums.tolist()), math.fsum(sizes.tolist())
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack(((total - totals) / (size - size_totals), (total + totals) / (size + size_totals)))
        # A flip of all repositories or of none is the observation itself, whatever the difference.
        is_all = np.isnan(ends).any(axis=0) | np.isinf(ends).any(axis=0)
        square = others**2
        a = size**2 - square * math.fsum(np.square(sizes).tolist())
        b = -2 * (total * size - square * math.fsum((sums * sizes).tolist()))
        c = total**2 - square * math.fsum(np.square(sums).tolist())
        inside = b**2 - 4 * a * c
        root = np.sqrt(np.maximum(inside, 0.0))
        roots = np.sort(np.stack(((-b - root) / (2 * a), (-b + root) / (2 * a))), axis=0)
        # Where the others are that large they are reached from a root on, on the side of the mean.
        mean = total / size if size else 0.0
        is_open, is_above = a < 0, mean > (roots[0] + roots[1]) / 2
        low_root = np.where(is_open, np.where(is_above, roots[1], -np.inf), roots[0])
        high_root = np.where(is_open, np.where(is_above, np.inf, roots[0]), roots[1])
    is_all |= (a == 0) | (is_open & (inside <= 0))
    low, high = np.minimum(ends.min(axis=0), low_root), np.maximum(ends.max(axis=0), high_root)
    return np.where(is_all, -np.inf, low), np.where(is_all, np.inf, high)


def flip_signs(seed: str, repositories: int) -> Iterator[Array]:
    """Yield the flips, some at once, shape (repositories, flips); of all flips the first changes nothing."""
    if repositories > EXACT_UP_TO:
        yield from drawn_flips(seed, repositories)
        return
    # A flip and its mirror image have the same absolute sum: the last repository need not flip.
    count = 1 << (repositories - 1)
    for start in range(0, count, _WIDTH):
        numbers = np.arange(start, min(count, start + _WIDTH))
        bits = (numbers >> np.arange(repositories)[:, np.newaxis]) & 1
        yield (1 - 2 * bits).astype(np.float64)


def standing(order: Sequence[int], beats: Collection[tuple[int, int]]) -> list[int]:
    """Return rows by mean, but none before one that beats it.

    Means may be over different samples: one over the easier of them can be higher, and its row the worse wherever the
    two can be compared.

    Args:
        order: rows, the best mean first.
        beats: pairs (winner, loser) that differ significantly.
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
        beats: pairs (winner, loser) that differ significantly; only these count.
    """
    better, worse = [0] * count, [0] * count
    for winner, loser in beats:
        better[loser] += 1
        worse[winner] += 1
    return tuple((1 + up, count - down) for up, down in zip(better, worse, strict=True))


def group_letters(count: int, apart: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the compact letter display: two rows share a letter exactly if they do not differ significantly.

    Rows are given best first, so that "a" holds the best. Insert and absorb: begin with one letter for all; a pair
    that differs splits every letter that holds both; a letter within another is dropped.
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

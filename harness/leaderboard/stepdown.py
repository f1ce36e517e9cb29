"""The step-down maximum statistic of Westfall and Young, with joint sign flips of whole repositories. Pure.

Pairs of rows share rows, and all of them share repositories: their tests are far from independent. A correction that
only counts pairs, as Bonferroni's and Holm's do, pays for each in full: with 8 repositories its smallest corrected
p-value over ten pairs is 0.078. Here each flip changes the signs of whole repositories in all pairs at once, and a pair
is judged against the largest statistic that it and the pairs behind it reach under the same flip.

The family-wise error is kept, whichever of the null hypotheses are true, if in each repository the differences of the
true ones are as likely as the same with the other sign.

Source: P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993), algorithm 2.8 (step-down maxT).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard import stats
from ctxbench.harness.leaderboard.stats import ALPHA, EXACT_UP_TO, TOLERANCE, Array

_WIDTH = 2_000
"""Flips held at once."""


@dataclass(frozen=True, slots=True)
class StepDown:
    """What the flips say of a family of pairs."""

    p: Array
    """Of each pair: two-sided, corrected for all of them."""
    critical: float | None
    """What the statistic of a pair that is not significant has to exceed at 5%; the pair that is nearest to chance
    stands for them where all are significant. None if no flips are rare enough."""


def step_down(sums: Array, *, seed: str) -> StepDown:
    """Test a family of pairs together.

    The statistic of a pair is its absolute sum over the root of its sum of squares, which flips do not change: pairs
    are weighed alike, however large their differences are, and one of few repositories, whose statistic is at most the
    root of their number, does not stand in the way of the others. A pair that never differs has the statistic 0.

    Args:
        sums: what each repository's paired differences sum up to, shape (pairs, repositories), at least one of each; 0
            where a pair has no sample of a repository.
        seed: decides the drawn flips; unused up to `EXACT_UP_TO` repositories, where every flip is tried.
    """
    return _Ordered(sums, seed).tested()


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
        return StepDown(adjusted, self._critical(undecided, math.floor(ALPHA * (flips + drawn))))

    def _critical(self, pairs: int, allowed: int) -> float | None:
        """Return what the largest of the first pairs exceeds under fewer than `allowed` flips beside the observed."""
        if not allowed:
            return None
        maxima = [list(self._largest(signs, pairs))[-1][1][-1] for signs in flip_signs(self._seed, self._sums.shape[1])]
        others = np.concatenate(maxima)[0 if self._sums.shape[1] > EXACT_UP_TO else 1 :]
        return float(np.partition(others, -allowed)[-allowed])

    def _largest(self, signs: Array, pairs: int) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of the first pairs with, under each flip, the largest statistic up to each pair."""
        block = stats.block_rows(signs)
        before = np.zeros(signs.shape[1])
        for start in range(0, pairs, block):
            rows = slice(start, min(pairs, start + block))
            largest = np.abs(self._sums[rows] @ signs)
            largest /= self._scale[rows]
            np.maximum(largest[0], before, out=largest[0])
            np.maximum.accumulate(largest, axis=0, out=largest)
            before = largest[-1]
            yield rows, largest


def flip_signs(seed: str, repositories: int) -> Iterator[Array]:
    """Yield the flips, some at once, shape (repositories, flips); of all flips the first changes nothing."""
    if repositories > EXACT_UP_TO:
        yield from stats.drawn_flips(seed, repositories)
        return
    # A flip and its mirror image have the same absolute sum: the last repository need not flip.
    count = 1 << (repositories - 1)
    for start in range(0, count, _WIDTH):
        numbers = np.arange(start, min(count, start + _WIDTH))
        bits = (numbers >> np.arange(repositories)[:, np.newaxis]) & 1
        yield (1 - 2 * bits).astype(np.float64)

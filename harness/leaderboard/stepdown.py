"""The step-down maximum statistic of Westfall and Young, with joint sign flips of whole repositories. Pure.

Pairs of rows share rows, and all of them share repositories: their tests are far from independent. Holm's correction
does not know that and pays for every pair in full; with 8 repositories its smallest corrected p-value over ten pairs
is 0.078. Here each flip changes the signs of whole repositories in all pairs at once, and a pair is judged against
the largest statistic that the pairs not yet decided reach under the same flip.

Source: P. H. Westfall and S. S. Young, Resampling-Based Multiple Testing (1993), algorithm 2.8 (step-down maxT).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard.signflip import _flips, DRAWS, EXACT_UP_TO
from ctxbench.harness.leaderboard.stats import Array

_TOLERANCE = 1e-9
"""Statistics that are equal but for the rounding of their parts are ties, and ties count as hits."""
_CELLS = 1 << 20
"""Statistics held at once: pairs times flips."""


def adjusted_p_values(sums: Array, *, seed: str) -> Array:
    """Return the p-value of each pair, two-sided and corrected for all of the pairs.

    The statistic of a pair is its absolute sum over the root of its sum of squares, which flips do not change: the
    pairs are weighed alike, however large their differences are.

    Args:
        sums: what each repository's paired differences sum up to, shape (pairs, repositories); 0 where a pair has no
            sample of a repository.
        seed: decides the drawn flips; unused up to `EXACT_UP_TO` repositories, where every flip is tried.
    """
    pairs, repositories = sums.shape
    if not pairs or not repositories:
        return np.ones(pairs)
    sums = rounded(sums, 1, term_bits(repositories))
    scale = np.array([math.sqrt(math.fsum(np.square(row).tolist())) or 1.0 for row in sums])[:, np.newaxis]
    observed = np.abs(sums.sum(axis=1)) / scale[:, 0]
    order = np.argsort(-observed, kind="stable")
    bar = observed[order] * (1 - _TOLERANCE)
    ordered, ordered_scale = sums[order], scale[order]
    hits, flips = np.zeros(pairs, dtype=np.int64), 0
    for signs in _signs(repositories, seed, max(1, _CELLS // pairs)):
        statistics = np.abs(ordered @ signs) / ordered_scale
        # The largest of a pair's own statistic and of all that were observed to be smaller.
        largest = np.maximum.accumulate(statistics[::-1], axis=0)[::-1]
        hits += np.count_nonzero(largest >= bar[:, np.newaxis], axis=1)
        flips += signs.shape[1]
    exact = repositories <= EXACT_UP_TO
    p = np.maximum.accumulate(hits / flips if exact else (hits + 1) / (flips + 1))
    adjusted = np.empty(pairs)
    adjusted[order] = p
    return adjusted


def _signs(repositories: int, seed: str, width: int) -> Iterator[Array]:
    """Yield the flips, at most `width` at once, shape (repositories, flips)."""
    if repositories > EXACT_UP_TO:
        for start in range(0, DRAWS, width):
            yield _flips(seed, repositories).reshape(-1, repositories)[start : start + width].T.astype(np.float64)
        return
    # A flip and its mirror image have the same absolute sum: the first repository need not flip.
    count = 1 << (repositories - 1)
    for start in range(0, count, width):
        numbers = np.arange(start, min(count, start + width))
        bits = (numbers >> np.arange(repositories)[:, np.newaxis]) & 1
        yield (1 - 2 * bits).astype(np.float64)

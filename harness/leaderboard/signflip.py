"""The repository-level sign-flip permutation test, and Holm's correction. Pure.

Under the null hypothesis a repository favours either strategy alike, so the sign of its summed difference is a coin.
All samples of a repository flip together: tests over samples (McNemar, paired t) find differences that are not there
when the advantage varies from repository to repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard.stats import Array, generator

ALPHA = 0.05
EXACT_UP_TO = 16
"""Repositories up to which every flip is enumerated; above, flips are drawn."""
DRAWS = 20_000
_TOLERANCE = 1e-9
_CHUNK = 2_000
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
    # Ties count as hits: sums that are equal but for the rounding of their parts.
    bar = np.abs(sums.sum(axis=1)) - _TOLERANCE * np.abs(sums).sum(axis=1)
    if repositories <= EXACT_UP_TO:
        return np.array([_exact(row, least) for row, least in zip(sums, bar, strict=True)])
    hits = np.zeros(tests, dtype=np.int64)
    width = max(1, min(_CHUNK, _ALONE // (2 * repositories)))
    block = max(2, _ALONE // (width * repositories))
    for flips in _few(seed, repositories, width):
        for start in range(0, tests, block):
            least = bar[start : start + block, np.newaxis]
            totals = sums[start : start + block] @ flips
            hit = np.abs(totals, out=totals) >= least
            hits[start : start + block] += [np.count_nonzero(row) for row in hit]
    return np.asarray((hits + 1) / (DRAWS + 1), dtype=np.float64)


def _few(seed: str, repositories: int, width: int) -> Iterator[Array]:
    """Yield the drawn signs, at most `width` draws at once, shape (repositories, draws)."""
    for chunk in _flips(seed, repositories):
        for start in range(0, _CHUNK, width):
            yield chunk[start : start + width].T.astype(np.float64)


@lru_cache(maxsize=2)
def _flips(seed: str, repositories: int) -> NDArray[np.int8]:
    """Draw signs, shape (chunks, `_CHUNK`, repositories); kept, since all pairs of one metric flip alike."""
    random = generator(f"signflip/{seed}")
    drawn = [random.integers(0, 2, size=(_CHUNK, repositories)).astype(np.int8) for _ in range(DRAWS // _CHUNK)]
    return np.stack(drawn) * np.int8(2) - np.int8(1)


def p_value(sums: Array, *, seed: str) -> float:
    """Return the p-value of one pair from its repository sums, shape (repositories,)."""
    return float(p_values(sums[np.newaxis, :], seed=seed)[0])


def smallest_p(repositories: int) -> float:
    """Return the smallest p-value that the test can reach with that many repositories."""
    return min(1.0, 2 / 2**repositories) if repositories <= EXACT_UP_TO else 1 / (DRAWS + 1)


def holm(p: Sequence[float]) -> tuple[float, ...]:
    """Return Holm's adjusted p-values, in the order given."""
    adjusted, running = [0.0] * len(p), 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        running = max(running, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = running
    return tuple(adjusted)


def _exact(sums: Array, bar: float) -> float:
    # A flip and its mirror image have the same absolute sum: the first repository need not flip.
    totals = sums[:1]
    for repository_sum in sums[1:]:
        totals = np.concatenate((totals + repository_sum, totals - repository_sum))
    return float((np.abs(totals) >= bar).mean())

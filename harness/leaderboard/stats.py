"""Means and 95% intervals of values that are clustered by repository. Pure, in the values' own unit.

The repository is the unit: samples of one repository resemble each other, so an interval that treats them as
independent is too narrow. With fewer than `FEWEST` repositories no interval over repositories can be given.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from harness.leaderboard import student

FEWEST = 5
"""Fewest repositories over which an interval is given."""
CONFIDENCE = 0.95
POWER = 0.8
_RESAMPLES = 2000
_CHUNK = 1 << 20

Array = NDArray[np.float64]


class Over(StrEnum):
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
    over: Over
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
            on one bound get Wilson's interval over samples, because a spread of zero would claim certainty.
    """
    x = np.asarray(values, dtype=np.float64)
    if not len(x):
        return Estimate(
            n=0, repositories=0, mean=None, low=None, high=None, over=Over.NONE,
            mean_of_repositories=None, bootstrap_low=None, bootstrap_high=None,
        )  # fmt: skip
    sums, sizes = clusters(x, repos)
    mean = float(x.mean())
    low, high, over = _interval(x, sums, sizes, mean, bounds)
    drawn = _bootstrap(sums, sizes, seed) if len(sums) >= FEWEST else (None, None)
    return Estimate(
        n=len(x),
        repositories=len(sums),
        mean=mean,
        low=low,
        high=high,
        over=over,
        mean_of_repositories=float((sums / sizes).mean()),
        bootstrap_low=drawn[0],
        bootstrap_high=drawn[1],
    )


def clusters(values: Array, repos: Sequence[str]) -> tuple[Array, Array]:
    """Return the sum of the values and the number of samples of each repository, sorted by its name."""
    _, codes = np.unique(np.asarray(repos, dtype=np.str_), return_inverse=True)
    sums = np.bincount(codes, weights=values).astype(np.float64)
    return sums, np.bincount(codes).astype(np.float64)


def cluster_error(sums: Array, sizes: Array) -> float:
    """Return the cluster-robust standard error of the mean over samples (two clusters or more).

    The variance of the clusters' summed residuals, with the C/(C-1) correction, over n squared.
    """
    count, n = len(sums), sizes.sum()
    residuals = sums - sizes * (sums.sum() / n)
    return float(np.sqrt(count / (count - 1) * (residuals**2).sum()) / n)


def smallest_visible(error: float, repositories: int) -> float:
    """Return the difference that a two-sided test at 5% sees with 80% power, given its standard error (t-based)."""
    df = repositories - 1
    return (student.quantile(1 - (1 - CONFIDENCE) / 2, df) + student.quantile(POWER, df)) * error


def generator(seed: str) -> np.random.Generator:
    """Return a random generator that depends on the seed's text only."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16])))


def _interval(
    x: Array, sums: Array, sizes: Array, mean: float, bounds: tuple[float, float] | None
) -> tuple[float | None, float | None, Over]:
    if bounds and (x == x[0]).all() and x[0] in bounds:
        return (*_wilson(len(x), bool(x[0] == bounds[1]), bounds), Over.SAMPLES)
    if len(sums) >= FEWEST:
        error, df, over = cluster_error(sums, sizes), len(sums) - 1, Over.REPOSITORIES
    elif len(x) > 1:
        error, df, over = float(x.std(ddof=1)) / math.sqrt(len(x)), len(x) - 1, Over.SAMPLES
    else:
        return None, None, Over.NONE
    half = student.quantile(1 - (1 - CONFIDENCE) / 2, df) * error
    least, most = bounds or (-math.inf, math.inf)
    return max(least, mean - half), min(most, mean + half), over


def _wilson(n: int, top: bool, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return Wilson's interval for n equal answers, all on one bound."""
    z2 = 1.959963984540054**2
    reach = z2 / (n + z2) * (bounds[1] - bounds[0])
    return (bounds[1] - reach, bounds[1]) if top else (bounds[0], bounds[0] + reach)


def _bootstrap(sums: Array, sizes: Array, seed: str) -> tuple[float, float]:
    """Draw whole repositories with replacement; return the percentile interval of the mean over samples."""
    means = np.concatenate([sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1) for drawn in _draws(seed, len(sums))])
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, 1 - (1 - CONFIDENCE) / 2])
    return float(low), float(high)


@lru_cache(maxsize=2)
def _draws(seed: str, count: int) -> tuple[NDArray[np.int64], ...]:
    """Draw repositories, shapes (draws, count); kept, since all rows of one metric draw alike."""
    random = generator(f"bootstrap/{seed}")
    step = max(1, _CHUNK // count)
    return tuple(
        random.integers(0, count, size=(min(step, _RESAMPLES - start), count)) for start in range(0, _RESAMPLES, step)
    )

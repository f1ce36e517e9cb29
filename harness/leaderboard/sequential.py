"""Looks at a difference while repositories are added, with one error for all looks together. Pure.

The 5% are spent over the looks by the function of Lan and DeMets that resembles O'Brien and Fleming's bounds: little at
first. What a look may spend is turned into a bound by joint sign flips of whole repositories. A flip is a path through
all looks; at each, the paths that have crossed no bound yet and whose sums are largest cross it, as many as may. Under
the null hypothesis the observed path is one of these as likely as any other, whatever the sizes of the differences are:
the chance that it ever crosses is at most 5%, however many looks there are. Bounds depend on absolute differences of
the repositories so far and on the planned number alone, never on what is still to come.

Sources: K. K. G. Lan and D. L. DeMets, Biometrika 70 (1983) 659 (spending); C. Jennison and B. W. Turnbull, Group
Sequential Methods (2000), chapter 9 (repeated confidence intervals) and section 10.2 (stochastic curtailment).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from ctxbench.bench.doubles import rounded, term_bits
from ctxbench.harness.leaderboard import stats
from ctxbench.harness.leaderboard.stats import ALPHA, TOLERANCE, Array
from ctxbench.harness.leaderboard.stepdown import flip_signs

_MOST_LOOKS = 10
_FUTILE = 0.1
"""Conditional power below which no more repositories are added, from half of them on."""
_DOUBLINGS, _HALVINGS = 30, 30
_NORMAL = NormalDist()


class Ending(StrEnum):
    """Why no more repositories are added."""

    DECIDED = "decided"
    FUTILE = "futile"
    """The rest would hardly decide it, if it went on like this."""
    ALL = "all"
    """None are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at the difference says."""

    repositories: int
    planned: int
    mean: float
    """The difference over samples; after an early end it tends to be too large."""
    spent: float
    """Of the 5%, up to this look."""
    p: float
    """Chance of crossing a bound earlier, or of a sum as large at this look, under the null hypothesis: two-sided, for
    all looks together."""
    ending: Ending | None
    """None: the next repositories are added."""


def looks(repositories: int) -> tuple[int, ...]:
    """Return after how many repositories the difference is looked at; empty if so few can decide nothing."""
    step = max(2, math.ceil(repositories / _MOST_LOOKS))
    return tuple(sorted({count for count in (*range(step, repositories, step), repositories) if count >= stats.LEAST}))


def spending(share: float) -> float:
    """Return how much of the 5% may be spent once this share of the repositories is in, 0 < share <= 1."""
    return 2 - 2 * _NORMAL.cdf(_NORMAL.inv_cdf(1 - ALPHA / 2) / math.sqrt(share))


def look(sums: Array, sizes: Array, planned: int, *, seed: str) -> Look:
    """Look at the first repositories of a set.

    Args:
        sums: what the paired differences of each sum up to, in the order of the set; 0 where there are none. As many as
            one of `looks`, at none of whose earlier ones it was decided.
        sizes: samples of each.
        planned: repositories of the set.
        seed: decides the drawn flips; unused up to `stats.EXACT_UP_TO` planned repositories.
    """
    count = len(sums)
    paths = _paths(seed, planned)
    walk = _walk(sums, planned, paths)
    p = (walk.crossed_before + int(np.count_nonzero(walk.totals >= walk.observed - walk.slack))) / paths.shape[1]
    return Look(
        repositories=count,
        planned=planned,
        mean=math.fsum(sums.tolist()) / max(1.0, math.fsum(sizes.tolist())),
        spent=spending(count / planned),
        p=p,
        ending=_ending(walk, sums, planned),
    )


def repeated_interval(sums: Array, sizes: Array, planned: int, *, seed: str) -> tuple[float, float]:
    """Return the differences that this look does not rule out; infinite ends where it rules out none.

    All looks together hold the true difference with 95%: the interval stays valid however it was decided to stop. It
    holds 0 exactly if the look did not decide.
    """
    mean = math.fsum(sums.tolist()) / math.fsum(sizes.tolist())
    paths = _paths(seed, planned)
    scale = float(np.abs(sums).max()) / float(sizes[sizes > 0].min()) or 1.0

    def is_out(shift: float) -> bool:
        return _walk(sums - shift * sizes, planned, paths).has_crossed

    low, high = (_edge(mean, direction * scale, is_out) for direction in (-1.0, 1.0))
    return low, high


@dataclass(frozen=True, slots=True)
class _Walk:
    """The paths at the last of some looks."""

    totals: Array
    """Absolute sums of the paths that crossed no bound before."""
    observed: float
    bound: float
    """What a sum must exceed by `slack` to cross now; infinite if none may."""
    slack: float
    crossed_before: int

    @property
    def has_crossed(self) -> bool:
        """Whether the observed path crosses the bound of this look."""
        return self.observed > self.bound + self.slack


def _walk(sums: Array, planned: int, paths: Array) -> _Walk:
    """Go through the looks up to the one at which these repositories are in."""
    # So rounded, every sum of theirs is exact, and ties are ties on every processor.
    sums = rounded(sums[np.newaxis], 1, term_bits(len(sums)))[0]
    totals, start = np.zeros(paths.shape[1]), 0
    has_crossed = np.zeros(paths.shape[1], dtype=np.bool_)
    for count in (end for end in looks(planned) if end <= len(sums)):
        totals = totals + sums[start:count] @ paths[start:count]
        start = count
        crossed_before = int(np.count_nonzero(has_crossed))
        running = np.abs(totals[~has_crossed])
        allowed = math.floor(spending(count / planned) * len(totals) + TOLERANCE) - crossed_before
        # Ties count against the finding: all that are as large as the first too many stay inside.
        bound = float(np.partition(running, -allowed - 1)[-allowed - 1]) if allowed > 0 else math.inf
        slack = TOLERANCE * math.fsum(np.abs(sums[:count]).tolist())
        walk = _Walk(running, abs(float(totals[0])), bound, slack, crossed_before)
        has_crossed |= np.abs(totals) > bound + slack
    return walk


def _ending(walk: _Walk, sums: Array, planned: int) -> Ending | None:
    if walk.has_crossed:
        return Ending.DECIDED
    if len(sums) == planned:
        return Ending.ALL
    share = len(sums) / planned
    if share >= 0.5 and _conditional_power(sums, share) < _FUTILE:
        return Ending.FUTILE
    return None


def _conditional_power(sums: Array, share: float) -> float:
    """Return how likely the last look decides if the rest goes on as these repositories do, about."""
    scale = math.sqrt(math.fsum(np.square(sums).tolist()))
    statistic = abs(math.fsum(sums.tolist())) / scale if scale else 0.0
    bound = _NORMAL.inv_cdf(1 - ALPHA / 2)
    return _NORMAL.cdf((statistic / math.sqrt(share) - bound) / math.sqrt(1 - share))


def _edge(mean: float, step: float, is_out: Callable[[float], bool]) -> float:
    """Return the first shift from the mean on, in the direction of `step`, that is ruled out."""
    inside = mean
    for _ in range(_DOUBLINGS):
        if is_out(outside := mean + step):
            break
        inside, step = outside, 2 * step
    else:
        return math.copysign(math.inf, step)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if is_out(middle) else (middle, outside)
    return outside


@lru_cache(maxsize=2)
def _paths(seed: str, repositories: int) -> Array:
    """Return the signs of all paths, shape (repositories, paths); the first changes nothing."""
    drawn = np.concatenate(list(flip_signs(seed, repositories)), axis=1)
    observed = np.ones((repositories, int(repositories > stats.EXACT_UP_TO)))
    return np.concatenate([observed, drawn], axis=1)

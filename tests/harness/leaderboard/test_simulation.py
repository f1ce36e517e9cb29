"""The claim that the test's false positives stay at its nominal level, by simulation.

347 tasks in 23 very uneven projects, as in a published repository-level benchmark; two strategies of equal skill.
With interaction, each repository favours one of the two at random (standard deviation 0.6 on the logit scale).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as reference

from ctxbench.harness.leaderboard import stats

SIZES = np.array([64, 52, 41, 33, 27, 22, 18, 15, 13, 11, 9, 8, 7, 6, 5, 4, 3, 3, 2, 1, 1, 1, 1])
RUNS = 1500

Answers = NDArray[np.bool_]


def _simulate(*, interaction: float, shift: float = 0.0) -> tuple[Answers, Answers]:
    """Return right / wrong of both strategies, shape (runs, samples)."""
    random = np.random.default_rng(11)
    repo = np.repeat(np.arange(len(SIZES)), SIZES)
    level = random.normal(-1.7, 0.7, (RUNS, len(SIZES)))[:, repo] + random.normal(0, 0.8, (RUNS, len(repo)))
    advantage = random.normal(shift, interaction, (RUNS, len(SIZES)))[:, repo]
    chance = [1 / (1 + np.exp(-(level + sign * advantage / 2))) for sign in (1, -1)]
    return random.random(level.shape) < chance[0], random.random(level.shape) < chance[1]


def _signflip(this: Answers, other: Answers) -> float:
    starts = np.concatenate(([0], np.cumsum(SIZES)[:-1]))
    sums = np.add.reduceat(this.astype(float) - other, starts, axis=1)
    return float((stats.p_values(sums, seed="simulation") <= stats.ALPHA).mean())


def _mcnemar(this: Answers, other: Answers) -> float:
    wins, losses = (this & ~other).sum(axis=1), (~this & other).sum(axis=1)
    p = np.minimum(1, 2 * reference.binom.cdf(np.minimum(wins, losses), wins + losses, 0.5))
    return float((p <= 0.05).mean())


def test_sizes_are_those_of_the_benchmark() -> None:
    assert (len(SIZES), SIZES.sum()) == (23, 347)


@pytest.mark.parametrize("interaction", [0.6, 0.0])
def test_false_positives_stay_at_the_nominal_level(interaction: float) -> None:
    assert _signflip(*_simulate(interaction=interaction)) <= 0.055


def test_a_test_over_samples_does_not_hold_it() -> None:
    assert _mcnemar(*_simulate(interaction=0.6)) > 0.10


@pytest.mark.slow
def test_real_differences_are_found() -> None:
    none, some = (_signflip(*_simulate(interaction=0.6, shift=shift)) for shift in (0.0, 0.6))
    assert some > 0.4 > 5 * none

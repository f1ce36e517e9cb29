"""The step-down maximum statistic keeps the family-wise error, in simulated boards of many kinds, and finds true leads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from ctxbench.harness.leaderboard import signflip
from ctxbench.harness.leaderboard.stepdown import adjusted_p_values

RUNS = 1000
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Board:
    """A board to simulate: strategies on repositories, each of which likes some strategies better than others."""

    effects: Sequence[float]
    """The true mean of each strategy; equal ones are true nulls."""
    repositories: int = 8
    sizes: Sequence[int] = ()
    """Samples of each repository; equal if none are given."""
    heavy: bool = False
    """Draw from Student's t with 2 degrees of freedom, which has no variance."""
    correlation: float = 0.0
    """Of neighbouring strategies: one is a variant of the other."""
    missing: float = 0.0
    """Share of (strategy, repository) without any sample."""
    interaction: float = 1.0
    noise: float = 0.6

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(itertools.combinations(range(len(self.effects)), 2))

    @property
    def true_nulls(self) -> NDArray[np.bool_]:
        return np.array([self.effects[a] == self.effects[b] for a, b in self.pairs])

    def sums(self, random: np.random.Generator) -> Array:
        """Return what each pair's differences sum up to in each repository, shape (pairs, repositories)."""
        sizes = np.array(self.sizes or [10] * self.repositories, dtype=float)
        shape = (len(self.effects), len(sizes))
        own = random.standard_t(2, shape) if self.heavy else random.standard_normal(shape)
        for strategy in range(1, len(self.effects)):
            own[strategy] = self.correlation * own[strategy - 1] + np.sqrt(1 - self.correlation**2) * own[strategy]
        scores = np.array(self.effects)[:, np.newaxis] + self.interaction * own
        scores = scores + self.noise * random.standard_normal(shape) / np.sqrt(sizes / sizes.mean())
        present = random.random(shape) >= self.missing
        return np.array([(scores[a] - scores[b]) * sizes * present[a] * present[b] for a, b in self.pairs])


def errors_and_power(board: Board, runs: int = RUNS) -> tuple[float, float, float]:
    """Return the family-wise error, and the share of true leads that are found: by the step-down maximum, by Holm."""
    random, nulls = np.random.default_rng(3), board.true_nulls
    wrong, found, found_by_holm = 0, [], []
    for _ in range(runs):
        sums = board.sums(random)
        significant = adjusted_p_values(sums, seed="simulation") <= signflip.ALPHA
        wrong += bool(significant[nulls].any())
        if not nulls.all():
            found.append(significant[~nulls].mean())
            holm = np.array(signflip.holm(signflip.p_values(sums, seed="simulation").tolist()))
            found_by_holm.append((holm[~nulls] <= signflip.ALPHA).mean())
    return wrong / runs, float(np.mean(found or [0])), float(np.mean(found_by_holm or [0]))


UNEVEN = (64, 41, 27, 18, 13, 9, 7, 5, 3, 2, 1, 1)


@pytest.mark.parametrize(
    "board",
    [
        pytest.param(Board([0] * 5), id="complete null"),
        pytest.param(Board([0] * 11, repositories=10), id="complete null of eleven strategies"),
        pytest.param(Board([0, 0, 0, 2.5, 2.5]), id="partial null"),
        pytest.param(Board([0, 0, 3, 3, 6, 6]), id="three ties"),
        pytest.param(Board([0] * 5, sizes=UNEVEN), id="uneven repositories"),
        pytest.param(Board([0, 0, 0, 2.5, 2.5], sizes=UNEVEN), id="partial null, uneven repositories"),
        pytest.param(Board([0] * 5, heavy=True), id="heavy tails"),
        pytest.param(Board([0, 0, 0, 4, 4], heavy=True), id="partial null, heavy tails"),
        pytest.param(Board([0] * 6, correlation=0.9), id="correlated strategies"),
        pytest.param(Board([0, 0, 0, 2.5, 2.5], correlation=0.9), id="partial null, correlated strategies"),
        pytest.param(Board([0] * 5, repositories=12, missing=0.2), id="samples missing"),
        pytest.param(Board([0, 0, 2, 2], repositories=12, missing=0.2), id="partial null, samples missing"),
        pytest.param(Board([0] * 4, interaction=0.0), id="no interaction"),
    ],
)
def test_the_family_wise_error_is_kept(board: Board) -> None:
    wrong, _, _ = errors_and_power(board)
    # Two standard errors of a simulation of a thousand boards above 5.5 %.
    assert wrong <= 0.055 + 2 * (0.055 * 0.945 / RUNS) ** 0.5


@pytest.mark.parametrize(("repositories", "least", "holm_most"), [(6, 0.2, 0.0), (8, 0.6, 0.0), (10, 0.85, 0.85)])
def test_true_leads_are_found_where_holm_finds_none(repositories: int, least: float, holm_most: float) -> None:
    _, power, by_holm = errors_and_power(Board([0, 0, 0, 2.5, 2.5], repositories=repositories), runs=400)
    assert power >= least and by_holm <= holm_most

"""The sign-flip test, by brute force and by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats as reference

from ctxbench.harness.leaderboard import stats


def _brute(sums: list[float]) -> float:
    """Enumerate every flip, one after the other."""
    observed = abs(sum(sums))
    flips = list(itertools.product((1, -1), repeat=len(sums)))
    return sum(abs(sum(s * x for s, x in zip(f, sums, strict=True))) >= observed - 1e-9 for f in flips) / len(flips)


@pytest.mark.parametrize("count", [1, 2, 5, 8, 11])
def test_exact_is_brute_force(count: int) -> None:
    random = np.random.default_rng(count)
    for sums in (random.normal(0.4, 1, count), random.integers(-3, 4, count).astype(float)):
        assert stats.p_value(sums, seed="s") == pytest.approx(_brute(sums.tolist()))


def test_exact_is_scipys_permutation_test() -> None:
    sums = np.random.default_rng(3).normal(0.5, 1, 9)
    theirs = reference.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=10_000)
    assert stats.p_value(sums, seed="s") == pytest.approx(theirs.pvalue)


def test_drawn_agrees_with_the_exact_answer_of_the_normal_limit() -> None:
    sums = np.random.default_rng(5).normal(0.3, 1, 40)
    expected = 2 * reference.norm.sf(abs(sums.sum()) / np.sqrt((sums**2).sum()))
    assert stats.p_value(sums, seed="s") == pytest.approx(expected, abs=0.015)


def test_drawn_depends_on_its_seed_only_and_never_reaches_zero() -> None:
    sums = np.random.default_rng(5).normal(0.3, 1, 40)
    assert stats.p_value(sums, seed="a") == stats.p_value(sums, seed="a")
    assert stats.p_value(sums, seed="a") != stats.p_value(sums, seed="b")
    assert stats.p_value(np.ones(40), seed="a") == 1 / (stats.DRAWS + 1)


def test_direction_does_not_matter_and_no_difference_gives_one() -> None:
    sums = np.random.default_rng(6).normal(0.3, 1, 20)
    assert stats.p_value(sums, seed="s") == stats.p_value(-sums, seed="s")
    assert stats.p_value(np.zeros(7), seed="s") == stats.p_value(np.zeros(30), seed="s") == 1.0
    assert stats.p_value(np.zeros(0), seed="s") == 1.0


def test_rounding_does_not_lose_ties() -> None:
    # 0.1 + 0.2 - 0.3 is not 0 in binary; every flip below ties with the observed sum or exceeds it in exact numbers.
    assert stats.p_value(np.array([0.1, 0.2, -0.3]), seed="s") == 1.0


@pytest.mark.parametrize(("count", "least"), [(1, 1.0), (3, 0.25), (5, 0.0625), (6, 0.03125), (30, 1 / 20_001)])
def test_smallest_p(count: int, least: float) -> None:
    assert stats.smallest_p(count) == least
    assert stats.p_value(np.ones(count), seed="s") == pytest.approx(least)

"""Looks at a difference while repositories are added: the error of all looks together, by every flip and simulated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ctxbench.harness.leaderboard import stats
from ctxbench.harness.leaderboard.sequential import Ending, Look, look, looks, repeated_interval, spending
from ctxbench.harness.leaderboard.stats import Array
from scripts.power_table import LOOKED_AT, PAGE, SEQUENTIAL_HEAD, Looked, last_look


def last(sums: Array) -> Look:
    return last_look(sums, np.ones(len(sums)))


def test_looks_begin_where_something_can_be_significant_and_end_with_the_set() -> None:
    assert (looks(5), looks(6), looks(7)) == ((), (6,), (6, 7))
    assert looks(12) == (6, 8, 10, 12) and looks(48) == (10, 15, 20, 25, 30, 35, 40, 45, 48)
    assert all(len(looks(count)) <= 10 and looks(count)[-1] == count for count in range(6, 300))


def test_spending_is_o_brien_and_flemings_and_ends_at_five_percent() -> None:
    # Lan and DeMets 1983: at half of the information 0.0056, at three quarters 0.0236.
    assert [round(spending(share), 4) for share in (0.25, 0.5, 0.75)] == [0.0001, 0.0056, 0.0236]
    assert spending(1) == pytest.approx(stats.ALPHA)


@pytest.mark.parametrize("repositories", [6, 7, 9, 11])
def test_of_all_flips_at_most_five_percent_are_ever_called_a_difference(repositories: int) -> None:
    """The exact error: whatever the sizes of the differences, some of them equal, every flip is as likely."""
    random = np.random.default_rng(repositories)
    for sizes in (random.exponential(1, repositories), random.integers(0, 3, repositories).astype(float)):
        flips = [(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=repositories - 1)]
        decided = [last(sizes * np.array(flip)).ending is Ending.DECIDED for flip in flips]
        assert np.mean(decided) <= stats.ALPHA


def test_a_single_look_is_the_fixed_test() -> None:
    random = np.random.default_rng(2)
    for _ in range(200):
        sums = random.normal(0.8, 1, 6)
        seen, p = last(sums), stats.p_value(sums, seed="s")
        assert seen.p == p and (seen.ending is Ending.DECIDED) == (p <= stats.ALPHA)


def test_p_counts_what_crossed_before() -> None:
    # All of one sign: 1 in 32 paths, too many for the 0.56 % of the first look, 1 in 128 for the 2.36 % of the second.
    sums = np.arange(1.0, 13.0)
    first, second = (look(sums[:count], np.ones(count), 12, seed="s") for count in (6, 8))
    assert (first.ending, first.p, second.ending, second.p) == (None, 1 / 32, Ending.DECIDED, 1 / 128)
    # Whatever comes later, the paths that crossed then count.
    later = np.concatenate([sums[:8], [-1.0, 1.0]])
    assert look(later, np.ones(10), 12, seed="s").p >= 1 / 128


@pytest.mark.slow
def test_the_interval_holds_zero_exactly_if_nothing_is_decided() -> None:
    random = np.random.default_rng(6)
    endings = set()
    for lead in (0.0, 0.4, 1.0) * 12:
        sizes = random.integers(3, 8, 14).astype(float)
        sums = sizes * random.normal(lead, 1, 14)
        seen = last_look(sums, sizes)
        count = seen.repositories
        low, high = repeated_interval(sums[:count], sizes[:count], 14, seed="s")
        assert low <= seen.mean <= high
        assert (low <= 0 <= high) == (seen.ending is not Ending.DECIDED)
        endings.add(seen.ending)
    assert endings == {Ending.DECIDED, Ending.FUTILE, Ending.ALL}


@pytest.mark.slow
def test_of_all_flips_of_its_noise_the_interval_misses_the_truth_in_at_most_five_percent() -> None:
    noise, truth, misses = np.random.default_rng(7).normal(0, 1, 8), 0.9, 0
    for flip in itertools.product((1.0, -1.0), repeat=8):
        sums = truth + noise * np.array(flip)
        count = last(sums).repositories
        low, high = repeated_interval(sums[:count], np.ones(count), 8, seed="s")
        misses += not low < truth < high
    assert 0 < misses / 2**8 <= stats.ALPHA


def test_an_early_look_that_may_spend_nothing_rules_nothing_out() -> None:
    sums = np.linspace(1, 2, 8)
    seen = look(sums, np.ones(8), 80, seed="s")
    assert (seen.ending, repeated_interval(sums, np.ones(8), 80, seed="s")) == (None, (-math.inf, math.inf))


def test_neither_direction_nor_unit_matters() -> None:
    sums = np.random.default_rng(3).normal(0.5, 1, 20)
    seen = last(sums)
    for factor in (-1.0, 1024.0):
        other = last(factor * sums)
        assert (other.p, other.ending, other.mean) == (seen.p, seen.ending, factor * seen.mean)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in LOOKED_AT if case.repositories <= 12], ids=str)
def test_the_error_and_the_power_in_simulated_runs(case: Looked) -> None:
    rates = case.rates(1500)
    if case.lead == 0:
        assert rates.decided <= 0.055
    else:
        # Stopping early and giving up cost a little power, and save repositories.
        assert rates.fixed - 0.09 <= rates.decided <= rates.fixed + 0.02
    assert rates.used < case.repositories


def test_the_page_has_the_table() -> None:
    table = PAGE.read_text(encoding="utf-8").split(SEQUENTIAL_HEAD)[1].split("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert [(row[0], row[1]) for row in rows] == [(str(case.repositories), f"{case.lead:g}") for case in LOOKED_AT]
    assert all(float(row[4][:-2]) <= 5.5 for row in rows if row[1] == "0")
    assert LOOKED_AT[0].line() == table.splitlines(keepends=True)[0]

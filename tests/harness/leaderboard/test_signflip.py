"""Check the sign-flip test, single and step-down, by brute force, by hand and by its error on simulated boards.

The simulated samples are 347 tasks in 23 very uneven projects, as in a published repository-level benchmark; two
strategies of equal skill. With interaction, each repository favours one of the two at random (standard deviation 0.6 on
the logit scale).
"""

import dataclasses
import itertools
import random
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats as reference

from ctxbench.harness.leaderboard import signflip
from ctxbench.harness.leaderboard.signflip import step_down
from scripts.power_table import BEGIN, EFFECTS, END, HEAD, PAGE, REPOSITORIES, SimulatedBoard, holm, line, rates


def p_value(sums: NDArray[np.float64], *, seed: str) -> float:
    return float(signflip.p_values(sums[np.newaxis], seed=seed)[0])


def test_exact_p_values_equal_scipys_permutation_test() -> None:
    sums = np.random.default_rng(3).normal(0.5, 1, 9)
    theirs = reference.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=10_000)
    assert p_value(sums, seed="s") == pytest.approx(theirs.pvalue)


def test_drawn_p_values_depend_on_the_seed_and_are_never_zero() -> None:
    sums = np.random.default_rng(5).normal(0.3, 1, 40)
    assert p_value(sums, seed="a") == p_value(sums, seed="a")
    assert p_value(sums, seed="a") != p_value(sums, seed="b")
    assert p_value(np.ones(40), seed="a") == 1 / (signflip.DRAWS + 1)


def test_p_ignores_the_direction_and_is_1_without_a_difference() -> None:
    sums = np.random.default_rng(6).normal(0.3, 1, 20)
    assert p_value(sums, seed="s") == p_value(-sums, seed="s")
    assert p_value(np.zeros(7), seed="s") == p_value(np.zeros(30), seed="s") == 1.0
    assert p_value(np.zeros(0), seed="s") == 1.0


def test_rounding_does_not_lose_ties() -> None:
    # 0.1 + 0.2 - 0.3 is not 0 in binary. In exact numbers, every flip ties with the observed sum or exceeds it.
    assert p_value(np.array([0.1, 0.2, -0.3]), seed="s") == 1.0


@pytest.mark.parametrize(("count", "least"), [(1, 1.0), (3, 0.25), (5, 0.0625), (6, 0.03125), (30, 1 / 20_001)])
def test_the_smallest_p_depends_on_the_number_of_repositories(count: int, least: float) -> None:
    assert signflip.smallest_p(count) == least
    assert p_value(np.ones(count), seed="s") == pytest.approx(least)


RUNS = 4000


def brute(sums: list[list[float]]) -> list[float]:
    """Return adjusted p-values from all flips, beginning with the pair with the largest statistic."""
    flips = list(itertools.product((1, -1), repeat=len(sums[0])))
    scales = [sum(x * x for x in row) ** 0.5 or 1.0 for row in sums]

    def statistic(pair: int, flip: tuple[int, ...]) -> float:
        return abs(sum(sign * x for sign, x in zip(flip, sums[pair], strict=True))) / scales[pair]

    observed = [statistic(pair, (1,) * len(sums[0])) for pair in range(len(sums))]
    remaining = sorted(range(len(sums)), key=lambda pair: -observed[pair])
    adjusted, least = [0.0] * len(sums), 0.0
    while remaining:
        hits = sum(max(statistic(pair, flip) for pair in remaining) >= observed[remaining[0]] - 1e-9 for flip in flips)
        least = adjusted[remaining[0]] = max(least, hits / len(flips))
        del remaining[0]
    return adjusted


@pytest.mark.parametrize("repositories", [1, 3, 7, 9])
def test_step_down_equals_its_definition(repositories: int) -> None:
    random = np.random.default_rng(repositories)
    whole = random.integers(-2, 3, (4, repositories)).astype(float)
    sums = np.concatenate([whole, random.normal(0.5, 1, (4, repositories)), np.zeros((1, repositories))])
    # One pair lacks samples of a repository, and two pairs are equal except for rounding.
    sums[0, 0], sums[3] = 0.0, sums[4] * 3.0
    assert step_down(sums, seed="s").p.tolist() == pytest.approx(brute(sums.tolist()))


@pytest.mark.parametrize("repositories", [4, 9, 16, 17, 40])
def test_a_single_pair_keeps_its_p_value_and_others_only_raise_it(repositories: int) -> None:
    sums = np.random.default_rng(5).normal(0.4, 1, (12, repositories))
    alone = signflip.p_values(sums, seed="s")
    for row, p in zip(sums, alone, strict=True):
        assert step_down(row[np.newaxis], seed="s").p.tolist() == [p]
    assert (step_down(sums, seed="s").p >= alone).all()


def test_order_direction_and_scale_of_pairs_do_not_matter() -> None:
    random = np.random.default_rng(8)
    for repositories in (8, 20):
        sums = random.normal(0.4, 1, (10, repositories))
        p, order = step_down(sums, seed="s").p, random.permutation(10)
        assert (step_down(sums[order], seed="s").p == p[order]).all()
        factors = np.array([1, -1] * 5)[:, np.newaxis] * 2.0 ** np.arange(10)[:, np.newaxis]
        assert (step_down(sums * factors, seed="s").p == p).all()


def test_a_pair_with_few_repositories_does_not_hide_a_clear_one() -> None:
    clear = np.array([[2.0, 3.0, 2.5, 1.5, 2.2, 2.8, 1.9, 2.4]])
    few = np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    p = step_down(np.concatenate([clear, few, np.zeros((1, 8))]), seed="s").p
    assert p.tolist() == [1 / 128, 0.25, 1.0]


def test_drawn_flips_agree_with_all_flips_and_p_is_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = np.random.default_rng(2).normal(0.5, 1, (10, 14))
    exact = step_down(sums, seed="s").p
    monkeypatch.setattr("ctxbench.harness.leaderboard.signflip.EXACT_UP_TO", 10)
    drawn = step_down(sums, seed="s").p
    assert np.abs(drawn - exact).max() < 0.012 and (drawn != exact).any()
    assert step_down(np.ones((3, 40)), seed="s").p.tolist() == [1 / (signflip.DRAWS + 1)] * 3


def test_statistics_above_the_critical_one_are_significant() -> None:
    random = np.random.default_rng(4)
    for repositories in (6, 8, 11, 20):
        sums = random.normal(0, 1, (10, repositories))
        found = step_down(sums, seed="s")
        statistics = np.abs(sums.sum(axis=1)) / np.sqrt((sums**2).sum(axis=1))
        assert found.critical is not None
        assert ((found.p <= signflip.ALPHA) == (statistics > found.critical)).all()
        # A pair with the same sign in every repository has the largest possible statistic.
        lead = np.concatenate([sums, np.ones((1, repositories))])
        assert (step_down(lead, seed="s").p[-1] <= signflip.ALPHA) == (found.critical < repositories**0.5)
    assert step_down(np.ones((3, 5)), seed="s").critical is None


def drawn_family(seed: int) -> tuple[Any, Any]:
    """Return sums and sample counts of random pairs in each repository. Counts may be uneven or zero."""
    random = np.random.default_rng(seed)
    repositories, pairs = int(random.integers(4, 14)), int(random.integers(1, 7))
    of_repository = random.integers(1, 20, repositories) if seed % 2 else np.full(repositories, 8)
    sizes = np.tile(of_repository, (pairs, 1)).astype(float)
    sizes[random.random(sizes.shape) < (0.15 if seed % 3 == 0 else 0.0)] = 0.0
    means = random.choice([0.0, 0.0, 1.0, 2.0], pairs)[:, np.newaxis] + 2 * random.standard_normal(sizes.shape)
    sums = sizes * means + np.sqrt(sizes) * random.standard_normal(sizes.shape)
    return np.round(sums) if seed % 5 == 0 else sums, sizes


@pytest.mark.slow
def test_an_interval_excludes_0_exactly_if_p_is_at_most_5_percent() -> None:
    significant = 0
    for seed in range(2000):
        sums, sizes = drawn_family(seed)
        found = step_down(sums, sizes, seed="s")
        is_apart = found.p <= signflip.ALPHA
        assert (((found.low > 0) | (found.high < 0)) == is_apart).all()
        means = sums.sum(axis=1) / np.maximum(sizes.sum(axis=1), 1)
        assert ((found.low <= means + 1e-5) & (means - 1e-5 <= found.high)).all()
        assert (found.p == step_down(sums, seed="s").p).all()
        significant += int(is_apart.sum())
    assert significant > 300


def test_intervals_scale_with_differences_and_are_infinite_if_undecidable() -> None:
    sums, sizes = drawn_family(2)
    found, turned = step_down(sums, sizes, seed="s"), step_down(-4.0 * sums, sizes, seed="s")
    assert turned.low.tolist() == pytest.approx((-4 * found.high).tolist(), abs=1e-5)
    few = step_down(np.ones((2, 5)), np.ones((2, 5)), seed="s")
    assert np.isinf(few.low).all() and np.isinf(few.high).all()
    assert np.isnan(step_down(sums, seed="s").low).all()


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("repositories", "pairs", "uneven"), [(8, 1, False), (12, 1, True), (12, 5, False), (24, 5, True)]
)
def test_intervals_contain_all_true_differences_together(repositories: int, pairs: int, uneven: bool) -> None:
    random, held = np.random.default_rng(repositories + pairs), 0
    truth = np.array([1.0, 0.0, 3.0, 5.0, 2.0])[:pairs]
    for _ in range(300):
        of_repository = random.integers(5, 15, repositories) if uneven else np.full(repositories, 10)
        sizes = np.tile(of_repository, (pairs, 1)).astype(float)
        base, *tastes = random.normal(0, 3, (pairs + 1, repositories))
        found = step_down((truth[:, np.newaxis] + np.array(tastes) - base) * sizes, sizes, seed="s")
        held += bool(((found.low <= truth) & (truth <= found.high)).all())
    # The standard error over 300 boards is 1.3 points.
    assert held >= 276


@pytest.mark.slow
def test_a_large_board_uses_little_memory() -> None:
    """40 rows have 780 pairs. Storing every statistic under every flip at once would use 125 MB."""
    scores = np.random.default_rng(1).normal(0, 1, (40, 40))
    sums = np.array([scores[a] - scores[b] for a, b in itertools.combinations(range(40), 2)])
    tracemalloc.start()
    try:
        p = step_down(sums, np.ones_like(sums), seed="s").p
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(p) == 780 and peak < 32 << 20


UNEVEN = (64, 41, 27, 18, 13, 9, 7, 5, 3, 2, 1, 1)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    "board",
    [
        pytest.param(SimulatedBoard(effects=[0] * 5), id="complete null"),
        pytest.param(SimulatedBoard(effects=[0] * 11), id="complete null of eleven strategies"),
        pytest.param(SimulatedBoard(effects=[0, 0, 0, 2.5, 2.5]), id="partial null"),
        pytest.param(SimulatedBoard(effects=[0, 0, 3, 3, 6, 6]), id="three ties"),
        pytest.param(SimulatedBoard(effects=[0] * 5, sizes=UNEVEN), id="uneven repositories"),
        pytest.param(SimulatedBoard(effects=[0, 0, 0, 2.5, 2.5], sizes=UNEVEN), id="partial null, uneven repositories"),
        pytest.param(SimulatedBoard(effects=[0] * 5, taste="heavy"), id="heavy tails"),
        pytest.param(SimulatedBoard(effects=[0, 0, 0, 4, 4], taste="heavy"), id="partial null, heavy tails"),
        pytest.param(SimulatedBoard(effects=[0] * 5, taste="skewed"), id="skewed"),
        pytest.param(SimulatedBoard(effects=[0] * 6, correlation=0.9), id="correlated strategies"),
        pytest.param(SimulatedBoard(effects=[0, 0, 0, 2.5, 2.5], correlation=0.9), id="partial null, correlated"),
        pytest.param(SimulatedBoard(effects=[0] * 5, repositories=10, missing=0.2), id="samples missing"),
        pytest.param(SimulatedBoard(effects=[0, 0, 2, 2], repositories=10, missing=0.2), id="partial null, missing"),
        pytest.param(SimulatedBoard(effects=[0] * 4, interaction=0.0), id="no interaction"),
    ],
)
@pytest.mark.parametrize("baseline", [None, 0], ids=["all pairs", "against a baseline"])
def test_the_family_wise_error_stays_at_the_nominal_level(board: SimulatedBoard, baseline: int | None) -> None:
    assert rates(dataclasses.replace(board, baseline=baseline), RUNS).family_wise_error <= 0.055


@pytest.mark.slow
@pytest.mark.parametrize(("repositories", "least", "holm_most"), [(6, 0.2, 0.0), (8, 0.6, 0.0), (10, 0.85, 0.85)])
def test_true_differences_are_found_where_holm_finds_fewer(repositories: int, least: float, holm_most: float) -> None:
    board = SimulatedBoard(effects=[0, 0, 0, 2.5, 2.5], repositories=repositories)
    assert rates(board, 400).power >= least and rates(board, 400, by_holm=True).power <= holm_most


def test_holm_p_values_match_a_calculation_by_hand() -> None:
    # The sorted values 0.01, 0.02, 0.03, 0.2 times 4, 3, 2, 1 are 0.04, 0.06, 0.06, 0.2 and never fall.
    assert holm(np.array([0.03, 0.01, 0.2, 0.02])).tolist() == pytest.approx([0.06, 0.04, 0.2, 0.06])


@pytest.mark.slow
def test_the_page_contains_the_table() -> None:
    table = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    lines = table.removeprefix(HEAD).splitlines(keepends=True)
    assert table.startswith(HEAD) and len(lines) == len(EFFECTS) * len(REPOSITORIES)
    assert line(EFFECTS[0], REPOSITORIES[1]) in lines


@pytest.mark.parametrize(
    ("count", "apart", "expected"),
    [
        (0, [], ()),
        (1, [], ("a",)),
        (3, [], ("a", "a", "a")),
        (2, [(0, 1)], ("a", "b")),
        (3, [(0, 2)], ("a", "ab", "b")),
        (3, [(0, 1), (0, 2)], ("a", "b", "b")),
        (3, [(0, 1), (0, 2), (1, 2)], ("a", "b", "c")),
        (4, [(0, 2), (0, 3), (1, 3)], ("a", "ab", "bc", "c")),
    ],
)
def test_group_letters_match_examples(count: int, apart: list[tuple[int, int]], expected: tuple[str, ...]) -> None:
    assert signflip.group_letters(count, apart) == expected


def test_two_rows_share_a_letter_exactly_if_they_do_not_differ() -> None:
    draw = random.Random("tiers")
    for _ in range(100):
        pairs = list(itertools.combinations(range(7), 2))
        apart = [pair for pair in pairs if draw.random() < 0.4]
        marks = signflip.group_letters(7, apart)
        for a, b in pairs:
            assert bool(set(marks[a]) & set(marks[b])) is ((a, b) not in apart)


def test_rank_ranges_count_only_significant_differences() -> None:
    assert signflip.rank_ranges(3, []) == ((1, 3), (1, 3), (1, 3))
    assert signflip.rank_ranges(3, [(0, 2)]) == ((1, 2), (1, 3), (2, 3))
    assert signflip.rank_ranges(2, [(1, 0)]) == ((2, 2), (1, 1))


SIZES = np.array([64, 52, 41, 33, 27, 22, 18, 15, 13, 11, 9, 8, 7, 6, 5, 4, 3, 3, 2, 1, 1, 1, 1])
SIMULATED = 1500

Answers = NDArray[np.bool_]


def _simulate(*, interaction: float, shift: float = 0.0) -> tuple[Answers, Answers]:
    """Return which answers of both strategies are right, in shape (runs, samples)."""
    random = np.random.default_rng(11)
    repo = np.repeat(np.arange(len(SIZES)), SIZES)
    level = random.normal(-1.7, 0.7, (SIMULATED, len(SIZES)))[:, repo] + random.normal(0, 0.8, (SIMULATED, len(repo)))
    advantage = random.normal(shift, interaction, (SIMULATED, len(SIZES)))[:, repo]
    chance = [1 / (1 + np.exp(-(level + sign * advantage / 2))) for sign in (1, -1)]
    return random.random(level.shape) < chance[0], random.random(level.shape) < chance[1]


def _signflip(this: Answers, other: Answers) -> float:
    starts = np.concatenate(([0], np.cumsum(SIZES)[:-1]))
    sums = np.add.reduceat(this.astype(float) - other, starts, axis=1)
    return float((signflip.p_values(sums, seed="simulation") <= signflip.ALPHA).mean())


@pytest.mark.parametrize("interaction", [0.6, 0.0])
def test_false_positives_stay_at_the_nominal_level(interaction: float) -> None:
    assert _signflip(*_simulate(interaction=interaction)) <= 0.055


@pytest.mark.slow
def test_real_differences_are_found() -> None:
    none, some = (_signflip(*_simulate(interaction=0.6, shift=shift)) for shift in (0.0, 0.6))
    assert some > 0.4 > 5 * none

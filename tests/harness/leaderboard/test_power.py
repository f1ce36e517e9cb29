"""Power before a run: variances of stored runs, the power predicted from them, and the printed plan."""

import math

import numpy as np
import pytest

from ctxbench.bench.errors import UnknownName
from ctxbench.harness.leaderboard import stats
from ctxbench.harness.leaderboard.power import Spread, plans, power, repositories_needed, spread
from ctxbench.harness.results import RunTable
from scripts.power_table import PAGE, PREDICTED, PREDICTED_HEAD, TwoLevels
from tests.helpers.runs import make_table


def test_variances_equal_a_calculation_by_hand() -> None:
    # Means 1, 3, 5, 7, 9, each with a sample one above and one below: mean square between 2 * 10, within 2.
    values = np.array([0.0, 2, 2, 4, 4, 6, 6, 8, 8, 10])
    assert spread(stats.clustered(values, np.repeat(np.arange(5), 2))) == Spread(between=9.0, within=2.0)


def test_variances_are_unbiased_for_uneven_repositories() -> None:
    case, random = TwoLevels(repositories=30, samples=12, between=4.0, within=10.0, is_uneven=True), np.random
    estimates = [spread(case.gaps(random.default_rng(seed))[0]) for seed in range(200)]
    assert np.mean([estimate.between for estimate in estimates if estimate]) == pytest.approx(16, rel=0.1)
    assert np.mean([estimate.within for estimate in estimates if estimate]) == pytest.approx(100, rel=0.03)


def test_unsuitable_values_have_no_variances() -> None:
    random = np.random.default_rng(1)
    few = stats.clustered(random.normal(size=8), np.repeat(np.arange(4), 2))
    single = stats.clustered(random.normal(size=9), np.arange(9))
    equal = stats.clustered(np.zeros(18), np.repeat(np.arange(9), 2))
    assert (spread(few), spread(single), spread(equal)) == (None, None, None)
    # If samples explain all variation of the repositories, the variance between them is zero and not negative.
    even = stats.clustered(np.tile([-1.0, 1.0], 9), np.repeat(np.arange(9), 2))
    assert spread(even) == Spread(between=0.0, within=2.0)
    assert Spread(between=0.0, within=2.0).deviation(math.inf) == 0.0


FAST = [case for case in PREDICTED if case.repositories <= 12] + [
    TwoLevels(repositories=8, samples=50, between=1.0, rows=4),
    TwoLevels(repositories=10, samples=50, within=10.0, rows=5, is_uneven=True),
    TwoLevels(repositories=24, samples=20),
]


@pytest.mark.slow
@pytest.mark.parametrize("case", FAST, ids=str)
def test_the_predicted_power_matches_simulated_runs(case: TwoLevels) -> None:
    # The standard error over 500 boards is 2.2 points.
    assert case.predicted() == pytest.approx(case.simulated(500), abs=0.06)


def test_power_matches_the_sign_flip_test() -> None:
    # With five repositories nothing is significant. With six, all must lead, each with probability p(z > -1).
    assert power(9, 1, 5) == 0.0 and power(9, 0, 6) == 1.0
    assert power(1, 1, 6) == pytest.approx(0.8413**6 + 0.1587**6, abs=0.04)
    # With many repositories the power is that of Student's test: 80 % at 2.85 standard errors.
    assert power(2.85 / math.sqrt(60), 1, 60) == pytest.approx(0.8, abs=0.02)
    rising = [power(0.8, 1, count) for count in (6, 8, 9, 12, 16, 24)]
    assert rising == sorted(rising)
    falling = [power(1, 1, 12, rows=rows) for rows in (2, 3, 6)]
    assert falling == sorted(falling, reverse=True)


def test_needed_repositories_are_the_fewest_with_enough_power() -> None:
    needed = repositories_needed(1, 1)
    assert needed is not None and power(1, 1, needed) >= 0.8 > power(1, 1, needed - 1)
    assert repositories_needed(9, 1) == 6 and repositories_needed(1, 1000) is None


def stored(strategy: str, lead: float, *, repositories: int = 12, taste: float = 0.04, **run: object) -> RunTable:
    """Return a run of ten samples per repository with ``es`` about `lead` above 0.4, seeded by the strategy."""
    random = np.random.default_rng([ord(letter) for letter in strategy])
    own = np.repeat(random.normal(0, taste, repositories), 10)
    es = 0.4 + lead + own + random.normal(0, 0.05, 10 * repositories)
    repos = [f"r{repo:02}" for repo in range(repositories) for _ in range(10)]
    return make_table({"es": es.tolist()}, repos, strategy=strategy, id=strategy, **run)


@pytest.mark.slow
def test_a_plan_reports_the_needed_repositories_and_their_basis() -> None:
    tables = [stored("base", 0), stored("a", 0.02), stored("b", 0.05, taste=0.2), stored("oracle", 0.5, ranked=False)]
    (plan,), faults = plans(tables, baseline="base", effect=3, metric="es")
    assert (plan.strategies, plan.repositories, plan.samples_each, faults) == (("a", "b"), 12, 10, [])
    assert plan.needed is not None and plan.needed_at_least is not None
    low, high = plan.needed_by_pair
    assert low is not None and high is not None and low < plan.needed < high
    assert 6 <= plan.needed_at_least <= plan.needed
    assert plan.answer().startswith(f"A difference of 3.0 % needs about {plan.needed} repositories of 10 samples (80%")
    assert f"the pair that varies least needs {low}, the pair that varies most {high}" in plan.basis()
    powers = {(count, size): share for count, size, share in plan.table}
    assert powers[6, 5] < powers[64, 5] and powers[16, 5] <= powers[16, 50]
    (tiny,), _ = plans(tables, baseline="base", effect=0.01)
    assert tiny.needed is None and "needs more than 1000 repositories of 10 samples" in tiny.answer()
    (family,), _ = plans(tables, baseline="base", effect=3, rows=4)
    assert (
        family.needed is not None
        and family.needed > plan.needed
        and "for 3 rows against the baseline" in family.answer()
    )


@pytest.mark.slow
def test_a_baseline_run_named_by_id_replaces_the_newest_run() -> None:
    older = stored("base", 0, taste=0.2)
    newer = make_table(older.metrics, older.repo, strategy="base", id="newer")
    wide = stored("wide", 0, taste=0.3)
    tables = [make_table(wide.metrics, wide.repo, strategy="base", id="older"), newer, stored("a", 0)]
    by_id = {name: plans(tables, baseline=name, effect=30)[0][0].between for name in ("older", "base")}
    assert by_id["older"] > by_id["base"]


def test_plans_that_stored_runs_cannot_answer_are_refused() -> None:
    alone, other = stored("base", 0), stored("a", 0, language="java")
    (_, faults) = plans([alone, other], baseline="base", effect=3)
    assert "no other run is paired with base" in str(faults[0])
    assert "`ctxbench run --samples demo --strategy SPEC --generator scripted`" in str(faults[0])
    few = [stored("base", 0, repositories=4), stored("a", 0.1, repositories=4)]
    assert "the runs share 4 repositories, and an estimate needs at least 5" in str(
        plans(few, baseline="base", effect=3)[1][0]
    )
    same = [alone, make_table(alone.metrics, alone.repo, strategy="twin", id="t")]
    assert "never differ" in str(plans(same, baseline="base", effect=3)[1][0])
    control = [stored("base", 0, ranked=False), stored("a", 0)]
    assert "name a ranked baseline" in str(plans(control, baseline="base", effect=3)[1][0])
    with pytest.raises(UnknownName):
        plans([alone], baseline="bas", effect=3)


def test_the_page_contains_the_predictions() -> None:
    table = PAGE.read_text(encoding="utf-8").split(PREDICTED_HEAD)[1].split("<!-- end -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert [row[0] for row in rows] == [str(case.repositories) for case in PREDICTED]
    assert all(abs(int(row[-1][:-2]) - int(row[-2][:-2])) <= 6 for row in rows)
    assert [row[-2] for row in rows[:3]] == [f"{100 * case.predicted():.0f} %" for case in PREDICTED[:3]]

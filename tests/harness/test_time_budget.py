"""Time budgets: how many samples fit, and the fault if the time is too short."""

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.time_budget import TimeBudget, fitting, read_time


def test_times_are_read_with_their_units() -> None:
    assert [read_time(text) for text in ("90s", "1.5h", " 2m ", "0m", "10", "m", "1d")] == [
        90, 5400, 120, None, None, None, None,
    ]  # fmt: skip


def test_the_plan_is_the_largest_that_fits() -> None:
    assert [fitting(seconds, 2.0, most=170) for seconds in (39, 40, 99, 339, 340, 1e9)] == [0, 20, 40, 150, 170, 170]


def make_budget(finished: int = 0) -> TimeBudget:
    budget = TimeBudget(seconds=600.0, began=1000.0, strategies=2)
    budget.start(1010.0, 16)
    budget.finished = finished
    return budget


def test_a_plan_is_within_the_time_left() -> None:
    budget = make_budget()
    assert budget.planned(1100.0, [1.0, 1.0], most=1000) == 200
    with pytest.raises(InputFault, match="20 samples take about 600 s, but only 500 s are left") as fault:
        budget.planned(1100.0, [10.0, 20.0], most=1000)
    assert fault.value.cure == "give --budget 14m, a smaller model, or --generator none"
    budget.asks_model = False
    assert budget.too_slow(1100.0).cure == "give a much longer --budget"


@pytest.mark.parametrize(
    ("finished", "what", "cure"),
    [
        (0, "no completion was finished in 360 s", "a much longer --budget"),
        (5, "5 completions took 350 s; a decision needs 40, which take about 47 min", "--budget 100m"),
    ],
)
def test_a_pilot_that_is_too_slow_says_how_to_continue(finished: int, what: str, cure: str) -> None:
    fault = make_budget(finished).too_slow(1360.0)
    assert what in fault.what and cure in fault.cure
    assert make_budget().pilot_end == 1360.0 and make_budget().end == 1720.0


def test_an_unfinished_run_says_how_many_completions_it_finished() -> None:
    assert str(make_budget(7).unfinished(1720.0)).startswith("--budget: 7 of 32 completions were finished in 12.0 min")

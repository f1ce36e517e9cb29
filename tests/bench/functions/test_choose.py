"""Choosing the tests that judge a function."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.bench.functions.choose import MOST_TESTS, MOST_TRIED, SLOW, choose, further_tests, strongest, usable
from ctxbench.bench.functions.mining import TestRun


def run(breadth: int = 1) -> TestRun:
    return TestRun(passed=True, seconds=0.1, breadth=breadth)


def test_few_tests_are_all_chosen() -> None:
    covering = {"b": frozenset({1}), "a": frozenset({1, 2})}
    assert choose(covering, {"a": run(), "b": run()}) == ("a", "b")


def test_tests_that_add_lines_are_chosen_before_the_narrowest() -> None:
    covering = {f"wide{number:02}": frozenset({1}) for number in range(30)}
    covering |= {f"narrow{number:02}": frozenset({1}) for number in range(MOST_TESTS)}
    covering["only"] = frozenset({1, 7})
    runs = {test: run(9 if test == "only" else 5 if test.startswith("wide") else 2) for test in covering}
    chosen = choose(covering, runs)
    assert len(chosen) == MOST_TESTS and "only" in chosen
    assert sum(test.startswith("narrow") for test in chosen) == MOST_TESTS - 1


def test_parameters_of_one_test_do_not_crowd_out_others() -> None:
    covering = {f"t.py::test_a[{number}]": frozenset({1}) for number in range(50)}
    covering |= {f"t.py::test_{name}": frozenset({1}) for name in "bcd"}
    runs = {test: run(1 if "[" in test else 8) for test in covering}
    assert {f"t.py::test_{name}" for name in "bcd"} <= set(choose(covering, runs))


def test_failed_and_slow_tests_are_not_usable() -> None:
    assert usable(run())
    assert not usable(TestRun(passed=False, seconds=0.1, breadth=1))
    assert not usable(TestRun(passed=True, seconds=SLOW, breadth=1))


COVERING = st.dictionaries(
    st.text("abc[]", min_size=1, max_size=6), st.frozensets(st.integers(1, 12), min_size=1), min_size=1, max_size=60
)


@pytest.mark.slow
@given(COVERING, st.integers(0, 5))
def test_the_choice_is_small_and_complete_and_ignores_order_and_time(
    covering: dict[str, frozenset[int]], seed: int
) -> None:
    runs = {test: TestRun(True, 0.1, len(test) % 3) for test in covering}
    chosen = choose(covering, runs)
    assert list(chosen) == sorted(set(chosen)) and set(chosen) <= covering.keys()
    assert len(chosen) == min(len(covering), MOST_TESTS)
    # Twelve lines need at most twelve tests.
    assert frozenset().union(*(covering[test] for test in chosen)) == frozenset().union(*covering.values())
    turned = dict(sorted(covering.items(), key=lambda item: hash((seed, item[0]))))
    slower = {test: TestRun(True, 0.2 + seed, run.breadth) for test, run in runs.items()}
    assert choose(turned, slower) == chosen


def test_two_tests_per_fault_are_chosen_and_the_best_fill_the_rest() -> None:
    ranked = [f"narrow{number:02}" for number in range(MOST_TESTS)]
    others = [f"wide{number}" for number in range(9)]
    failing = [frozenset({"wide1", "wide3", "wide5"}), frozenset({"narrow19"}), frozenset(ranked)]
    chosen = strongest(ranked, others, failing)
    assert len(chosen) == MOST_TESTS and list(chosen) == sorted(chosen)
    assert {"wide1", "wide3", "narrow19"} <= set(chosen) and "wide5" not in chosen
    assert set(ranked[:17]) <= set(chosen), "of the ranked the best"
    assert strongest(ranked, others, []) == tuple(sorted(ranked))
    assert strongest(["a"], ["b", "c"], [frozenset({"c"})]) == ("a", "c"), "no more than notice something"


def test_further_tests_are_the_widest_and_narrowest_then_importing_modules() -> None:
    covering = {f"t.py::test_{number}": frozenset({1}) for number in range(6)}
    runs = {test: run(number) for number, test in enumerate([*covering, "t.py::test_import"])}
    found = further_tests(covering, ["t.py::test_import", "t.py::test_1"], runs, ["t.py::test_0"])
    assert found == (*(f"t.py::test_{number}" for number in (5, 1, 4, 2, 3)), "t.py::test_import")
    many = {f"t.py::test_{number}": frozenset({1}) for number in range(2 * MOST_TRIED)}
    found = further_tests(many, [], {test: run() for test in many}, [])
    assert len(found) == MOST_TRIED

"""What rows are not alike in besides their strategy: under which load their seconds were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.comparability import group_warnings, load_of
from ctxbench.harness.leaderboard.notes import notes
from ctxbench.harness.results import Load, RunTable
from tests.helpers.runs import make_run, make_table

ALONE, MANY = Load(workers=1, requests=1, cores=1), Load(workers=4, requests=16, cores=8)
Loads = tuple[Load | None, ...]


def timed(*loads: Loads) -> list[RunTable]:
    return [
        make_table({"es": [50.0, 60.0]}, ["a", "b"], id=f"r{number}", strategy=f"lc.{number}", loads=loads_)
        for number, loads_ in enumerate(loads)
    ]


def said(*loads: Loads) -> list[str]:
    [group] = board(timed(*loads)).groups
    return [line for line in notes(group) if "load" in line]


def test_a_metric_that_a_row_lacks_or_that_is_undefined_for_all_is_no_difference_of_samples() -> None:
    values: list[float | None] = [None, 60.0]
    tables = [
        make_table({"es": values}, ["a", "b"], id="r0"),
        make_table({"es": values, "block_gain": [1.0, 2.0]}, ["a", "b"], id="r1", strategy="bm25"),
    ]
    [group] = board(tables).groups
    for metric in ("es", "block_gain"):
        assert not [line for line in group_warnings(replace(group, metric=metric)) if "same samples" in line]


@pytest.mark.parametrize("loads", [((), ()), ((ALONE,), (ALONE,)), ((None,), (None,)), ((ALONE,), ())])
def test_nothing_is_said_of_seconds_under_one_load(loads: tuple[Loads, ...]) -> None:
    assert not said(*loads)


def test_seconds_under_different_loads_are_not_compared_without_a_word() -> None:
    assert said((ALONE,), (MANY, ALONE), (None,)) == [
        "Seconds were measured under different loads, and cannot be compared: "
        "lc.0 1 strategy and 1 request at once on 1 core; "
        "lc.1 4 strategies and 16 requests at once on 8 cores, then 1 strategy and 1 request at once on 1 core; "
        "lc.2 nobody noted which."
    ]


def test_the_load_of_all() -> None:
    assert load_of([make_run(loads=(MANY,)), make_run(loads=(MANY,))]) == (
        "Seconds were measured with 4 strategies and 16 requests at once on 8 cores; what else the machines did "
        "meanwhile is not known."
    )
    assert load_of([make_run(loads=(None,))]).startswith("Nobody noted how much")
    assert not load_of([make_run(loads=(MANY,)), make_run(loads=(None,))]) and not load_of([make_run()])

"""Tables and charts of the Cost page, from plain values."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from ctxbench.dashboard.views import cost as view
from ctxbench.dashboard.views.cost import front
from ctxbench.harness.leaderboard import board, render
from ctxbench.harness.leaderboard.curves import Curves, curves
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.results import COSTS, RunTable
from tests.harness.leaderboard.test_board import noisy
from tests.helpers.runs import make_table


def specification(chart: Any) -> dict[str, Any]:
    """Return a chart as Vega-Lite with its data. Fail if the chart cannot be written as JSON."""
    spec: dict[str, Any] = json.loads(chart.to_json())
    return spec


def data_of(chart: Any) -> list[list[dict[str, Any]]]:
    """Return the rows that each layer of a chart draws, in the order of the layers."""
    whole = specification(chart)
    data: list[list[dict[str, Any]]] = []

    def walk(part: dict[str, Any], inherited: dict[str, Any]) -> None:
        inherited = part.get("data", inherited)
        inner = [*part.get("layer", []), *part.get("hconcat", [])]
        for layer in inner:
            walk(layer, inherited)
        if not inner:
            data.append(inherited["values"] if "values" in inherited else whole["datasets"][inherited["name"]])

    walk(whole, {})
    return data


def priced(table: RunTable, **means: float | None) -> RunTable:
    count = len(table.sample)
    return replace(table, costs={name: (means.get(name),) * count for name in COSTS})


def group_of(*tables: RunTable) -> Group:
    (group,) = board(tables).groups
    return group


CHEAP = priced(
    noisy("lc.infile", 0.3, id="cheap"), tokens_in=100.0, price=0.001, strategy_seconds=0.5, generator_seconds=2.0
)
DEAR = priced(
    noisy("lc.repocoder", 0.5, id="dear"), tokens_in=900.0, price=0.01234567, strategy_seconds=1.5, test_seconds=3.0
)
WASTE = priced(noisy("waste", 0.2, id="waste"), tokens_in=500.0, price=None)
GOLD = priced(noisy("gold", 0.95, id="gold", ranked=False, control=True), tokens_in=1.0)
GROUP = group_of(CHEAP, DEAR, WASTE, GOLD)


def test_points_with_unknown_values_do_not_affect_the_front() -> None:
    assert front([(None, 99.0), (1.0, None), (2.0, 5.0), (None, None)]) == {2}


def test_the_front_follows_its_definition_for_any_points() -> None:
    draw = random.Random(7)
    for _ in range(200):
        # Few distinct numbers, so that ties of every kind occur.
        points = [(float(draw.randint(0, 5)), float(draw.randint(0, 5))) for _ in range(draw.randint(0, 12))]
        for lower in (False, True):
            sign = -1 if lower else 1
            undominated = {
                at
                for at, (cost, value) in enumerate(points)
                if not any(
                    other <= cost and sign * its >= sign * value and (other < cost or sign * its > sign * value)
                    for other, its in points
                )
            }
            assert front(points, lower_is_better=lower) == undominated


def test_points_equal_those_of_the_json() -> None:
    points = {point.run: point for point in view.points(GROUP, "es", "tokens_in")}
    printed = {record["run"]: record for record in render.records(board([CHEAP, DEAR, WASTE, GOLD]))}
    assert points.keys() == printed.keys()
    for run, point in points.items():
        assert point.cost == printed[run]["tokens_in"]
        assert (point.mean, point.low, point.high) == pytest.approx(
            tuple(printed[run]["es"][part] for part in ("mean", "low", "high"))
        )
    assert {run for run, point in points.items() if point.front} == {"cheap", "dear"}
    assert [run for run, point in points.items() if point.control] == ["gold"]


def test_strategies_without_a_price_are_listed_but_not_drawn() -> None:
    points = view.points(GROUP, "es", "price")
    assert view.undrawn(points) == ["waste", "gold"]
    (steps, bars, dots, beside) = data_of(view.chart(points, "es", "%", "price"))
    assert [row["name"] for row in dots] == [row["name"] for row in bars] == ["lc.repocoder", "lc.infile"]
    assert {row["name"] for row in steps} == {"lc.repocoder", "lc.infile"}
    specification = view.chart(points, "es", "%", "price").to_dict()
    assert specification["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["on the front"], "what is drawn alone"
    # Prices have at least cents, as in the output of the command.
    assert [row["costs"] for row in dots] == ["0.0123", "0.00100"]
    rows = view.rows(points, "es", "price")
    assert [row["strategy"] for row in rows] == ["lc.infile", "lc.repocoder", "gold", "waste"]
    # Costs have three significant digits. Means have two digits of their interval's half width.
    assert [row["price (US$)"] for row in rows] == [0.001, 0.0123, None, None]
    for row in rows:
        point = next(point for point in points if point.name == row["strategy"])
        assert point.mean is not None and point.low is not None and point.high is not None
        assert 1 <= (point.high - point.low) / 2 < 10 and row["es [95%]"] == point.mean
        assert getattr(row["es [95%]"], "text", "") == f"{point.mean:.1f} [{point.low:.1f}, {point.high:.1f}]"
    # The number beside a point equals the number in its row.
    numbers_drawn = {row["name"]: row["number"] for row in beside}
    assert {row["strategy"]: row["point"] for row in rows} == {"gold": None, "waste": None, **numbers_drawn}
    assert numbers_drawn == {"lc.infile": 1, "lc.repocoder": 2}
    assert [row["front"] for row in rows] == ["on the front", "on the front", "control", ""]


def test_unknown_costs_are_not_offered() -> None:
    assert view.available_costs(GROUP) == [
        "tokens_in",
        "context_tokens",
        "calls",
        *("seconds", "strategy_seconds", "generator_seconds", "test_seconds"),
        "price",
    ]
    nothing = (None,) * len(CHEAP.sample)
    recorded = replace(noisy("x", 0.3), context_tokens=nothing, calls=nothing, seconds=nothing)
    assert view.available_costs(group_of(recorded)) == []
    engines = {"index_seconds", "query_seconds"}
    assert {*view.COSTS} == {*COSTS, *engines, "context_tokens", "calls", "seconds"}


def test_an_unmeasured_metric_has_no_front() -> None:
    points = view.points(GROUP, "copyable_bits", "tokens_in")
    assert len(view.undrawn(points)) == 4 and not any(point.front for point in points)
    assert data_of(view.chart(points, "copyable_bits", "bits", "tokens_in")) == [[], [], [], []]


REPOS = [f"r{index % 8}" for index in range(16)]


@pytest.mark.parametrize("values", [(1, 4, 16), (100, 110, 120)], ids=["logarithmic", "linear"])
def test_points_with_equal_budgets_are_drawn_slightly_apart(values: tuple[int, ...]) -> None:
    tables = [
        make_table({"es": [0.1] * 16}, REPOS, id=f"{name}{at}", strategy=f"{name}(budget={at})")
        for name in "abc"
        for at in values
    ]
    picture = curves(board(tables).groups[0])
    assert isinstance(picture, Curves) and picture.logarithmic == (values[0] == 1)
    [rows] = view.curves_chart(picture).to_dict()["datasets"].values()
    for at in values:
        places = sorted(row["x"] for row in rows if row["at"] == at)
        assert len(set(places)) == 3 and places[1] == pytest.approx(at)
        assert places[2] - places[0] < (values[1] - values[0]) / 4

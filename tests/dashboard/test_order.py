"""A table's order is a choice of its own, which stands in the address; figures keep their digits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxbench.dashboard.views import Figure, Order, arranged, orders

ROWS: list[dict[str, Any]] = [
    {"strategy": "b", "es %": Figure("9.0"), "open": "/x", "price": None},
    {"strategy": "A", "es %": None, "open": "/x", "price": None},
    {"strategy": "c", "es %": Figure("10"), "open": "/x", "price": None},
    {"strategy": "a", "es %": Figure("9.0"), "open": "/x", "price": None},
]


def names(order: Order) -> str:
    return "".join(row["strategy"] for row in arranged(ROWS, order))


def test_unasked_the_rows_stay_as_they_come() -> None:
    assert orders(ROWS, ("open",))[0] == Order() and names(Order()) == "bAca"
    assert orders([]) == [Order()]


def test_every_column_with_a_cell_is_offered_both_ways_the_usual_way_first() -> None:
    options = orders(ROWS, ("open",))
    assert [option.written for option in options] == ["", "strategy", "-strategy", "-es %", "es %"]
    assert [option.spelled("rank") for option in options] == [
        "rank",
        "strategy, A first",
        "strategy, Z first",
        "es %, highest first",
        "es %, lowest first",
    ]


@pytest.mark.parametrize(
    ("order", "strategies"),
    [
        (Order("es %", falling=True, number=True), "cbaA"),
        (Order("es %", falling=False, number=True), "bacA"),
        (Order("strategy"), "Aabc"),
        (Order("strategy", falling=True), "cbAa"),
    ],
)
def test_numbers_order_as_numbers_and_what_is_unknown_comes_last(order: Order, strategies: str) -> None:
    assert names(order) == strategies


def test_a_figure_is_its_number_and_keeps_its_text() -> None:
    assert Figure("21.0") == 21 and Figure("21.0").text == "21.0"
    least = Figure("<0.001", 0.0004)
    assert least == 0.0004 and least.text == "<0.001"
    assert json.dumps({"p": least}) == '{"p": 0.0004}'
    with pytest.raises(ValueError, match="<0.001"):
        Figure("<0.001")

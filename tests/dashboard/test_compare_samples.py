"""Two runs sample by sample: what is drawn is what the runs hold, and every point leads to its sample."""

from __future__ import annotations

from typing import Any

import altair as alt
import pytest

from ctxbench.dashboard.views import compare_samples as view
from ctxbench.harness.leaderboard.compare import Compared, compare
from ctxbench.harness.leaderboard.grids import Blank
from tests.helpers.runs import make_table

REPOS = ["a", "b"] * 6


def pair_of(base: list[float], other: list[float], metric: str = "es") -> Compared:
    tables = [
        make_table({metric: values}, REPOS[: len(values)], id=name, strategy=name)
        for name, values in (("base", base), ("other", other))
    ]
    [pair] = compare(tables, metric=metric)
    return pair


def address(sample: str) -> str:
    return f"/samples?sample={sample}"


def data_of(drawn: alt.LayerChart | Blank) -> list[list[dict[str, Any]]]:
    assert not isinstance(drawn, Blank), drawn
    spec = drawn.to_dict()
    return [spec["datasets"][layer["data"]["name"]] for layer in spec["layer"]]


BASE = [index / 20 for index in range(12)]
OTHER = [*BASE[:4], *(value + 0.1 for value in BASE[4:11]), 0.05]
PAIR = pair_of(BASE, OTHER)


def test_the_histogram_is_the_table() -> None:
    bars, _ = data_of(view.spread_chart(PAIR))
    rows = view.spread_rows(PAIR)
    assert [row["samples"] for row in rows if row["from"] != row["to"]] == [bar["n"] for bar in bars]
    assert [row["samples"] for row in rows if row["from"] == row["to"] == 0] == [4]
    assert sum(int(str(row["samples"])) for row in rows) == 12
    assert {bar["side"] for bar in bars if bar["high"] <= 0} == {"worse"}
    assert {bar["side"] for bar in bars if bar["low"] >= 0} == {"better"}


def test_fewer_bits_are_better() -> None:
    bars, _ = data_of(view.spread_chart(pair_of([5.0] * 4, [3.0, 4.0, 4.5, 6.0], "bits")))
    assert {bar["side"] for bar in bars if bar["high"] <= 0} == {"better"}


def test_a_point_has_both_values_and_opens_its_sample() -> None:
    _, points = data_of(view.scatter_chart(PAIR, address, ("other", "base")))
    assert len(points) == 12
    values = {point["sample"]: (point["other"], point["this"]) for point in points}
    assert values["s00011"] == pytest.approx((55, 5)) and points[0]["sample"] == "s00011", "the farthest first"
    assert all(point["href"] == address(point["sample"]) for point in points)


def test_the_table_has_what_differs_the_most_first() -> None:
    rows = view.sample_rows(PAIR, address)
    assert len(rows) == 8 and rows[0]["sample"] == "s00011" and rows[0]["open"] == address("s00011")
    assert getattr(rows[0]["difference"], "text", "") == "-50.0"


def test_what_says_nothing_is_not_drawn() -> None:
    same = view.spread_chart(pair_of(BASE, BASE))
    assert isinstance(same, Blank) and "same value at every sample" in same.why
    right = view.scatter_chart(pair_of([0.0, 1.0] * 6, [1.0, 1.0, 0.0] * 4, "em"), address, ("other", "base"))
    assert isinstance(right, Blank) and "4 places" in right.why
    flat = view.scatter_chart(pair_of([0.5] * 12, BASE), address, ("other", "base"))
    assert isinstance(flat, Blank) and flat.why.startswith("base has the same value")


def test_of_many_samples_those_that_differ_most_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MOST_POINTS", 3)
    monkeypatch.setattr(view, "MOST_ROWS", 2)
    _, points = data_of(view.scatter_chart(PAIR, address, ("other", "base")))
    assert len(points) == 3 and len(view.sample_rows(PAIR, address)) == 2

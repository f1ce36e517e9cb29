"""Curves join what differs in one parameter and nothing else, wherever they are drawn or printed."""

import re
from typing import Any

import pytest

from ctxbench.bench.errors import UnknownName
from ctxbench.harness.leaderboard import Board, board, scales
from ctxbench.harness.leaderboard.latex import latex
from ctxbench.harness.leaderboard.render import markdown, table
from ctxbench.harness.leaderboard.sections import Blank, Curves, curves, parameters
from ctxbench.harness.results import Origin
from ctxbench.strategies.registry import default_of
from tests.helpers.runs import make_table

REPOS = [f"r{index % 8}" for index in range(16)]
VALUES = {
    "engine(repomap)": 0.5,
    "engine(repomap, budget=256)": 0.2,
    "engine(repomap, budget=1024)": 0.4,
    "lc.random_windows(budget=256, seed=3)": 0.1,
    "lc.random_windows(budget=1024, seed=3)": 0.15,
    "lc.random_windows(budget=1024)": 0.16,
    "lc.infile": 0.0,
}


def board_of(values: dict[str, float], **changes: Any) -> Board:
    spread = [index / 1000 for index in range(16)]
    return board(
        [
            make_table({"es": [value + more for more in spread]}, REPOS, id=name, strategy=name, **changes)
            for name, value in values.items()
        ]
    )


def over_budget(values: dict[str, float], **changes: Any) -> Curves | Blank:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ctxbench.harness.leaderboard.sections.default_of", lambda name, _: 4096 if name == "engine" else None
        )
        return curves(board_of(values, **changes).groups[0])


def as_curves(picture: Curves | Blank) -> Curves:
    assert isinstance(picture, Curves), picture
    return picture


def test_a_curve_joins_what_differs_in_the_parameter_only() -> None:
    picture = as_curves(over_budget(VALUES))
    points = {curve.strategy: [point.at for point in curve.points] for curve in picture.curves}
    assert points == {"engine(repomap)": [256, 1024, 4096], "lc.random_windows(seed=3)": [256, 1024]}
    assert picture.curves[0].strategy == "engine(repomap)", "what ranks best is first"
    assert picture.values == (256, 1024, 4096) and picture.logarithmic
    means = [point.row.metrics["es"].mean for point in picture.curves[0].points]
    assert means == pytest.approx([20.75, 40.75, 50.75])


def test_a_default_counts_only_where_it_is_known() -> None:
    values = {"lc.random_windows": 0.1, "lc.random_windows(budget=1024)": 0.2}
    nothing = over_budget(values)
    assert isinstance(nothing, Blank) and "budget={256,512}" in nothing.why
    assert as_curves(curves(board_of(values).groups[0])).values == (1024, default_of("lc.random_windows", "budget"))


def test_defaults_are_those_of_our_own_strategies() -> None:
    assert default_of("lc.repocoder", "iterations") == 2
    assert default_of("lc.repocoder", "none") is None and default_of("file.py@mine", "budget") is None
    assert default_of("oracle-context", "budget") is None and default_of("nowhere", "budget") is None


def test_origins_and_controls_stay_apart() -> None:
    origins = {"a(budget=1)": Origin.RUN, "a(budget=2)": Origin.IMPORTED}
    runs = [
        make_table({"es": [0.1] * 16}, REPOS, id=name, strategy=name, origin=origin) for name, origin in origins.items()
    ]
    assert isinstance(curves(board(runs).groups[0]), Blank)
    assert isinstance(over_budget({"a(budget=1)": 0.1, "a(budget=2)": 0.2}, ranked=False, control=True), Blank)


def test_a_name_that_is_no_spec_and_a_value_that_is_no_number_are_passed_over() -> None:
    assert isinstance(
        over_budget({"what (ever": 0.1, "a(budget=x)": 0.1, "a(budget=true)": 0.2, "b(budget=1)": 0.1}), Blank
    )


def test_every_form_prints_the_table_by_a_parameter() -> None:
    ranked = board_of(VALUES)
    point = as_curves(over_budget(VALUES)).curves[0].points[0].row.metrics["es"]
    cell = scales.interval(point.mean, point.low, point.high)
    assert re.search(r"es % \[95%\] +budget 256 +budget 1024", table(ranked, by="budget"))
    assert f"| engine(repomap) | {cell} |" in markdown(ranked, by="budget")
    assert "budget 256" in latex(ranked, by="budget") and "budget 256" not in latex(ranked)
    # Bold are rows of the ranking, which these lines are not.
    of_curves = latex(ranked, by="budget").split("budget 256")[1].split("tabular")[0]
    assert "textbf" not in of_curves


def test_an_unknown_parameter_is_one_line_with_the_nearest() -> None:
    ranked = board_of(VALUES)
    # lc.random_windows without a seed is that of the default one.
    assert parameters(ranked.groups) == ["budget", "seed"]
    with pytest.raises(UnknownName, match="budgt") as caught:
        table(ranked, by="budgt")
    assert "did you mean budget" in caught.value.cure

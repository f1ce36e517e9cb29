"""Grids show the board's own numbers, shaded for the better, and say why where there is nothing to show."""

from __future__ import annotations

from typing import Any

import pytest

from ctxbench.harness.leaderboard import Group, board, grids, numbers
from ctxbench.harness.leaderboard.grids import MOST_COLUMNS, MOST_ROWS, SHADES, Blank, Grid, GridCell
from ctxbench.harness.results import RunTable
from tests.helpers.runs import make_table

REPOS = [f"r{index % 8}" for index in range(16)]


def table(strategy: str, values: list[float], **changes: Any) -> RunTable:
    return make_table({"es": values}, REPOS, id=f"{strategy}{changes}", strategy=strategy, **changes)


def group_of(*tables: RunTable) -> Group:
    return board(tables).groups[0]


def grid(picture: Grid | Blank) -> Grid:
    assert isinstance(picture, Grid), picture
    return picture


def cell(picture: Grid, row: int, column: int) -> GridCell:
    shown = picture.cells[row][column]
    assert shown is not None
    return shown


LOW = [0.10 + index / 1000 for index in range(16)]


def test_who_beats_whom_has_the_familys_differences_both_ways() -> None:
    group = group_of(
        table("lc.infile", LOW),
        table("best", [value + 0.5 for value in LOW]),
        table("near", [value + 0.0001 * (-1) ** i for i, value in enumerate(LOW)]),
    )
    picture = grid(grids.beats(group))
    assert [name.split()[0] for name in picture.rows] == list(picture.columns) == ["1", "2", "3"]
    assert picture.rows[0] == "1 best" and [row[at] for at, row in enumerate(picture.cells)] == [None] * 3
    for row in range(3):
        for column in range(3):
            if row != column:
                there, back = cell(picture, row, column), cell(picture, column, row)
                difference = group.pairs.get((row, column)) or group.pairs[column, row]
                assert float(there.text) == -float(back.text) and there.shade == -back.shade
                assert there.detail == back.detail == f"p {numbers.p_value(difference.p_adjusted)}"
                assert (there.shade == 0) is not difference.significant
    assert cell(picture, 0, 1).shade == SHADES and cell(picture, 0, 1).text.startswith("+50")
    assert "all 3 pairs" in picture.reading and "es (%)" in picture.reading


def test_where_lower_is_better_the_winner_is_blue() -> None:
    tables = [
        make_table({"bits": values}, REPOS, id=name, strategy=name)
        for name, values in (("many", [9.0 + v for v in LOW]), ("few", [2.0 + v for v in LOW]))
    ]
    group = board(tables, metric="bits").groups[0]
    assert group.scales["bits"].lower_is_better
    shown = cell(grid(grids.beats(group)), 0, 1)
    assert group.rows[0].run.strategy == "few" and float(shown.text) == pytest.approx(-7) and shown.shade == SHADES
    means = grid(grids.over_repositories(group, gains=False))
    assert cell(means, 0, 0).shade == SHADES and cell(means, 1, 0).shade == 0


def test_gains_are_the_means_of_a_repositorys_paired_differences() -> None:
    gains = [0.01 * (index % 8) - 0.02 for index in range(16)]
    group = group_of(
        table("lc.infile", LOW), table("other", [low + gain for low, gain in zip(LOW, gains, strict=True)])
    )
    picture = grid(grids.over_repositories(group, gains=True))
    assert picture.rows == ("other",) and picture.columns == tuple(f"r{index}" for index in reversed(range(8)))
    assert [float(shown.text) for shown in picture.cells[0] if shown] == [5, 4, 3, 2, 1, 0, -1, -2]
    assert [shown.shade for shown in picture.cells[0] if shown] == [4, 3, 2, 2, 1, 0, -1, -2]
    assert "The darkest stands for 5 %" in picture.reading and "minus that of lc.infile" in picture.reading


def test_means_by_repository_are_the_rows_own() -> None:
    values = [0.1 * (index % 8) for index in range(16)]
    group = group_of(table("lc.infile", values), table("other", [value + 0.1 for value in values]))
    picture = grid(grids.over_repositories(group, gains=False))
    assert picture.rows == ("other", "lc.infile")
    assert [float(shown.text) for shown in picture.cells[1] if shown] == [70, 60, 50, 40, 30, 20, 10, 0]
    assert cell(picture, 0, 0).shade == SHADES and cell(picture, 1, 7).shade == 0
    assert group.rows[0].repository_means["r3"] == pytest.approx(40)


def test_a_gain_is_over_the_samples_that_both_completed() -> None:
    base = make_table({"es": [0.5, 0.5, 0.0]}, ["a", "b", "b"], strategy="lc.infile")
    other = make_table({"es": [0.6, 0.9]}, ["a", "b"], id="r2", strategy="other")
    rows = {row.run.strategy: row for row in group_of(base, other).rows}
    assert rows["other"].repository_gains == pytest.approx({"a": 10, "b": 40})
    assert rows["lc.infile"].repository_gains == {}
    assert rows["lc.infile"].repository_means == pytest.approx({"a": 50, "b": 25})


def test_nothing_to_compare_is_said_in_a_sentence() -> None:
    alone = group_of(table("lc.infile", LOW))
    assert isinstance(grids.beats(alone), Blank) and isinstance(grids.over_repositories(alone, gains=False), Blank)
    strangers = group_of(table("a", LOW), table("b", LOW, first=100))
    nothing = grids.beats(strangers)
    assert isinstance(nothing, Blank) and "share a completed sample" in nothing.why
    one_repo = [make_table({"es": [0.1, 0.2]}, ["x", "x"], id=name, strategy=name) for name in ("lc.infile", "b")]
    nothing = grids.over_repositories(board(one_repo).groups[0], gains=True)
    assert isinstance(nothing, Blank) and "one repository" in nothing.why
    lost = group_of(make_table({}, ["r"], functions=True))
    assert isinstance(grids.beats(lost), Blank) and isinstance(grids.over_repositories(lost, gains=True), Blank)


@pytest.mark.slow
def test_more_than_can_be_read_is_cut_and_said() -> None:
    repos = [f"r{index:02}" for index in range(40)]
    # The first ten repositories are alike to all: they are left out first.
    tables = [
        make_table(
            {"es": [0.1 + 0.01 * number * (index >= 10) for index in range(40)]},
            repos,
            id=f"s{number:02}",
            strategy=f"s{number:02}",
        )
        for number in range(30)
    ]
    group = board(tables).groups[0]
    pairs, of_repositories = grid(grids.beats(group)), grid(grids.over_repositories(group, gains=False))
    assert len(pairs.rows) == len(pairs.columns) == MOST_ROWS and pairs.rows[0] == "1 s29"
    assert pairs.remarks == (f"Drawn: the {MOST_ROWS} of 30 strategies that rank best.",)
    assert len(of_repositories.columns) == MOST_COLUMNS and not {f"r{i:02}" for i in range(10)} & {
        *of_repositories.columns
    }
    assert "of 40 repositories on which these strategies differ most" in of_repositories.remarks[1]


def test_controls_are_not_drawn() -> None:
    group = group_of(
        table("lc.infile", LOW),
        table("b", [value + 0.1 for value in LOW]),
        table("oracle", [1.0] * 16, ranked=False, control=True),
    )
    for picture in (grids.beats(group), grids.over_repositories(group, gains=False)):
        assert not any("oracle" in name for name in grid(picture).rows)


def test_generators_stand_side_by_side_each_with_its_own_shades() -> None:
    tables = [
        table(strategy, [value + more for value in LOW], generator=generator)
        for generator, offset in (("large", 0.5), ("small", 0.0))
        for strategy, more in (("lc.infile", offset), ("other", offset + 0.2))
    ]
    [picture] = map(grid, grids.over_generators(board(tables).groups))
    assert picture.columns == ("large", "small") and set(picture.rows) == {"lc.infile", "other"}
    first = picture.rows.index("other")
    assert [shown.shade for shown in picture.cells[first] if shown] == [SHADES, SHADES]
    assert [shown.shade for shown in picture.cells[1 - first] if shown] == [0, 0]
    assert cell(picture, first, 0).text.startswith("80.7") and cell(picture, first, 0).detail.startswith("[")
    assert grids.over_generators(board(tables[:2]).groups) == []


def test_generators_that_share_nothing_are_said_so() -> None:
    tables = [table("lc.infile", LOW, generator="x"), table("other", LOW, generator="y")]
    [nothing] = grids.over_generators(board(tables).groups)
    assert isinstance(nothing, Blank) and "No strategy was run with two" in nothing.why
    bits = [make_table({"bits": LOW}, REPOS, id=name, generator=name) for name in "xy"]
    [nothing] = grids.over_generators(board(bits, metric="bits").groups)
    assert isinstance(nothing, Blank) and "two units" in nothing.why

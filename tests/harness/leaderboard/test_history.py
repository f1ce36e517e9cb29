"""The versions of a strategy stand in one row, the newest on the right."""

from __future__ import annotations

import json
from typing import Any

from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.grids import SHADES, Blank, Grid
from ctxbench.harness.leaderboard.history import over_versions
from ctxbench.harness.results import RunTable, Status
from tests.helpers.runs import make_table

REPOS = [f"r{index % 8}" for index in range(16)]


def run(name: str, version: str, value: float, **changes: Any) -> RunTable:
    values = [value + index / 1000 for index in range(16)]
    return make_table(
        {"es": values}, REPOS, id=f"{name}{version}{value}", strategy=name, versions={"strategy": version}, **changes
    )


def shown(tables: list[RunTable]) -> Grid | Blank:
    return over_versions(tables, board(tables).groups[0])


def test_versions_stand_in_their_order_with_their_own_means() -> None:
    picture = shown(
        [
            run("a/mine.py@m", "1", 0.1),
            run("lc.infile", "x", 0.3),
            run("b/mine.py@m", "1", 0.1),
            run("a/mine.py@m", "2", 0.2),
            run("lc.infile", "y", 0.5),
            run("a/mine.py@m", "3", 0.15),
        ]
    )
    assert isinstance(picture, Grid)
    assert picture.rows == ("lc.infile", "mine.py@m") and picture.columns == ("2 before", "1 before", "newest")
    lines = [[cell and (cell.text, cell.shade) for cell in line] for line in picture.cells]
    assert lines == [[None, ("30.75", 0), ("50.75", SHADES)], [("10.75", 0), ("20.75", SHADES), ("15.75", 2)]]
    assert all(cell.detail.startswith("[") for line in picture.cells for cell in line if cell)


def test_of_a_version_run_again_the_last_complete_run_counts() -> None:
    lost = [Status.INFRA_FAILED, *[Status.SCORED] * 15]
    picture = shown([run("m", "1", 0.1), run("m", "2", 0.3), run("m", "1", 0.2), run("m", "2", 0.9, status=lost)])
    assert isinstance(picture, Grid)
    assert [cell.text for cell in picture.cells[0] if cell] == ["20.75", "30.75"]


def test_repetitions_are_pooled_and_levels_are_apart_as_on_the_board() -> None:
    level = ["next-line", "single-line"] * 8
    seeds = [
        run("m", "2", value, level=level, sampling=json.dumps({"seed": seed}), completions=1)
        for seed, value in enumerate((0.3, 0.5))
    ]
    # Repeated later, the older version stays the older one.
    tables = [run("m", "1", 0.1, level=level), *seeds, run("m", "1", 0.2, level=level)]
    for group in board(tables, by_level=True).groups:
        picture = over_versions(tables, group)
        assert isinstance(picture, Grid) and picture.columns == ("1 before", "newest")
        [[_, newest]] = picture.cells
        [row] = group.rows
        pooled = over_versions([*tables, *seeds], group)
        assert isinstance(pooled, Grid)
        mean = {"all": 40.75, "next-line": 40.7, "single-line": 40.8}[group.level]
        assert newest is not None and newest.text == f"{mean:.2f}", group.level
        assert pooled.cells[0][1] == newest and row.n == (16 if group.level == "all" else 8)


def test_bits_of_another_model_are_no_part_of_a_history() -> None:
    def measured(version: str, coder: str, gain: float) -> RunTable:
        metrics = {"context_gain": [gain + index for index in range(16)], "es": [0.5] * 16}
        versions = {"strategy": version, "coder": coder}
        return make_table(metrics, REPOS, id=version, strategy="m", generator="incontext", versions=versions)

    tables = [measured("1", "old", 10), measured("2", "new", 20), measured("3", "new", 30)]
    picture = shown(tables)
    assert isinstance(picture, Grid) and picture.columns == ("1 before", "newest")
    assert [cell.text for cell in picture.cells[0] if cell] == ["27.5", "37.5"]
    assert picture.remarks == ("1 run is left out: another model measured the bits, which is another unit.",)
    other = over_versions(tables, board(tables, metric="es").groups[0])
    assert isinstance(other, Grid) and len(other.columns) == 3 and not other.remarks
    assert isinstance(shown(tables[:2]), Blank)


def test_one_version_or_an_unknown_one_is_no_history() -> None:
    for tables in (
        [run("m", "1", 0.1), run("m", "1", 0.2)],
        [run("m", "", 0.1), run("m", "2", 0.2)],
        [run("m", "1", 0.1, ranked=False), run("m", "2", 0.1)],
    ):
        assert isinstance(shown(tables), Blank)

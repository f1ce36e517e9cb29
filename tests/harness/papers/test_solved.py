"""Who solves what beside a paper's table, as text, JSON and picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.harness.papers import render, tables
from ctxbench.harness.papers.reproduce import ComparedTable
from ctxbench.harness.papers.solved import MOST_REGIONS, SolvedBy, picture, solved_by
from tests.helpers.runs import make_table

SVG = "{http://www.w3.org/2000/svg}"


def charts(columns: dict[str, list[float]]) -> list[SolvedBy]:
    fields = {"profile": "infercom", "samples": "some", "generator": "mine"}
    return list(
        solved_by(
            [make_table({"em": column}, ["one"] * len(column), strategy=name, **fields)
             for name, column in columns.items()]
        )
    )  # fmt: skip


def beside(*solved: SolvedBy) -> ComparedTable:
    table = tables.table("infercom-table3")
    return ComparedTable(table=table, generators=("mine",), encoder=None, specs={}, ours={}, solved=solved)


def test_who_solves_what_stands_below_the_table() -> None:
    [by] = charts({"lc.infile": [1.0, 0.0, 0.0, 0.0], "lc.repocoder": [1.0, 1.0, 1.0, 0.0]})
    below = render.table(beside(by), ["python"]).partition("who solves what: some, python, mine, by em\n")[2]
    assert [line.split() for line in below.splitlines()[2:]] == [
        ["only", "lc.repocoder", "2"],
        ["none", "of", "them", "1"],
        ["all", "of", "them", "1"],
    ]
    [record] = json.loads(render.to_json(beside(by), ["python"]))["solved"]
    assert record["n"] == 4 and record["regions"][0] == {
        "strategies": ["lc.repocoder"], "samples": ["s00001", "s00002"],
    }  # fmt: skip


def test_the_picture_has_a_bar_a_region_and_a_full_dot_for_each_strategy_that_solves_it() -> None:
    drawn = charts({"a<b": [1.0, 0.0, 0.0, 1.0], "b": [1.0, 1.0, 1.0, 0.0], "c": [0.0, 1.0, 1.0, 0.0]})
    root = ET.fromstring(render.figure(beside(*drawn), ["python"]))
    bars = root.findall(f"{SVG}rect")[1:]
    hovers = [bar.findtext(f"{SVG}title") for bar in bars]
    assert hovers == ["only b and c: 2", "only a<b: 1", "only a<b and b: 1"]
    heights = [float(bar.get("height", "")) for bar in bars]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.1) and heights[1] == heights[2]
    dots = [(dot.findtext(f"{SVG}title"), dot.get("fill") != "#ddd") for dot in root.findall(f"{SVG}circle")]
    assert [full for region, full in dots if region == "only b and c: 2"] == [False, True, True]
    texts = [text.text for text in root.findall(f"{SVG}text")]
    assert texts[0] == "who solves what: some, python, mine, by em, 4 samples"
    assert texts[-3:] == ["a<b: 2 solved", "b: 3 solved", "c: 2 solved"]


def test_a_picture_of_many_regions_draws_the_largest_and_says_so() -> None:
    size = MOST_REGIONS + 3
    columns = {f"s{bit}": [float(sample >> bit & 1) for sample in range(size)] for bit in range(6)}
    text = picture(charts(columns))
    root = ET.fromstring(text)
    assert len(root.findall(f"{SVG}rect")) == MOST_REGIONS + 1
    assert f"drawn are the {MOST_REGIONS} largest of {size} regions" in text


def test_without_two_strategies_there_is_no_picture() -> None:
    with pytest.raises(InputFault, match="no picture"):
        render.figure(beside(*charts({"lc.infile": [1.0, 0.0]})), ["python"])

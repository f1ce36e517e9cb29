"""Pictures without a script: what stands where, and that nothing stored is markup in them."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from ctxbench.dashboard.pictures import markup
from ctxbench.dashboard.pictures.curves import drawing
from ctxbench.dashboard.views.cost import curves_chart
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.curves import Curves, curves
from tests.dashboard.stored import PLANTED
from tests.helpers.runs import make_table

REPOS = [f"r{index % 8}" for index in range(16)]


def budgets(name: str = "a") -> Curves:
    spread = [index / 1000 for index in range(16)]
    tables = [
        make_table({"es": [0.1 * at + more for more in spread]}, REPOS, id=f"{at}", strategy=f"{name}(budget={4**at})")
        for at in (1, 2, 3)
    ]
    picture = curves(board(tables).groups[0])
    assert isinstance(picture, Curves)
    return picture


def test_curves_stand_where_the_numbers_are() -> None:
    picture = budgets()
    places = drawing(picture)
    [line] = places.lines
    xs = [dot.x for dot in line.dots]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2), "equal factors are equally far apart"
    ticks = [(tick.place, float(tick.label)) for tick in places.up]
    (y0, v0), (y1, v1) = ticks[0], ticks[-1]
    for dot, point in zip(line.dots, picture.curves[0].points, strict=True):
        part = point.row.metrics["es"]
        for y, value in zip((dot.y, dot.low, dot.high), (part.mean, part.low, part.high), strict=True):
            assert v0 + (y - y0) * (v1 - v0) / (y1 - y0) == pytest.approx(value, abs=0.3)


def test_labels_of_budgets_do_not_run_into_each_other() -> None:
    tables = [make_table({"es": [0.1] * 16}, REPOS, id=f"{at}", strategy=f"a(budget={at})") for at in (256, 2000, 2048)]
    picture = curves(board(tables).groups[0])
    assert isinstance(picture, Curves)
    assert [mark.label for mark in drawing(picture).across] == ["256", "2000"] and len(
        drawing(picture).lines[0].dots
    ) == 3


@pytest.mark.parametrize("values", [(1, 4, 16), (100, 110, 120)], ids=["logarithmic", "linear"])
def test_strategies_at_one_value_stand_beside_each_other_and_keep_it(values: tuple[int, ...]) -> None:
    tables = [
        make_table({"es": [0.1] * 16}, REPOS, id=f"{name}{at}", strategy=f"{name}(budget={at})")
        for name in "abc"
        for at in values
    ]
    picture = curves(board(tables).groups[0])
    assert isinstance(picture, Curves) and picture.logarithmic == (values[0] == 1)
    [rows] = curves_chart(picture).to_dict()["datasets"].values()
    for at in values:
        places = sorted(row["x"] for row in rows if row["at"] == at)
        assert len(set(places)) == 3 and places[1] == pytest.approx(at)
        assert places[2] - places[0] < (values[1] - values[0]) / 4
    drawn = drawing(picture)
    for index, mark in enumerate(drawn.across):
        xs = [line.dots[index].x for line in drawn.lines]
        assert xs == sorted(set(xs)) and xs[1] == mark.place


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs


def test_names_are_text_and_nothing_is_styled_or_run() -> None:
    ours = {"div", "p", "b", "bdi", "table", "caption", "thead", "tbody", "tr", "th", "td", "small"}
    ours |= {"figure", "figcaption", "svg", "line", "text", "g", "polyline", "circle", "title"}
    planted = replace(
        budgets(), title=PLANTED, curves=tuple(replace(curve, strategy=PLANTED) for curve in budgets().curves)
    )
    for picture in (planted, budgets()):
        parsed = _Tags(str(markup.drawn(picture)))
        assert parsed.tags <= ours, parsed.tags - ours
        assert not {"style", "href", "src"} & {name for name, _ in parsed.attributes}
        assert not any(name.startswith("on") for name, _ in parsed.attributes)


def test_what_is_hidden_or_forbidden_is_written_out() -> None:
    text = str(markup.drawn(replace(budgets(), title="a\u202eb", parameter="c\x00d")))
    assert "\u202e" not in text and "\x00" not in text


def test_every_class_of_a_picture_is_in_the_style_sheet() -> None:
    for name in re.findall(r'class="([^"]+)"', str(markup.drawn(budgets()))):
        for part in name.split():
            assert f".{part}" in markup.css(), part
    assert "url(" not in markup.css() and "@import" not in markup.css()


def test_a_picture_has_a_caption_and_can_be_reached_without_a_mouse() -> None:
    text = str(markup.drawn(budgets()))
    assert "<caption" in text and 'tabindex="0"' in text and "aria-label=" in text and 'scope="row"' in text
    assert 'role="img"' in text

"""The Samples page in a browser: keys and rows open samples, and planted markup stays text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.store import open_store
from ctxbench.harness.store.runs import run_tables
from tests.dashboard.browser import PATIENCE, PHONE, Site, cells, settled
from tests.dashboard.stored import PLANTED

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def opened(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("sample", [""])[0]


def wait_for(page: Page, sample: str) -> None:
    page.wait_for_function(
        "wanted => new URLSearchParams(location.search).get('sample') === wanted", arg=sample, timeout=PATIENCE * 1000
    )
    settled(page)


def test_keys_and_rows_navigate_between_disagreements(server: Site, page: Page) -> None:
    with open_store(Home(server.home).database) as store:
        tables = {
            table.run.strategy: table for table in run_tables(store, samples="demo") if "[:" not in table.run.samples
        }
    first, second = tables["lc.infile"], tables["lc.repocoder"]
    pairs = zip(first.sample, first.metrics["es"], second.metrics["es"], strict=True)
    differ = [(sample, value, other_value) for sample, value, other_value in pairs if value != other_value]
    differ.sort(key=lambda row: -abs(row[1] - row[2]))  # type: ignore[operator]
    assert len(differ) >= 2, "the two strategies must differ somewhere"
    server.visit(
        page, "samples", samples="demo", run=first.run.id, other=second.run.id, metric="es", differs="A and B differ"
    )
    rows = cells(page)
    assert [row["sample"] for row in rows] == [sample for sample, *_ in differ][: len(rows)]
    for row, (_, value, other_value) in zip(rows, differ, strict=False):
        assert value is not None and other_value is not None
        assert float(row["A"]) == pytest.approx(value * 100, abs=0.05)
        assert float(row["A - B"]) == pytest.approx((value - other_value) * 100, abs=0.05)
    page.locator("h1").first.click()
    page.keyboard.press("n")
    wait_for(page, differ[1][0])
    page.keyboard.press("p")
    wait_for(page, differ[0][0])
    server.check(page)
    grid = page.locator("[data-testid=stDataFrame]").first
    grid.scroll_into_view_if_needed()
    box = grid.bounding_box()
    assert box is not None
    # The table is drawn on a canvas, so the box before its second row, which opens the sample, is clicked by position.
    page.mouse.click(box["x"] + 18, box["y"] + 2.5 * 35)
    wait_for(page, differ[1][0])
    server.check(page)
    assert page.locator("h2", has_text=differ[1][0]).count() == 1


@pytest.mark.parametrize("size", [PHONE, (1280, 800)], ids=["phone", "desktop"])
def test_the_difference_is_visible_without_scrolling(
    database: Home, server: Site, page: Page, size: tuple[int, int]
) -> None:
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    server.visit(page, "samples", **_two_runs(database))
    compared = page.locator("del, ins").first.bounding_box()
    assert compared is not None and compared["y"] + compared["height"] < height, "in sight without scrolling"
    heading, grid = (
        page.locator("h2").first.bounding_box(),
        page.locator("[data-testid=stDataFrame]").first.bounding_box(),
    )
    assert heading is not None and grid is not None
    assert (grid["y"] > heading["y"]) == (size == PHONE), "on a phone the list stands below the sample"


def _two_runs(home: Home) -> dict[str, str]:
    with open_store(home.database) as store:
        runs = {
            table.run.strategy: table.run.id
            for table in run_tables(store, samples="demo")
            if "[:" not in table.run.samples
        }
    both = {"run": runs["lc.infile"], "other": runs["lc.repocoder"]}
    return {"samples": "demo", "metric": "es", "differs": "A and B differ", **both}


def test_a_planted_completion_stays_text(server: Site, page: Page) -> None:
    server.visit(page, "samples", samples="planted")
    codes = page.locator("[data-testid=stCode]").all_text_contents()
    assert [text for text in codes if PLANTED in text], "the completion is there, word for word"
    assert page.locator("[data-testid=stMain] a[href*='harm.example']").count() == 0
    assert page.locator("[data-testid=stMain] img").count() == 0
    assert max(map(len, codes)) < 40_000
    assert page.locator("[data-testid=stDownloadButton]", has_text="Save all of it").count() >= 1
    page.locator("[data-testid=stExpander] summary", has_text="Raw output").first.click()
    settled(page)
    server.check(page)
    with open_store(Home(server.home).database) as store:
        [run] = [table.run.id for table in run_tables(store, samples="demo") if "<script>" in table.run.strategy]
    server.visit(page, "samples", samples="demo", run=run)
    server.check(page)

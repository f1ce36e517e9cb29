"""The report in a real browser: its style is allowed, nothing else is; nothing is asked for, nothing is cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from ctxbench.harness.leaderboard import scales
from tests.dashboard.browser import DESKTOP, PHONE
from tests.helpers.cli import run_cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_TABLES = """() => [...document.querySelectorAll("section")].map(section => ({
    title: section.querySelector("h2").innerText,
    rows: [...section.querySelector("table").rows].map(row => [...row.cells].map(cell => cell.innerText.trim())),
}))"""


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_a_browser_shows_the_report(
    database: Home, browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    out = tmp_path / "report.html"
    assert run_cli("report", "--home", str(database.root), "--out", str(out)).code == 0
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page = context.new_page()
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(out.as_uri())
    # A style sheet that the policy refused would leave Times and an empty margin, and say so.
    assert page.evaluate("getComputedStyle(document.querySelector('caption')).textAlign") == "left"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 29)")
    tables = page.evaluate(_TABLES)
    context.close()
    assert (errors, requests) == ([], [out.as_uri()])
    _same_numbers(tables, database)


def _same_numbers(tables: list[dict[str, object]], database: Home) -> None:
    """Compare the rankings with the leaderboard's JSON, row by row in its order."""
    records = json.loads(run_cli("leaderboard", "--home", str(database.root), "--format", "json").out)
    records = [record for record in records if record["origin"] != "published" and record["language"] != "both"]
    cells = []
    for section in tables:
        head, *rows = section["rows"]  # type: ignore[misc]
        at = next((place for place, text in enumerate(head) if text.endswith("[95%]")), None)
        cells += [] if at is None else [row[at] for row in rows]
    expected = []
    for record in records:
        value = record.get(record["ranked_by"])
        expected.append(scales.interval(value["mean"], value["low"], value["high"]) if value else scales.UNKNOWN)
    assert cells == expected and len(expected) > 3

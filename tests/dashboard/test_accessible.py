"""Accessibility of every page in a browser: wide and light, narrow and dark, with the number of its answer first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.app import PAGES
from tests.dashboard.browser import DESKTOP, PHONE, Site, settled
from tests.helpers.cli import run_cli

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = [page.name for page in PAGES]
QUERY = {"samples": "demo", "generator": "incontext", "metric": "es"}
LOOKS = ((DESKTOP, "light"), (PHONE, "dark"))
DRAWN = {"leaderboard": "table .mean", "compare": "table .mean", "cost": "[data-testid=stVegaLiteChart]"}
"""Page -> selector of its drawing of the set `demo`. The other pages have only tables."""
_SERIOUS = ("moderate", "serious", "critical")
_OPTIONS = {"rules": {"target-size": {"enabled": True}}}
"""WCAG 2.2: buttons and links have at least 24 by 24 pixels or enough space around them."""


def findings(page: Page, impacts: tuple[str, ...] = _SERIOUS, options: Any = _OPTIONS) -> list[str]:
    """Return axe-core's violations with these impacts, one line per kind with its first element."""
    from axe_playwright_python.sync_playwright import Axe

    violations: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return [f"{kind['id']}: {kind['nodes'][0]['html'][:200]}" for kind in violations if kind["impact"] in impacts]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_accessible_on_desktop_and_phone(name: str, server: Site, page: Page) -> None:
    for (width, height), scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
        server.visit(page, name, **QUERY)
        assert page.locator(f"{DRAWN.get(name, 'h1')}:visible").count() > 0
        assert page.locator("[data-testid=stDataFrame], table").count() > 0, "pictures alone"
        assert findings(page) == [], (width, scheme)
        for part in ("documentElement", "querySelector('[data-testid=stMain]')"):
            assert page.evaluate(f"document.{part}.scrollWidth") <= width
    if name != "samples":
        _number_first(page)


def _number_first(page: Page) -> None:
    """Check that the answer contains a number, is above the choices, and is visible on a phone without scrolling."""
    answer = page.locator("[data-testid=stMain] strong").first
    assert any(letter.isdigit() for letter in answer.inner_text()), answer.inner_text()
    box = answer.bounding_box()
    assert box is not None and box["y"] + box["height"] < PHONE[1] / 2, box
    choices = page.locator("#choices").bounding_box()
    assert choices is not None and choices["y"] > box["y"]


@pytest.mark.slow
def test_a_link_leads_to_the_choices(server: Site, page: Page) -> None:
    server.visit(page, "leaderboard", **QUERY)
    page.get_by_role("link", name="choose another").click()
    page.wait_for_function("document.querySelector('#choices').getBoundingClientRect().top < innerHeight")
    settled(page)
    server.check(page)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_is_accessible(database: Home, browser: Browser, tmp_path: Path, scheme: Any) -> None:
    out = tmp_path / "report.html"
    assert run_cli("report", "--home", str(database.root), "--samples", "demo", "--out", str(out)).code == 0
    context = browser.new_context(
        viewport={"width": PHONE[0], "height": PHONE[1]}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(out.as_uri())
    assert page.locator("caption").count() >= 2 and findings(page) == []
    context.close()

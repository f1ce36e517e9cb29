"""Stored texts with hostile markup are shown as text on every page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from ctxbench.dashboard.app import PAGES
from tests.dashboard.browser import Site, app
from tests.dashboard.stored import HARMFUL

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = [page.name for page in PAGES]
MARKUP = ("img[src=x]", "a[href*='harm.example']", "[data-testid=stMain] script", "[data-testid=stMain] iframe[srcdoc]")
"""Elements that would exist if a page rendered the stored texts as markup."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "query", [{"samples": "demo", "generator": HARMFUL}, {"samples": "planted"}], ids=["name", "text"]
)
def test_stored_markup_is_shown_as_text(name: str, query: dict[str, str], server: Site, page: Page) -> None:
    server.visit(page, name, **query)
    for selector in MARKUP:
        assert page.locator(selector).count() == 0, selector
    # Stored texts in expanders are checked too.
    for fold in page.locator("[data-testid=stExpander] summary").all():
        fold.click()
    page.wait_for_timeout(200)
    server.check(page)
    for selector in MARKUP:
        assert page.locator(selector).count() == 0, selector


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_markup_in_a_url_is_shown_as_text(name: str, database: Home) -> None:
    harm = "<script>window.harmed = 1</script> **b** [x](http://harm.example/)"
    test = app(name, database.root, samples=harm, language=harm, generator=harm, metric=harm, run=harm, sample=harm)
    assert not test.exception, test.exception
    for element in (*test.markdown, *test.caption, *test.header, *test.error, *test.info, *test.warning):
        text = element.value.replace("[choose another](#choices)", "")
        assert "<script" not in text.replace("\\<", "") and "](" not in text, text
    for note in test.get("html"):
        assert "<script" not in note.proto.body

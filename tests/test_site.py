"""The documentation site: complete, searchable and without broken links."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from scripts import site
from tests.dashboard.test_accessible import findings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    site.build(folder)
    return folder


def test_every_page_is_built_reachable_and_searchable(built: Path) -> None:
    pages = {path.stem for path in (site.ROOT / "docs").glob("*.md")} | {"notebook", "commands"}
    assert pages == {path.stem for path in built.glob("*.html")} - {"404"}
    reached, new = set[str](), {"index"}
    while new:
        reached |= new
        texts = [(built / f"{page}.html").read_text(encoding="utf-8") for page in new]
        new = {page for text in texts for page in re.findall(r'href="(?:\./)?([a-z-]+)\.html', text)} - reached
    assert pages == reached
    items = json.loads((built / "search.json").read_text(encoding="utf-8"))["items"]
    assert pages - {item["location"].partition(".html")[0] for item in items} == set()


def test_the_api_and_the_notebook_are_pages(built: Path) -> None:
    api = (built / "api.html").read_text(encoding="utf-8")
    assert all(f'id="ctxbench.{name}"' in api for name in ("samples", "run", "scores", "board"))
    assert 'id="ctxbench.strategies.registry.strategy"' in api
    notebook = (built / "notebook.html").read_text(encoding="utf-8")
    assert "ctxbench.board(" in re.sub(r"<[^>]+>", "", notebook)


def test_pages_load_nothing_from_other_hosts(built: Path) -> None:
    for page in built.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text and 'rel="stylesheet" href="http' not in text, page.name


def test_broken_links_stop_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(site.ROOT / "docs", docs)
    for page, link in (("board.md", "nowhere.md"), ("verdicts.md", "metrics.md#nothing")):
        with (docs / page).open("a", encoding="utf-8") as file:
            file.write(f"\n[there]({link})\n")
    with pytest.raises(SystemExit) as fault:
        site.build(tmp_path / "site", docs)
    assert "2 issues found" in str(fault.value), fault.value
    assert "board.md:" in str(fault.value) and "verdicts.md:" in str(fault.value)
    assert not (tmp_path / "site").exists()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield an empty page."""
    with browser.new_page() as opened:
        yield opened


def test_search_works_from_disk_and_typing_does_not_leave_the_page(built: Path, page: Page) -> None:
    address = (built / "tutorial.html").as_uri()
    page.goto(address)
    page.locator("[data-md-component=search] button").click()
    words = "n p, s. / f wilson"
    page.keyboard.type(words, delay=30)
    field = page.locator("input[type=text]:visible, input[role=combobox]:visible").first
    assert field.input_value() == words and page.url == address
    field.fill("wilson")
    page.get_by_text("Statistics").last.wait_for()
    assert page.url == address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(scheme: Literal["light", "dark"], built: Path, page: Page) -> None:
    page.emulate_media(color_scheme=scheme)
    for file in sorted(built.glob("*.html")):
        page.goto(file.as_uri(), wait_until="load")
        assert findings(page, ("serious", "critical"), None) == [], file.name

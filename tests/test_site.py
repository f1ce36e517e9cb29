"""The documentation as a site: whole, searchable, and without a link that leads nowhere."""

import json
import re
import shutil
from pathlib import Path

import pytest

from scripts import site

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    site.build(folder)
    return folder


def test_every_page_is_there_and_can_be_reached_and_searched(built: Path) -> None:
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


def test_nothing_is_asked_of_other_hosts(built: Path) -> None:
    for page in built.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert 'src="http' not in text and 'rel="stylesheet" href="http' not in text, page.name


def test_links_that_lead_nowhere_end_it(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(site.ROOT / "docs", docs)
    for page, link in (("costs.md", "nowhere.md"), ("verdicts.md", "metrics.md#nothing")):
        with (docs / page).open("a", encoding="utf-8") as file:
            file.write(f"\n[there]({link})\n")
    with pytest.raises(SystemExit) as fault:
        site.build(tmp_path / "site", docs)
    assert "2 issues found" in str(fault.value), fault.value
    assert "costs.md:" in str(fault.value) and "verdicts.md:" in str(fault.value)
    assert not (tmp_path / "site").exists()

"""Writes the pictures of docs/screenshots with Chromium: ``python scripts/screenshots.py [HOME]``."""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ctxbench.bench.home import Home  # noqa: E402
from ctxbench.dashboard.app import PAGES  # noqa: E402
from ctxbench.harness.store.runs import run_tables  # noqa: E402
from ctxbench.harness.store.samples import stored_sets  # noqa: E402
from ctxbench.harness.store.store import open_reader  # noqa: E402
from tests.dashboard.browser import DESKTOP, PHONE, Site, serving  # noqa: E402
from tests.helpers.browsers import ARGUMENTS, CHROMIUM  # noqa: E402

OUT = ROOT / "docs" / "screenshots"
_COLOURS = 128
"""Colours in a picture's palette: enough for text and charts, with files below 150 kB."""
_DRAWN_MS = 3000
"""Milliseconds for charts and tables, which draw after the page's script has ended."""


_SECOND_CHART = "[data-testid=stVegaLiteChart] >> nth=1"


def take(
    browser: Browser,
    site: Site,
    page: str,
    name: str,
    size: tuple[int, int],
    scheme: str,
    query: dict[str, str],
    *,
    part: str = "",
) -> None:
    """Save a picture of the top of a page, or of the first element that matches the selector `part`."""
    width, height = size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
    tab = context.new_page()
    site.watch(tab)
    site.visit(tab, page, **query)
    tab.wait_for_timeout(_DRAWN_MS)
    taken_of = tab.locator(part).first if part else tab
    picture = Image.open(io.BytesIO(taken_of.screenshot())).convert("RGB").quantize(_COLOURS)
    picture.save(OUT / f"{name}.png", optimize=True)
    print(f"{name}.png: {(OUT / f'{name}.png').stat().st_size // 1000} kB, {tab.url.partition('?')[2]}")
    context.close()


def of_a_model(home: Path) -> dict[str, str]:
    """Return the URL query that selects the first set with answers of a Hugging Face model; empty without one."""
    with open_reader(Home(home).database) as store:
        sets = [
            stored.samples for stored in stored_sets(store) if any(of.startswith("hf(") for of in stored.generators)
        ]
    return {"samples": sets[0]} if sets else {}


def budgets(home: Path) -> dict[str, str]:
    """Return the URL query that shows curves over budgets on the cost page; empty if no run sets a budget."""
    with open_reader(Home(home).database) as store:
        names = Counter(table.run.samples for table in run_tables(store) if "budget=" in table.run.strategy)
    return {"samples": names.most_common(1)[0][0], "language": "python"} if names else {}


def main(home: Path) -> None:
    """Take all pictures of the dashboard."""
    OUT.mkdir(parents=True, exist_ok=True)
    with serving(home) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=f"/usr/bin/{CHROMIUM}", args=list(ARGUMENTS))
        for info in PAGES:
            query = of_a_model(home) if info.name in ("leaderboard", "compare", "samples") else {}
            take(browser, site, info.name, info.name, DESKTOP, "light", query)
        take(browser, site, "leaderboard", "leaderboard-dark", DESKTOP, "dark", of_a_model(home))
        take(browser, site, "leaderboard", "leaderboard-phone", PHONE, "light", of_a_model(home))
        if curves := budgets(home):
            take(browser, site, "cost", "budgets", DESKTOP, "light", curves, part=_SECOND_CHART)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".ctxbench").absolute())

"""Seconds until each page of the dashboard is complete in Chromium, compared with the page over eight samples.

`python -m benchmarks.pages HOME` on a quiet machine; HOME should contain the runs of a dozen strategies. The first load
reads the database, the second the server's cache. Each includes 0.3 s of waiting until nothing moves.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from ctxbench.bench.home import Home
from ctxbench.dashboard.app import PAGES
from ctxbench.harness.run.runner import run
from ctxbench.harness.store import open_store
from tests.dashboard.browser import DESKTOP, serving
from tests.helpers.browsers import ARGUMENTS, CHROMIUM
from tests.helpers.sets import make_set

AIM = 3.0
READER = 5.0
"""Seconds before the first request: a reader needs as long to open the printed address."""


def loads(browser: Browser, home: Path) -> dict[str, list[float]]:
    """Return page -> seconds of its first and second load, each in its own browser profile."""
    width, height = DESKTOP
    seconds: dict[str, list[float]] = {info.name: [] for info in PAGES}
    with serving(home) as site:
        time.sleep(READER)
        for _ in range(2):
            for page, taken in seconds.items():
                context = browser.new_context(viewport={"width": width, "height": height})
                tab = context.new_page()
                began = time.monotonic()
                site.visit(tab, page)
                taken.append(time.monotonic() - began)
                context.close()
    return seconds


def main() -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=f"/usr/bin/{CHROMIUM}", args=list(ARGUMENTS))
        few = Home(Path(folder))
        with open_store(few.database) as store:
            run(few, store, make_set(few), strategies=["lc.infile"], generator="incontext")
        small, large = loads(browser, few.root), loads(browser, Path(sys.argv[1]))
        for page, (first, second) in large.items():
            ratio = f"{second / small[page][1]:.1f} times that of few samples"
            print(f"{page:12} first {first:.2f} s, again {second:.2f} s (aim {AIM}), {ratio}")


if __name__ == "__main__":
    main()

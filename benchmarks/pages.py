"""Seconds until each page of the dashboard is complete in Chromium, beside the same page of an empty home.

`python -m benchmarks.pages HOME` on a quiet machine; HOME should hold the runs of a dozen strategies. The first load
reads the database, the second finds what the server keeps. Waiting until nothing moves takes 0.3 s of each.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from ctxbench.dashboard.app import PAGES
from tests.dashboard.browser import ARGUMENTS, CHROMIUM, DESKTOP, serving

AIM = 3.0


def loads(browser: Browser, home: Path) -> dict[str, list[float]]:
    """Return page -> the seconds of its first and its second load, each in a browser's profile of its own."""
    width, height = DESKTOP
    seconds: dict[str, list[float]] = {info.name: [] for info in PAGES}
    with serving(home) as site:
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
    """Print a line a page."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as empty:
        browser = playwright.chromium.launch(executable_path=f"/usr/bin/{CHROMIUM}", args=list(ARGUMENTS))
        bare, full = loads(browser, Path(empty)), loads(browser, Path(sys.argv[1]))
        for page, (first, second) in full.items():
            ratio = second / bare[page][1]
            print(f"{page:12} first {first:.2f} s, again {second:.2f} s, {ratio:.1f} times an empty one (aim {AIM} s)")


if __name__ == "__main__":
    main()

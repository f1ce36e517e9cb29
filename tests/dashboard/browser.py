"""Helpers that open the pages in a browser, or with Streamlit's own test driver.

`visit` waits until a page is complete and refuses one with an exception, a word on the console or a request that leaves
this machine. `app` runs one page in this process.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from ctxbench.dashboard.app import PAGES, tab_title

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from streamlit.testing.v1 import AppTest

DESKTOP, PHONE = (1280, 900), (390, 844)
PATIENCE = 90
"""Seconds that a page may take on a busy machine."""
NETWORK_CHANGED = "ERR_NETWORK_CHANGED"


def app(page: str, home: Path, *, timeout: float = 60, **query: str | Sequence[str]) -> AppTest:
    """Run one page in this process on a home's database, with a URL's query; return what became of it."""
    from streamlit.testing.v1 import AppTest

    os.environ["CTXBENCH_HOME"] = str(home)
    os.environ.pop("CTXBENCH_DB", None)
    test = AppTest.from_string(
        f"from ctxbench.dashboard.app import show_page\n\nshow_page({page!r})\n", default_timeout=timeout
    )
    for name, value in query.items():
        test.query_params[name] = value if isinstance(value, str) else list(value)
    with own_main():
        return test.run()


@contextmanager
def own_main() -> Iterator[None]:
    """Give this process its own main module back: an `AppTest` leaves its script in its place.

    Worker processes that are spawned afterwards would each run that script, a whole page, before they began.
    """
    main = sys.modules["__main__"]
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class Site:
    """A running `ctxbench dashboard`, and what a browser met on it."""

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home
        self.foreign: list[str] = []
        """Requests that left this machine."""
        self.errors: list[str] = []
        """Errors on the console, and exceptions of scripts."""

    def watch(self, page: Page) -> None:
        page.on("request", lambda request: self._note_request(request.url))
        page.on("console", lambda message: self._note_console(message.type, message.text, message.location["url"]))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note_request(self, url: str) -> None:
        host, own = (re.sub(r"^\w+://", "", address).partition("/")[0] for address in (url, self.address))
        if not url.startswith(("data:", "blob:")) and host != own:
            self.foreign.append(url)

    def _note_console(self, kind: str, text: str, place: str) -> None:
        # Streamlit looks below a page's own address for its server first, and connects again where a busy machine kept
        # it waiting.
        if kind == "error" and "/_stcore/" not in place + text:
            self.errors.append(text)

    def visit(self, page: Page, name: str, **query: str | Sequence[str]) -> None:
        """Go to a page of the site and wait until it is complete; see `settled` and `check`."""
        address = f"{self.address}/{name}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        self.load(page, lambda: page.goto(address))
        self.check(page)
        title = tab_title(next(info.title for info in PAGES if info.name == (name or PAGES[0].name)))
        assert page.title() == title, page.title()

    def load(self, page: Page, *steps: Callable[[], object]) -> None:
        """Take steps that each load a page, and wait until it is complete.

        A browser drops what it is loading whenever a container somewhere on the machine comes or goes: all steps are
        then taken again.
        """
        from playwright.sync_api import Error

        while True:
            try:
                for step in steps:
                    step()
                    page.wait_for_selector("h1, [data-testid=stException]", timeout=PATIENCE * 1000)
                    settled(page)
            except Error as error:
                if NETWORK_CHANGED not in " ".join([str(error), *self.errors]):
                    raise
            else:
                if NETWORK_CHANGED not in " ".join(self.errors):
                    return
            self.errors.clear()

    def check(self, page: Page) -> None:
        """Refuse a page with an exception, an error on the console, a script's work or a request to elsewhere."""
        boxes = page.locator("[data-testid=stException]").all_inner_texts()
        assert not boxes, boxes
        assert not self.errors, self.errors
        assert not self.foreign, self.foreign
        assert page.evaluate("window.harmed === undefined"), "a stored text was run as a script"


def settled(page: Page) -> None:
    """Wait until the page's script has run, and what it sent is drawn."""
    is_settled = (
        "() => { const app = document.querySelector('[data-testid=stApp]');"
        " return app && app.getAttribute('data-test-script-state') === 'notRunning'"
        " && app.getAttribute('data-test-connection-state') === 'CONNECTED'"
        " && !document.querySelector('[data-testid=stSkeleton]')"
        " && !document.querySelector('[data-stale=true]'); }"
    )
    for _ in range(2):
        page.wait_for_function(is_settled, timeout=PATIENCE * 1000)
        page.wait_for_timeout(150)


def show(page: Page, column: str, values: list[str]) -> None:
    """Wait until a column of a page's first table holds these values: it is drawn some time after the address."""
    deadline = time.monotonic() + PATIENCE
    settled(page)
    while (drawn := [line[column] for line in cells(page)]) != values:
        assert time.monotonic() < deadline, f"{drawn} in place of {values}"
        settled(page)


def cells(page: Page, index: int = 0) -> list[dict[str, str]]:
    """Return a table's rows as the browser tells them to a reader who does not see: heading -> cell.

    A table draws on a canvas; the rows that are in sight stand in it once more, in the document.
    """
    grid = page.locator("[data-testid=stDataFrame]").nth(index)
    grid.scroll_into_view_if_needed()
    grid.locator("table[role=grid] tbody tr").first.wait_for(state="attached", timeout=PATIENCE * 1000)
    headings = [text.strip() for text in grid.locator("table[role=grid] thead th").all_text_contents()]
    rows = grid.locator("table[role=grid] tbody tr").all()
    texts = [[text.strip() for text in row.locator("td").all_text_contents()] for row in rows]
    return [dict(zip(headings, row, strict=True)) for row in texts]


@contextmanager
def serving(home: Path, *options: str) -> Iterator[Site]:
    """Run `ctxbench dashboard` on any free port; end it as Ctrl-C does."""
    program = "from ctxbench.harness.cli.main import main; main()"
    command = [sys.executable, "-c", program, "dashboard", "--home", str(home), "--port", "0", *options]
    # Several sites may show one home at once: each says its address in a file of its own.
    with (
        tempfile.NamedTemporaryFile() as out,
        subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield Site(_address(process, Path(out.name)), home)
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _address(process: subprocess.Popen[Any], log: Path) -> str:
    """Return the address that it prints, as soon as somebody answers there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        address = re.search(r"http://\S+", log.read_text())
        if address:
            try:
                with urllib.request.urlopen(f"{address[0]}/_stcore/health", timeout=5):
                    return address[0]
            except urllib.error.URLError:
                pass
        time.sleep(0.1)
    raise AssertionError(f"the dashboard did not start: {log.read_text()}")

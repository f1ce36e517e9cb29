"""Helpers that open the pages in a browser, or with Streamlit's own test driver.

`visit` waits until a page is complete. It fails if the page has an exception, an error on the console or a request that
leaves this machine. `app` runs one page in this process.
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
    """Run one page in this process on a home's database, with a URL's query, and return the finished page."""
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
    """Restore the main module of this process, which an `AppTest` replaces by its script.

    Otherwise each worker process that is spawned later would first run that script, a whole page.
    """
    main = sys.modules["__main__"]
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class Site:
    """A running `ctxbench dashboard`, with the errors and foreign requests of its pages in a browser."""

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
        # Streamlit first looks for its server below the page's own address, and on a busy machine it may have to
        # reconnect.
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
        """Run steps that each load a page, and wait after each step until the page is complete.

        A browser stops loading whenever a container starts or ends on the machine. In this case all steps are
        repeated.
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
        """Fail if a page has an exception, an error on the console, an executed text or a request to another host."""
        boxes = page.locator("[data-testid=stException]").all_inner_texts()
        assert not boxes, boxes
        assert not self.errors, self.errors
        assert not self.foreign, self.foreign
        assert page.evaluate("window.harmed === undefined"), "a stored text was run as a script"


def settled(page: Page) -> None:
    """Wait until the page's script has run and its output is drawn."""
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
    """Wait until a column of a page's first table contains these values, after the address has changed."""
    deadline = time.monotonic() + PATIENCE
    settled(page)
    while (drawn := [line[column] for line in cells(page)]) != values:
        assert time.monotonic() < deadline, f"{drawn} in place of {values}"
        settled(page)


def cells(page: Page, index: int = 0) -> list[dict[str, str]]:
    """Return a table's rows as a screen reader reads them: heading -> cell.

    A table is drawn on a canvas. The document contains the visible rows a second time.
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
    """Run `ctxbench dashboard` on a free port, and terminate it at the end."""
    program = "from ctxbench.harness.cli.main import main; main()"
    command = [sys.executable, "-c", program, "dashboard", "--home", str(home), "--port", "0", *options]
    # Several sites may show one home at once, so each prints its address to a separate file.
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
    """Return the address that the dashboard prints, as soon as its server answers there."""
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

"""Fixtures of the page tests: one database, one server, one window."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ctxbench.bench.home import Home
from tests.dashboard.browser import DESKTOP, Site, own_main, serving
from tests.dashboard.stored import make_database

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(autouse=True)
def _own_main() -> Iterator[None]:
    """Undo the effects of a page that runs in this process; see `own_main`."""
    with own_main():
        yield


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return a read-only home with sets and runs of every kind, built once for all workers."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "dashboard"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make_database(folder / "home")
            (folder / "made").touch()
    return Home(folder / "home")


@pytest.fixture(scope="session")
def server(database: Home) -> Iterator[Site]:
    with serving(database.root) as site:
        yield site


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """Return the window of all tabs, which loads the site's scripts once."""
    width, height = DESKTOP
    with browser.new_context(viewport={"width": width, "height": height}) as opened:
        yield opened


@pytest.fixture
def page(window: BrowserContext, server: Site) -> Iterator[Page]:
    server.errors.clear()
    server.foreign.clear()
    with window.new_page() as opened:
        server.watch(opened)
        yield opened
    window.clear_cookies()


@pytest.fixture
def empty_home(tmp_path: Path) -> Home:
    from ctxbench.harness.store import open_store

    home = Home(tmp_path / "empty")
    open_store(home.database).close()
    return home

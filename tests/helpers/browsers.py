"""A pytest plug-in with one browser for all tests, because a process can start the driver only once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.helpers.extras import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = "chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = shutil.which(CHROMIUM)
    if program is None:
        missing("no browser is installed; run `apt-get install chromium`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, headless=True, args=list(ARGUMENTS))
        yield opened
        opened.close()

"""The web site: the list of pages, their layout, and the display of errors."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st
from PIL import Image

from ctxbench.bench.errors import CtxbenchError
from ctxbench.dashboard import choices, data, show


@dataclass(frozen=True, slots=True)
class PageInfo:
    """A page of the site."""

    name: str
    title: str
    icon: str
    says: str


PAGES = (
    PageInfo("leaderboard", "Leaderboard", ":material/leaderboard:", "Which strategy leads, and is the lead real?"),
    PageInfo("compare", "Compare", ":material/compare_arrows:", "Where does a difference come from?"),
    PageInfo("samples", "Samples", ":material/search:", "What did the model see, and what did it write?"),
    PageInfo("cost", "Cost", ":material/payments:", "What does accuracy cost in tokens, time and money?"),
    PageInfo("benchmark", "Benchmark", ":material/dataset:", "What does a sample set contain?"),
    PageInfo("runs", "Runs", ":material/pace:", "How far along are the runs, what failed, and how do you repeat one?"),
)


STYLE = """<style>
[data-testid=stMainBlockContainer] { padding: 4rem clamp(1rem, 3vw, 5rem); }
button[data-variant=segmented_control] { color: inherit !important; }
button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; }
</style>"""
"""Corrections to Streamlit's style: page margins, contrast of selectors, and size of small buttons."""


def main() -> None:
    """Show the page that the URL names. Streamlit calls this function at each interaction."""
    # Set the icon first: Streamlit would fetch its own from another server.
    st.set_page_config(page_icon=icon(), layout="wide")
    pages = [
        st.Page(_page(info), title=info.title, icon=info.icon, url_path=info.name, help=info.says) for info in PAGES
    ]
    first = st.Page(
        lambda: st.switch_page(pages[0]), title="ctxbench", url_path="home", default=True, visibility="hidden"
    )
    opened = st.navigation([first, *pages], position="top")
    # The title distinguishes open tabs.
    st.set_page_config(page_title=tab_title(opened.title))
    opened.run()


def icon() -> Any:
    """Return the site's icon, three bars, 32 by 32 pixels. Streamlit would fetch its own icon from another server."""
    pixels = np.zeros((32, 32, 4), dtype=np.uint8)
    for x, y, colour in ((3, 14, 0x5F6B6D), (12, 4, 0x0072B2), (21, 19, 0xB58900)):
        pixels[y:30, x : x + 8] = (colour >> 16, colour >> 8 & 255, colour & 255, 255)
    return Image.fromarray(pixels)


def tab_title(page: str) -> str:
    """Return the title of the browser tab for a page."""
    return f"{page} · ctxbench"


def _page(info: PageInfo) -> Callable[[], None]:
    def page() -> None:
        show_page(info.name)

    page.__name__ = info.name
    return page


def show_page(name: str) -> None:
    """Show a page, or the `CtxbenchError` that ended it."""
    info = next(page for page in PAGES if page.name == name)
    st.html(STYLE)
    st.title(info.title, anchor=False)
    st.caption(info.says)
    choices.enter(name)
    try:
        # The Benchmark page works before any run.
        if name != "benchmark" and not data.sets():
            show.empty("No runs are stored yet.", "ctxbench quickstart")
        else:
            page: Callable[[], None] = importlib.import_module(f"ctxbench.dashboard.pages.{name}").page
            page()
    except CtxbenchError as error:
        show.fault(error)
    finally:
        choices.flush()

"""The choice of a table's order, which stands in the address: a click on a heading does not."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from ctxbench.dashboard import url
from ctxbench.dashboard.views import order as view

R = TypeVar("R", bound=Mapping[str, object])


def order(
    rows: Sequence[Mapping[str, object]], *, name: str, usual: str, leave: Collection[str] = (), where: Any = st
) -> view.Order:
    """Let the reader choose the order of a table.

    Args:
        rows: column -> cell, as they come unasked.
        name: of the choice in the URL.
        usual: what they come ordered by, in a word or two.
        leave: columns that order nothing, e.g. links.
        where: a container of Streamlit.
    """
    return url.choose(
        "Order",
        view.orders(rows, leave),
        name=name,
        shown=lambda one: one.spelled(usual),
        written=lambda one: one.written or "usual",
        help="Stands in the address, and so is shared with it; a click on a heading sorts for the moment only.",
        where=where,
    )


def ordered(rows: Sequence[R], *, name: str, usual: str, leave: Collection[str] = (), where: Any = st) -> list[R]:
    """Return the rows in the order that the reader chooses; the arguments are those of `order`."""
    return view.arranged(rows, order(rows, name=name, usual=usual, leave=leave, where=where))

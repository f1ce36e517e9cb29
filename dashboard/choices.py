"""Choices that several pages share: the sample set, its language, the metric profile, samples' age, a table's order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, TypeVar

import streamlit as st

from ctxbench.bench.dates import read_date
from ctxbench.dashboard import data, show, url
from ctxbench.dashboard.views import tables
from ctxbench.harness.metrics import PROFILES
from ctxbench.harness.store.samples import StoredSet

R = TypeVar("R", bound=Mapping[str, object])


def sample_set(where: Any) -> StoredSet:
    """Let the reader choose one of the sample sets that runs were made over; `where` is a container of Streamlit."""
    return url.choose(
        "Sample set",
        data.sets(),
        name="samples",
        label_of=lambda choice: choice.samples,
        help=show.HELP["sample set"],
        where=where,
    )


def language(samples: StoredSet, where: Any) -> str:
    """Let the reader choose one of a sample set's languages."""
    return url.choose("Language", samples.languages, name="language", help=show.HELP["language"], where=where)


def profile(where: Any) -> str:
    """Let the reader choose a metric profile."""
    return url.choose(
        "Metric profile", list(PROFILES), name="profile", default="ctxbench", help=show.HELP["profile"], where=where
    )


def after(where: Any) -> date | None:
    """Let the reader write the day after which samples' code is dated; None for all samples, dated or not."""
    written = url.text(
        "Newer than",
        name="after",
        help="A day such as 2024-06-01: only samples whose code is dated after it, as `--after` on the command line.",
        where=where,
    ).strip()
    try:
        return read_date(written) if written else None
    except ValueError:
        show.note(f"Newer than: {written[:200]} is no day such as 2024-06-01; all samples are shown.")
        return None


def order(
    rows: Sequence[Mapping[str, object]], *, name: str, usual: str, leave: Collection[str] = (), where: Any = st
) -> tables.Order:
    """Let the reader choose the order of a table, which a click on a heading would not put into the address.

    Args:
        rows: column -> cell, in their usual order.
        name: of the choice in the URL.
        usual: their usual order, in a word or two.
        leave: columns that order nothing, e.g. links.
        where: a container of Streamlit.
    """
    return url.choose(
        "Order",
        tables.orders(rows, leave),
        name=name,
        label_of=lambda order: order.spelled(usual),
        key_of=lambda order: order.written or "usual",
        help="Part of the address, so it is shared with it; a click on a heading sorts only for the moment.",
        where=where,
    )


def ordered(rows: Sequence[R], *, name: str, usual: str, leave: Collection[str] = (), where: Any = st) -> list[R]:
    """Return the rows in the order that the reader chooses; the arguments are those of `order`."""
    return tables.arranged(rows, order(rows, name=name, usual=usual, leave=leave, where=where))

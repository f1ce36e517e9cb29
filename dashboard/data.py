"""The data of the pages, cached until rows are added. Pages open the store only through this module, read-only."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Literal, TypeAlias, TypeVar

import streamlit as st

from ctxbench.bench.home import Home
from ctxbench.dashboard.views import metrics
from ctxbench.harness import cutoffs
from ctxbench.harness.leaderboard import Board
from ctxbench.harness.leaderboard import board as ranked
from ctxbench.harness.leaderboard.scales import tables_dated_after
from ctxbench.harness.leaderboard.selection import runs_over
from ctxbench.harness.results import RunTable
from ctxbench.harness.store import Store
from ctxbench.harness.store.runs import RunFilter, run_tables
from ctxbench.harness.store.samples import StoredSet, stored_sets
from ctxbench.harness.store.store import exists, open_reader, version, which

T = TypeVar("T")
Invalid: TypeAlias = Literal["exclude", "include"]
HOME, DATABASE = "CTXBENCH_HOME", "CTXBENCH_DB"
"""Environment variables in which `ctxbench dashboard` passes the home folder and the database's URL to the pages."""


def home() -> Home:
    """Return the home folder of `ctxbench dashboard`."""
    return Home.of(os.environ.get(HOME) or ".ctxbench")


def database() -> str:
    """Return the URL of the results' database."""
    return os.environ.get(DATABASE) or home().database


def store() -> Store:
    """Return the store, opened read-only and shared by all pages.

    Raises:
        CtxbenchError: if the database does not exist, is not ctxbench's, or has another schema version.
    """
    url = database()
    return _opened((url, which(url)))


@st.cache_resource(show_spinner=False, max_entries=4)
def _opened(key: tuple[str, str]) -> Store:
    return open_reader(key[0])


def stamp() -> str:
    """Return a text that changes when rows are added to the database."""
    return version(store(), database())


def cached(question: Callable[..., T], *arguments: object, **named: object) -> T:
    """Return ``question(store(), …)``, cached until rows are added. Callers must not change the result.

    `question` must be a module-level function. Different arguments must have a different `repr`.
    """
    call = f"{question.__module__}.{question.__qualname__}{arguments!r}{sorted(named.items())!r}"
    answer: T = _cached((database(), stamp(), call), lambda: question(store(), *arguments, **named))
    return answer


@st.cache_resource(show_spinner=False, max_entries=64)
def _cached(key: tuple[str, str, str], _ask: Callable[[], T]) -> T:  # noqa: ARG001 - the key is Streamlit's
    return _ask()


def sets() -> tuple[StoredSet, ...]:
    """Return the sample sets of the stored runs in the order of `stored_sets`; empty without a database.

    If two sets have the same name, `StoredSet.samples` ends with the start of the digest.
    """
    if not exists(database()):
        return ()
    stored = cached(stored_sets)
    names = [stored_set.samples for stored_set in stored]
    return tuple(
        replace(stored_set, samples=f"{stored_set.samples} {stored_set.digest[:12]}")
        if names.count(stored_set.samples) > 1
        else stored_set
        for stored_set in stored
    )


def tables(
    samples: str,
    language: str | None = None,
    generator: str | None = None,
    *,
    profile: str = "ctxbench",
    invalid: Invalid = "exclude",
    after: date | None = None,
) -> list[RunTable]:
    """Return the runs over one sample set, one table per run and language. `after` keeps samples dated after that day.

    Raises:
        InputFault: if no sample is dated after that day.
    """
    matching = [choice for choice in sets() if choice.samples == samples]
    if not matching:
        return []
    own = matching[0].samples.removesuffix(f" {matching[0].digest[:12]}")
    is_part = "[:" in own
    if matching[0].generators == (generator,) and not is_part:
        # These are the same runs, so that all pages share one cached copy.
        generator = None
    # Display runs over a part of the set beside runs over more of it.
    label = None if is_part else own
    selection = RunFilter(samples=label, digest=matching[0].digest, language=language, generator=generator)
    runs = runs_over(_tables((database(), stamp()), matching[0].name, selection, profile, invalid), own)
    return runs if after is None else tables_dated_after(runs, after)


@st.cache_resource(show_spinner="Reading the stored scores …", max_entries=4)
def _tables(
    key: tuple[str, str],  # noqa: ARG001 - the key is Streamlit's
    name: str,
    selection: RunFilter,
    profile: str,
    invalid: Invalid,
) -> tuple[RunTable, ...]:
    return tuple(run_tables(store(), samples=name, profile=profile, invalid=invalid, selection=selection))


def board(  # noqa: PLR0913 - what is ranked, and how
    samples: str,
    language: str | None = None,
    generator: str | None = None,
    *,
    metric: str | None = None,
    baseline: str | None = None,
    by_level: bool | None = None,
    profile: str = "ctxbench",
    invalid: Invalid = "exclude",
    after: date | None = None,
) -> Board:
    """Return the board of the runs from `tables`, with results that papers published; see `leaderboard.table.board`."""
    stated = cutoffs.of_home(home())

    def rank() -> Board:
        runs = tables(samples, language, generator, profile=profile, invalid=invalid, after=after)
        return ranked(runs, metric=metric, baseline=baseline, by_level=by_level, published="auto", cutoffs=stated)

    options = (samples, language, generator, metric, baseline, by_level, profile, invalid, after)
    return _board((database(), stamp(), repr((options, stated))), rank)


@st.cache_resource(show_spinner="Comparing the runs …", max_entries=16)
def _board(key: tuple[str, str, str], _rank: Callable[[], Board]) -> Board:  # noqa: ARG001 - the key is Streamlit's
    return _rank()


def leader(samples: str, language: str, generator: str, profile: str) -> tuple[str, str]:
    """Return the ids of a board's best run besides the baseline, and of the baseline; each empty without such a run."""
    runs = tables(samples, language, generator, profile=profile)
    names = metrics(runs)
    if not names:
        return "", ""
    group = board(samples, language, generator, metric=names[0], profile=profile).groups[0]
    base, first = group.base, next((row for row in group.ranked if row is not group.base), None)
    return first.run.ids[0] if first else "", base.run.ids[0] if base else ""

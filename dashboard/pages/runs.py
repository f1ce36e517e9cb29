"""Runs: how far they are, what went wrong, and the command that makes one again. Layout only."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from ctxbench.bench.errors import CtxbenchError
from ctxbench.dashboard import data, show, url
from ctxbench.dashboard.order import order
from ctxbench.dashboard.views import runs as view
from ctxbench.dashboard.views.order import Order, arranged
from ctxbench.harness.repeat import command, judging, place
from ctxbench.harness.store.attempts import faults
from ctxbench.harness.store.work import RunWork, watched, works

_OFTEN, _SELDOM = 2.0, 10.0
"""Seconds between two looks: while a run may be going on, and else."""
_ALL = "all"
_BARS = 6
_FAULTS = 10
_SEEN = "runs/seen"


def page() -> None:
    """Show the runs; looks again by itself."""
    names = [one.samples for one in data.sets()]
    left, middle, right = st.columns([2, 4, 2])
    samples = url.choose(
        "Samples", [_ALL, *names], name="samples", help="Only the runs over one sample set.", where=left
    )
    found = _of(samples)
    chosen = url.choose(
        "Run",
        found,
        name="run",
        shown=_title,
        written=lambda one: one.id,
        help="The run that is shown below the table.",
        where=middle,
    ).id
    now = time.time()
    # Chosen here and not at every look: a choice stands in the address.
    by = order([view.row(one, now) for one in found], name="runs-sort", usual="newest first", where=right)
    going = any(map(_may_go_on, found))
    st.fragment(_looked, run_every=_OFTEN if going else _SELDOM)(samples, chosen, by, going)


def _may_go_on(work: RunWork) -> bool:
    return view.state(work) in (view.GOING_ON, view.NO_END)


def _title(work: RunWork) -> str:
    return f"{work.choices.strategy} · {view.generator(work)} · {view.label(work)} · {work.id}"


def _of(samples: str) -> list[RunWork]:
    """Return the runs over a sample set, by what `dashboard.data.sets` calls it."""
    # What is kept changes with the database; that a process is gone changes nothing there.
    found = watched(data.store(), data.kept(works))
    if samples == _ALL:
        return found
    wanted = next(one for one in data.sets() if one.samples == samples)
    limited = samples.removesuffix(f" {wanted.digest[:12]}")
    return [one for one in found if (view.label(one), one.samples_digest) == (limited, wanted.digest)]


def _looked(samples: str, chosen: str, by: Order, going: bool) -> None:
    """Show what changes while runs go on; what fails now may work at the next look."""
    try:
        _show(samples, chosen, by, going)
    except CtxbenchError as fault:
        show.fault(fault)


def _show(samples: str, chosen: str, by: Order, going: bool) -> None:
    found = _of(samples)
    if any(map(_may_go_on, found)) != going or chosen not in {one.id for one in found}:
        # The page as a whole decides how often to look, and what there is to choose from.
        st.rerun()
    now = time.time()
    seen = st.session_state[_SEEN] = view.sightings(st.session_state.get(_SEEN, {}), found, now)
    for one in [one for one in found if view.state(one, seen[one.id]) == view.GOING_ON][:_BARS]:
        _bar(one, now, seen[one.id])
    st.subheader("All runs" if samples == _ALL else "Runs", anchor=False)
    config: Any = {
        "progress": st.column_config.ProgressColumn(format="%.0f%%", max_value=100, help=view.HELP["progress"]),
        "state": st.column_config.TextColumn(width=115, help=view.HELP["state"]),
    }
    rows = arranged([view.row(one, now, seen[one.id]) for one in found], by)
    show.frame(rows, help=view.HELP, key="runs", **config)
    _one(next(one for one in found if one.id == chosen), now, seen[chosen])


def _bar(work: RunWork, now: float, seen: view.Sighting) -> None:
    share = work.finished / work.planned if work.planned else 0.0
    st.progress(min(1.0, share), text=show.plain(f"{_title(work)}: {view.sentence(work, now, seen)}"))


def _one(work: RunWork, now: float, seen: view.Sighting) -> None:
    """Show one run."""
    st.subheader(show.plain(f"{work.choices.strategy} · {view.generator(work)}"), anchor=False)
    state = view.state(work, seen)
    st.markdown(show.plain(f"{view.label(work)}, run {work.id}: {view.sentence(work, now, seen)}."))
    show.note(view.STATES[state])
    for remark in work.remarks:
        show.note(f"Note: {remark}")
    _repeat(work)
    st.markdown("**Attempts**")
    show.frame(view.attempt_rows(work.attempts), help=view.ATTEMPT_HELP, key="attempts")
    _faults(work)


def _repeat(work: RunWork) -> None:
    st.markdown("**Run it again**")
    options = place(data.home(), data.database(), data.store().where)
    st.code(command(work.choices, work.file, options=options), language=None, wrap_lines=True)
    if work.unjudged:
        show.note("Its completions without a verdict are judged by:")
        st.code(judging(work.choices, work.id, options=options), language=None, wrap_lines=True)
    versions = ", ".join(f"{name} {version}" for name, version in work.versions.items())
    if work.imported is not None:
        show.note(f"The file's SHA-256 is {work.imported.sha256}; the same file gives the same run.")
    show.note(
        f"With the same sample set (digest {work.samples_digest[:12]}…) and versions ({versions}) it is this run, "
        "and does only what is missing; with others it is a new one. How much is done at once decides its seconds."
    )


def _faults(work: RunWork) -> None:
    groups = data.kept(faults, work.id)
    st.markdown("**Faults**")
    if not groups:
        show.note("None is stored.")
        return
    show.frame(view.fault_rows(groups), help=view.FAULT_HELP, key="faults")
    for number, one in enumerate(groups[:_FAULTS]):
        if one.detail or len(one.message) > view.MESSAGE:
            with st.expander(show.plain(f"{one.count} times, {one.kind}: {one.message[:100]}")):
                show.text(one.message, key=f"fault-{number}-message")
                if one.detail:
                    show.text(one.detail, language="python", key=f"fault-{number}-detail")

"""The Runs page: progress, faults and repeat commands of stored runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from ctxbench.bench.errors import CtxbenchError
from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import runs as view
from ctxbench.harness.run.spec import judge_command, place_options
from ctxbench.harness.store.work import RunWork, faults_of, run_works, watched

_OFTEN, _SELDOM = 2.0, 10.0
"""Seconds between refreshes: while a run may be active, and otherwise."""
_ALL = "all"
_FAULTS = 10


def page() -> None:
    """Show the runs, and refresh them automatically."""
    top, where = st.container(), show.choices()
    names = [choice.samples for choice in data.sets()]
    with where:
        samples, run_id, going = _choose(names)
    often = _OFTEN if going else _SELDOM
    with top:
        st.fragment(_refreshed, run_every=often)(_overview, samples, run_id, going)
    st.fragment(_refreshed, run_every=often)(_one_run, samples, run_id, going)


def _choose(names: list[str]) -> tuple[str, str, bool]:
    set_column, run_column = st.columns([2, 4])
    samples = choices.choose(
        "Samples", [_ALL, *names], name="samples", help="Show only runs over this sample set.", where=set_column
    )
    runs = _runs_over(samples)
    run_id = choices.choose(
        "Run",
        runs,
        name="run",
        label_of=_run_label,
        key_of=lambda run: run.id,
        help="The run shown below the table.",
        where=run_column,
    ).id
    return samples, run_id, any(map(_may_go_on, runs))


def _may_go_on(work: RunWork) -> bool:
    return view.state(work) in (view.GOING_ON, view.NO_END)


def _run_label(work: RunWork) -> str:
    return f"{work.choices.strategy} · {view.generator(work)} · {view.label(work)} · {view.called(work)}"


def _runs_over(samples: str) -> list[RunWork]:
    # The cache changes with the database, but not when a process ends.
    runs = watched(data.store(), data.cached(run_works))
    if samples == _ALL:
        return runs
    sample_set = next((choice for choice in data.sets() if choice.samples == samples), None)
    if sample_set is None:
        # The set's last run was deleted while the page was open.
        return []
    limited = samples.removesuffix(f" {sample_set.digest[:12]}")
    return [run for run in runs if (view.label(run), run.choices.samples_digest) == (limited, sample_set.digest)]


_Part = Callable[[list[RunWork], str], None]
"""Function that shows a part of the page, given the runs and the id of the chosen run."""


def _refreshed(part: _Part, samples: str, run_id: str, going: bool) -> None:
    try:
        runs = _runs_over(samples)
        if any(map(_may_go_on, runs)) != going or run_id not in {run.id for run in runs}:
            # Only the whole page can change the refresh interval and the choices.
            st.rerun()
        part(runs, run_id)
    except CtxbenchError as fault:
        # Both parts have the same fault; show it once.
        if part is _overview:
            show.fault(fault)


def _overview(runs: list[RunWork], _: str) -> None:
    show.answer(view.headline([view.state(run) for run in runs]))
    config: Any = {
        "progress": st.column_config.ProgressColumn(format="%.0f%%", max_value=100, help=view.HELP["progress"]),
        "state": st.column_config.TextColumn(width=115, help=view.HELP["state"]),
    }
    show.frame([view.row(run) for run in runs], help=view.HELP, key="runs", **config)


def _one_run(runs: list[RunWork], run_id: str) -> None:
    _details(next(run for run in runs if run.id == run_id))


def _details(work: RunWork) -> None:
    st.header(show.plain(f"{work.choices.strategy} · {view.generator(work)}"), anchor=False)
    st.markdown(show.plain(f"{view.label(work)}, run {work.id}: {view.sentence(work)}."))
    show.note(view.STATES[view.state(work)])
    if work.name:
        show.note(f"Name: {work.name}")
    for remark in work.remarks:
        show.note(f"Remark: {remark}")
    _repeat(work)
    st.markdown("**Attempts**")
    show.frame(view.attempt_rows(work.attempts), help=view.ATTEMPT_HELP, key="attempts")
    _faults(work)


def _repeat(work: RunWork) -> None:
    st.markdown("**Repeat the run**")
    options = place_options(data.home(), data.database(), data.store().where)
    st.code(work.repeat_command(options), language=None, wrap_lines=True)
    if work.unjudged:
        show.note("This command judges completions without a verdict:")
        st.code(judge_command(work.choices, work.id, options=options), language=None, wrap_lines=True)
    versions = ", ".join(f"{name} {version}" for name, version in work.choices.versions.items())
    if work.imported is not None:
        show.note(f"The file's SHA-256 is {work.imported.sha256}. Importing the same file again produces the same run.")
    show.note(
        f"With the same sample set (digest {work.choices.samples_digest[:12]}…) and versions ({versions}), the command "
        "completes this run; otherwise it starts a new run. Parallel work affects measured seconds."
    )


def _faults(work: RunWork) -> None:
    groups = data.cached(faults_of, work.id)
    st.markdown("**Faults**")
    if not groups:
        show.note("No faults are stored.")
        return
    show.frame(view.fault_rows(groups), help=view.FAULT_HELP, key="faults")
    for number, fault in enumerate(groups[:_FAULTS]):
        if fault.detail or len(fault.message) > view.MESSAGE:
            with st.expander(show.plain(f"{fault.count} times, {fault.kind}: {fault.message[:100]}")):
                show.text(fault.message, key=f"fault-{number}-message")
                if fault.detail:
                    show.text(fault.detail, language="python", key=f"fault-{number}-detail")

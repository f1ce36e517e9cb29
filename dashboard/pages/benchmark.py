"""Benchmark: what a sample set is made of, and how answers are kept out of sight. Layout only."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ctxbench.bench import anatomy
from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.dashboard import data, show, url
from ctxbench.dashboard.views import benchmark as view
from ctxbench.dashboard.views import benchmark_audit, benchmark_drops, benchmark_lengths
from ctxbench.harness.store.notes import marks_of
from ctxbench.harness.store.sets import contents


def page() -> None:
    """Show one sample set, of the home folder or of stored runs."""
    known = view.known_sets(_here(), [(one.samples, one.name, one.digest) for one in data.sets()])
    if not known:
        show.empty("No sample set is here yet.", "ctxbench quickstart")
        return
    chosen = url.choose(
        "Sample set", known, name="samples", shown=lambda one: one.samples, help="The tasks that runs are made over."
    )
    if chosen.limited:
        show.note(f"Runs over {chosen.samples} take a part of {chosen.name}, which is shown here as a whole.")
    if chosen.manifest is None:
        _stored(chosen)
        return
    _whole(chosen, chosen.manifest)


def _here() -> dict[str, tuple[str, view.Manifest]]:
    """Return name -> digest and manifest of the home folder's sets; of a damaged one its fault is shown."""
    found: dict[str, tuple[str, view.Manifest]] = {}
    for name in sets.names(data.home()):
        try:
            manifest = sets.manifest_of(data.home(), name)
        except InputFault as fault:
            show.fault(fault)
        else:
            found[name] = sets.digest_of(manifest["files"]), manifest
    return found


@st.cache_resource(show_spinner="Reading the samples …", max_entries=3)
def _measured(root: str, name: str, digest: str) -> tuple[anatomy.Measured, ...]:  # noqa: ARG001 - part of the key
    """Return the samples of a set in numbers, read anew when the set is another."""
    return anatomy.measure(Home(Path(root)), name)


def _whole(chosen: view.Known, manifest: view.Manifest) -> None:
    measured = _measured(str(data.home().root), chosen.name, chosen.digest)
    runs = sum(one.runs for one in data.sets() if one.digest == chosen.digest)
    st.markdown(show.plain(view.headline(chosen, len(measured), runs)))
    for remark in view.remarks(manifest):
        show.note(f"Note: {remark}")
    _table("Samples", view.kinds(measured), view.KIND_HELP)
    _table("Repositories", view.repositories(manifest, measured), view.REPO_HELP)
    marks = data.kept(marks_of, chosen.digest)
    _table("What keeps answers out of sight", benchmark_audit.audit(manifest, measured, marks), benchmark_audit.HELP)
    if marks:
        rows: list[view.Cells] = [
            {"sample": one.sample_id, "mark": one.mark, "reason": one.reason, "image": one.image} for one in marks
        ]
        _table(
            "Marked samples", rows, {"mark": "Samples that leaderboards leave out.", "image": "What its tests ran in."}
        )
    mutants = view.mutants(manifest)
    if mutants:
        _table("What the tests notice", mutants, view.MUTANTS_HELP)
    _lengths(measured)
    _table("What was left out", benchmark_drops.drops(manifest), benchmark_drops.HELP)
    _table("How it was made", view.about(manifest), {})


def _stored(chosen: view.Known) -> None:
    """Show a set that the home folder lacks: what the store knows of it."""
    counted = data.kept(contents, chosen.digest)
    show.note(
        f"The home folder {data.home().root} does not hold this set (digest {chosen.digest[:12]}), or holds another of "
        "its name. Below is what the stored runs tell; lengths, licences and what was left out stand with the set."
    )
    st.markdown(show.plain(f"{sum(one.samples for one in counted)} samples that runs were planned over."))
    _table("Samples", view.stored_kinds(counted), view.KIND_HELP)
    _table("Repositories", view.stored_repositories(counted), view.REPO_HELP)


def _lengths(measured: tuple[anatomy.Measured, ...]) -> None:
    rows = benchmark_lengths.summary(measured)
    _table("Lengths", rows, benchmark_lengths.HELP)
    if not rows:
        return
    name = url.choose(
        "Distribution of",
        [str(row["what"]) for row in rows],
        name="length",
        default="target tokens",
        help="; ".join(f"{name}: {says}" for name, says in benchmark_lengths.MEANING.items()),
    )
    show.chart(benchmark_lengths.histogram(measured, name), key="lengths")
    show.note(benchmark_lengths.MEANING[name])


def _table(title: str, rows: list[view.Cells], help: view.Help) -> None:  # noqa: A002 - as `show.frame` calls it
    st.subheader(title, anchor=False)
    if rows:
        show.frame(rows, help=help, key=title)
    else:
        show.note("Nothing.")

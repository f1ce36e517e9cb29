"""The Benchmark page: a sample set's samples and repositories, its exclusions, and how it was built."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.types import Sample
from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import benchmark as view
from ctxbench.harness.store.notes import marks_of


def page() -> None:
    """Show one sample set, from the home folder or from stored runs."""
    sample_sets = view.all_sets(_home_sets(), [(choice.samples, choice.name, choice.digest) for choice in data.sets()])
    if not sample_sets:
        show.empty("There is no sample set yet.", "ctxbench quickstart")
        return
    top, where = st.container(), show.choices()
    sample_set = choices.choose(
        "Sample set",
        sample_sets,
        name="samples",
        label_of=lambda sample_set: sample_set.samples,
        help="The tasks that the runs complete.",
        where=where,
    )
    if sample_set.limited:
        with top:
            show.note(f"Runs over {sample_set.samples} use a part of {sample_set.name}; this page shows all of it.")
    if sample_set.manifest is not None:
        _whole(sample_set, sample_set.manifest, top)
        return
    with top:
        show.note(
            f"The home folder {data.home().root} does not contain the set {sample_set.samples} (digest "
            f"{sample_set.digest[:12]}); a set's details are stored only in its folder."
        )


def _home_sets() -> dict[str, tuple[str, view.Manifest]]:
    manifests: dict[str, tuple[str, view.Manifest]] = {}
    for name in sets.names(data.home()):
        try:
            manifest = sets.manifest_of(data.home(), name)
        except InputFault as fault:
            show.fault(fault)
        else:
            manifests[name] = sets.digest_of(manifest["files"]), manifest
    return manifests


@st.cache_resource(show_spinner="Reading the samples …", max_entries=3)
def _samples(root: str, name: str, digest: str) -> tuple[Sample, ...]:  # noqa: ARG001 - part of the key
    return sets.load(Home(Path(root)), name).samples


def _whole(sample_set: view.SetInfo, manifest: view.Manifest, top: DeltaGenerator) -> None:
    samples = _samples(str(data.home().root), sample_set.name, sample_set.digest)
    runs = sum(choice.runs for choice in data.sets() if choice.digest == sample_set.digest)
    with top:
        show.answer(view.headline(sample_set, len(samples), runs), sample_set.samples)
        for remark in view.remarks(manifest):
            show.note(f"Note: {remark}")
        _table("Samples", view.kinds(samples), view.KIND_HELP)
    _table("Repositories", view.repositories(manifest, samples), view.REPO_HELP)
    marks = data.cached(marks_of, sample_set.digest)
    if marks:
        rows: list[view.Cells] = [
            {"sample": mark.sample_id, "mark": mark.mark, "reason": mark.reason, "image": mark.image} for mark in marks
        ]
        _table(
            "Invalid samples",
            rows,
            {"mark": "Why leaderboards leave the sample out.", "image": "Image in which the sample's tests ran."},
        )
    mutants = view.mutants(manifest)
    if mutants:
        _table("Faults that the tests notice", mutants, view.MUTANTS_HELP)
    _table("Exclusions", view.drop_rows(manifest), view.DROP_HELP)
    _table("How the set was built", view.about(manifest), {})


def _table(title: str, rows: list[view.Cells], help: view.Help) -> None:  # noqa: A002 - as `show.frame` calls it
    st.header(title, anchor=False)
    if rows:
        show.frame(rows, help=help, key=title)
    else:
        show.note("Nothing.")

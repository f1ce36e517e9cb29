"""Samples: find any one, and see what the model saw and wrote. Layout only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from ctxbench.bench.visible import visible
from ctxbench.dashboard import data, show, url
from ctxbench.dashboard.pages import samples_one
from ctxbench.dashboard.views import samples as view
from ctxbench.harness.metrics import PROFILES
from ctxbench.harness.results import Status
from ctxbench.harness.store.facets import Facets, RunChoice, facets, runs_over
from ctxbench.harness.store.searching import Order, SampleFilter, neighbours, place_in_plan, search

_TALL = 145
"""Pixels of the list: three samples and a heading, so that what was written is in sight without scrolling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the reader chose to look at."""

    samples: data.SetChoice
    first: RunChoice
    second: RunChoice | None
    facets: Facets
    profile: str
    metric: view.Metric
    language: str


def page() -> None:
    """Show the samples of a run, alone or beside another run, and one of them whole."""
    chosen = _chosen()
    if chosen is None:
        show.empty("No sample of this set is finished yet.", "ctxbench run --samples NAME --strategy SPEC")
        return
    opened = _listing(chosen)
    if opened:
        runs = [("A", chosen.first), *([("B", chosen.second)] if chosen.second else [])]
        samples_one.show_sample(chosen.samples, runs, opened, chosen.profile)


def _chosen() -> Chosen | None:
    one, two, three, four = st.columns([2, 1, 1, 1])
    samples = url.choose(
        "Sample set", data.sets(), name="samples", shown=lambda it: it.samples, help=show.HELP["sample set"], where=one
    )
    language = url.choose("Language", samples.languages, name="language", help=show.HELP["language"], where=two)
    profile = url.choose(
        "Metric profile", list(PROFILES), name="profile", default="ctxbench", help=show.HELP["profile"], where=three
    )
    label = samples.samples.removesuffix(f" {samples.digest[:12]}")
    runs = data.kept(runs_over, samples.digest, label)
    left, right, *rest = st.columns([2, 2, 1] if len(samples.generators) > 1 else 2)
    if rest:
        generators = [view.ANY, *samples.generators]
        only = url.choose("Generator", generators, name="generator", help=show.HELP["generator"], where=rest[0])
        runs = [run for run in runs if only in (view.ANY, run.generator)]
    first = url.choose(
        "Run A",
        runs,
        name="run",
        shown=view.spelled,
        written=lambda run: run.id,
        help="The run whose samples are listed.",
        where=left,
    )
    second = url.choose(
        "Run B",
        [None, *(run for run in runs if run.id != first.id)],
        name="other",
        shown=lambda run: view.spelled(run) if run else view.NONE,
        written=lambda run: run.id if run else view.NONE,
        help="A second run, to see where the two differ.",
        where=right,
    )
    found = data.kept(facets, first.id)
    metrics = view.metrics(found, profile)
    default = view.preferred(metrics, first.generator)
    if default is None:
        return None
    metric = url.choose(
        "Metric",
        metrics,
        name="metric",
        default=default,
        shown=lambda it: it.name,
        help=show.HELP["metric"],
        where=four,
    )
    return Chosen(
        samples=samples,
        first=first,
        second=second,
        facets=found,
        profile=profile,
        metric=metric,
        language=language,
    )


def _filters(chosen: Chosen) -> tuple[SampleFilter, Order, str, Any]:
    """Let the reader say which samples; return that, their order, the one that was written, and room for the page."""
    one, two, three, four = st.columns([2, 1, 1, 1])
    words = url.text("Search", name="words", help="Part of an id, a path or a repository.", where=one)
    differs = view.ANY
    if chosen.second:
        differs = url.choose("Show", list(view.DIFFERS), name="differs", help="By the metric chosen above.", where=two)
    order = url.choose("Order", list(view.ORDERS), name="order", where=three)
    with st.expander("More filters", key="filters"):
        first, second, facet = st.columns(4), st.columns(4), chosen.facets
        typed = url.text("Sample", name="sample", help="Its id: opens it, whether it fits or not.", where=first[3])
        wanted = SampleFilter(
            run=chosen.first.id,
            measure=chosen.metric.measure,
            words=words.strip(),
            language=chosen.language,
            repo=_one("Repository", facet.repos, "repo", first[0]),
            level=_one("Level", facet.levels, "level", first[1]),
            status=_status(first[2]),
            verdict=_one("Verdict of tests", facet.verdicts, "verdict", second[0]) if facet.verdicts else "",
            flag=_one("Flag", facet.flags, "flag", second[1]) if facet.flags else "",
            low=_bound("At least", "low", chosen.metric, second[2]),
            high=_bound("At most", "high", chosen.metric, second[3]),
            other=chosen.second.id if chosen.second else "",
            differs=view.DIFFERS[differs],
        )
    return wanted, view.ORDERS[order], typed.strip(), four


def _one(label: str, options: tuple[str, ...], name: str, where: object) -> str:
    picked = url.choose(label, [view.ANY, *options], name=name, where=where)
    return "" if picked == view.ANY else picked


def _status(where: object) -> Status | None:
    picked = _one("Status", tuple(map(str, Status)), "status", where)
    return Status(picked) if picked else None


def _bound(label: str, name: str, metric: view.Metric, where: object) -> float | None:
    unit = metric.scale.unit
    return view.bound(
        url.text(f"{label} ({unit})", name=name, help=f"Of {metric.name} in A.", where=where), metric.scale
    )


def _listing(chosen: Chosen) -> str:
    """Show a page of what is found; return the sample to open, or nothing."""
    wanted, order, typed, room = _filters(chosen)
    total = data.kept(search, wanted, order=order, limit=1)[0]
    page = url.number("Page", 1, view.pages(total), name="page", default=1, where=room)
    _, found = data.kept(search, wanted, order=order, limit=view.PAGE, offset=(page - 1) * view.PAGE)
    known = bool(typed) and data.kept(place_in_plan, chosen.first.id, typed) is not None
    opened = typed if known else found[0].id if found else ""
    if typed and not known:
        show.note(f"Run A has no sample {typed}; this shows the first one that was found.")
    if chosen.facets.judged_again:
        show.note(f"Run A: {chosen.facets.judged_again}")
    if opened:
        said = f"{total:,} {'sample' if total == 1 else 'samples'} found; page {page} of {view.pages(total)}. "
        said += view.steps_hint(compared=chosen.second is not None, differing=bool(wanted.differs))
        _steps(chosen, wanted, opened, said)
    if found:
        rows = view.found_rows(found, chosen.metric, opened, compared=chosen.second is not None)
        _table(rows, f"found/{hash((wanted, order, page, opened))}")
    else:
        show.empty("No sample fits these filters; take one away.", "ctxbench samples show NAME")
    return opened


def _table(rows: list[dict[str, object]], key: str) -> None:
    """Show samples to choose from; cells are text, which a table never reads as markup."""

    def choose() -> None:
        selected = st.session_state[key]["selection"]["rows"]
        if selected:
            url.put("sample", str(rows[selected[0]]["sample"]))

    shown = [{name: visible(one) if isinstance(one, str) else one for name, one in row.items()} for row in rows]
    config: dict[str, Any] = {name: st.column_config.Column(help=view.HELP.get(name)) for name in rows[0]}
    config[""] = st.column_config.Column(help=view.HELP[""], width=30)
    for name, form in view.NUMBERS.items():
        config[name] = st.column_config.NumberColumn(help=view.HELP[name], format=form)
    st.dataframe(
        shown,
        hide_index=True,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config=config,
        height=_TALL,
    )


def _steps(chosen: Chosen, wanted: SampleFilter, opened: str, said: str) -> None:
    """Show how many were found, and the ways to the sample before and after this one among them."""
    at = data.kept(place_in_plan, chosen.first.id, opened)
    before, after = data.kept(neighbours, wanted, at) if at is not None else (None, None)
    what = "disagreement" if wanted.differs else "sample"
    rest, one, two = st.columns([2, 1, 1])
    with rest:
        show.note(said)
    for where, label, to, key in ((one, "Previous", before, "p"), (two, "Next", after, "n")):
        where.button(
            f"{label} {what}",
            key=f"step-{key}",
            shortcut=key,
            disabled=to is None,
            on_click=url.put,
            args=("sample", to or ""),
            help=f"Of the samples found, in the order of the plan. Key: {key}",
            width="stretch",
        )

"""Samples: find any one, and see what the model saw and wrote. Layout only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from bench.visible import visible
from dashboard import data, show, url
from dashboard.pages import samples_one
from dashboard.views import samples as view
from harness.metrics import PROFILES
from harness.results import Status
from harness.store.facets import Facets, RunChoice, facets, runs_over
from harness.store.searching import Order, Wanted, neighbours, place_in_plan, search

_LIST = "samples-list"
PHONE_STYLE = f"""<style>@media (max-width: 640px) {{
[data-testid=stLayoutWrapper]:has(> .st-key-{_LIST}) {{ order: 1; }}
}}</style>"""
"""On a phone the list stands below the sample: what the model wrote is in sight without scrolling."""
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
    choices = st.container(horizontal=True)
    more = st.expander("More choices and filters", key="filters")
    chosen = _choose(choices, more.columns(4))
    if chosen is None:
        show.empty("No sample of this set is finished yet.", "ctxbench run --samples NAME --strategy SPEC")
        return
    differs = view.ANY
    if chosen.second:
        differs = url.choose(
            "Show", list(view.DIFFERS), name="differs", help="By the metric that is chosen.", where=choices
        )
    st.html(PHONE_STYLE)
    opened = _listing(chosen, differs, more)
    if opened:
        runs = [("A", chosen.first), *([("B", chosen.second)] if chosen.second else [])]
        samples_one.show_sample(chosen.samples, runs, opened, chosen.profile)


def _choose(main: Any, more: Sequence[Any]) -> Chosen | None:
    """Let the reader choose runs and metric.

    Args:
        main: where the choices stand that everybody makes.
        more: columns for those that few make.
    """
    samples = url.choose(
        "Sample set", data.sets(), name="samples", shown=lambda it: it.samples, help=show.HELP["sample set"], where=main
    )
    language = url.choose("Language", samples.languages, name="language", help=show.HELP["language"], where=more[0])
    profile = url.choose(
        "Metric profile", list(PROFILES), name="profile", default="ctxbench", help=show.HELP["profile"], where=more[1]
    )
    label = samples.samples.removesuffix(f" {samples.digest[:12]}")
    runs = data.kept(runs_over, samples.digest, label)
    if len(samples.generators) > 1:
        generators = [view.ANY, *samples.generators]
        generator = url.choose("Generator", generators, name="generator", help=show.HELP["generator"], where=more[2])
        runs = [run for run in runs if generator in (view.ANY, run.generator)]
    first = url.choose(
        "Run A",
        runs,
        name="run",
        shown=view.spelled,
        written=lambda run: run.id,
        help="The run whose samples are listed.",
        where=main,
    )
    second = url.choose(
        "Run B",
        [None, *(run for run in runs if run.id != first.id)],
        name="other",
        shown=lambda run: view.spelled(run) if run else view.NONE,
        written=lambda run: run.id if run else view.NONE,
        help="A second run, to see where the two differ.",
        where=main,
    )
    run_facets = data.kept(facets, first.id)
    metrics = view.metrics(run_facets, profile)
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
        where=main,
    )
    return Chosen(
        samples=samples,
        first=first,
        second=second,
        facets=run_facets,
        profile=profile,
        metric=metric,
        language=language,
    )


def _filters(chosen: Chosen, differs: str, more: Any) -> tuple[Wanted, Order, str, Any]:
    """Let the reader filter the samples; return the filters, the order, a typed id, and the column for the page."""
    with more:
        upper, middle, lower = st.columns(4), st.columns(4), st.columns(4)
    facet = chosen.facets
    words = url.text("Search", name="words", help="Part of an id, a path or a repository.", where=upper[0])
    order = url.choose("Order", list(view.ORDERS), name="order", where=upper[1])
    typed = url.text("Sample", name="sample", help="Its id: opens it, whether it fits or not.", where=upper[3])
    wanted = Wanted(
        run=chosen.first.id,
        measure=chosen.metric.measure,
        words=words.strip(),
        language=chosen.language,
        repo=_one("Repository", facet.repos, "repo", middle[0]),
        level=_one("Level", facet.levels, "level", middle[1]),
        status=_status(middle[2]),
        verdict=_one("Verdict of tests", facet.verdicts, "verdict", lower[0]) if facet.verdicts else "",
        flag=_one("Flag", facet.flags, "flag", lower[1]) if facet.flags else "",
        low=_bound("At least", "low", chosen.metric, lower[2]),
        high=_bound("At most", "high", chosen.metric, lower[3]),
        other=chosen.second.id if chosen.second else "",
        differs=view.DIFFERS[differs],
    )
    return wanted, view.ORDERS[order], typed.strip(), upper[2]


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


def _listing(chosen: Chosen, differs: str, more: Any) -> str:
    """Show a page of the samples that fit; return the sample to open, or nothing."""
    wanted, order, typed, page_column = _filters(chosen, differs, more)
    total = data.kept(search, wanted, order=order, limit=1)[0]
    page = url.number("Page", 1, view.pages(total), name="page", default=1, where=page_column)
    _, samples = data.kept(search, wanted, order=order, limit=view.PAGE, offset=(page - 1) * view.PAGE)
    is_planned = bool(typed) and data.kept(place_in_plan, chosen.first.id, typed) is not None
    opened = typed if is_planned else samples[0].id if samples else ""
    if typed and not is_planned:
        show.note(f"Run A has no sample {typed}; this shows the first one that was found.")
    if not samples:
        show.empty("No sample fits these filters; take one away.", "ctxbench samples show NAME")
    if opened:
        _steps(chosen, wanted, opened)
    with st.container(key=_LIST):
        if samples:
            rows = view.found_rows(samples, chosen.metric, opened, compared=chosen.second is not None)
            _table(rows, f"found/{hash((wanted, order, page, opened))}")
            hint = view.steps_hint(compared=chosen.second is not None, differing=bool(wanted.differs))
            count = f"{total:,} {'sample' if total == 1 else 'samples'} found; page {page} of {view.pages(total)}."
            show.note(f"{count} {hint}")
        if chosen.facets.judged_again:
            show.note(f"Run A: {chosen.facets.judged_again}")
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
        placeholder="–",
    )


def _steps(chosen: Chosen, wanted: Wanted, opened: str) -> None:
    """Show the ways to the sample before and after the open one, among those that fit the filters."""
    position = data.kept(place_in_plan, chosen.first.id, opened)
    before, after = data.kept(neighbours, wanted, position) if position is not None else (None, None)
    noun = "disagreement" if wanted.differs else "sample"
    with st.container(horizontal=True):
        for label, sample, key in (("Previous", before, "p"), ("Next", after, "n")):
            st.button(
                f"{label} {noun}",
                key=f"step-{key}",
                shortcut=key,
                disabled=sample is None,
                on_click=url.put,
                args=("sample", sample or ""),
                help=f"Of the samples found, in the order of the plan. Key: {key}",
                width="stretch",
            )

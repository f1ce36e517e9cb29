"""The Samples page: search and filter the samples of one or two runs, and open one. Layout only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ctxbench.bench.visible import visible
from ctxbench.dashboard import choices, data, show, url
from ctxbench.dashboard.pages import samples_one
from ctxbench.dashboard.views import samples as view
from ctxbench.harness.results import Status
from ctxbench.harness.store.samples import StoredSet
from ctxbench.harness.store.search import (
    Facets,
    Order,
    RunChoice,
    SampleFilter,
    facets,
    neighbours,
    place_in_plan,
    runs_over,
    search,
)

_LIST = "samples-list"
PHONE_STYLE = f"""<style>@media (max-width: 640px) {{
[data-testid=stLayoutWrapper]:has(> .st-key-{_LIST}) {{ order: 1; }}
}}</style>"""
"""On a phone the list stands below the sample: what the model wrote is in sight without scrolling."""
_TALL = 145
"""Pixels of the list: three samples and a heading, so that what was written is in sight without scrolling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The runs, the set and the metric that the reader chose."""

    samples: StoredSet
    first: RunChoice
    second: RunChoice | None
    facets: Facets
    profile: str
    metric: view.Metric
    language: str


def page() -> None:
    """Show the samples of a run, alone or beside another run, and one of them whole."""
    top = st.container(horizontal=True)
    more = st.expander("More choices and filters", key="filters")
    choice = _choose(top, more.columns(4))
    if choice is None:
        show.empty("No sample of this set is finished yet.", "ctxbench run --samples NAME --strategy SPEC")
        return
    differs = view.ANY
    if choice.second:
        differs = url.choose(
            "Show", list(view.DIFFERS), name="differs", help="By the metric that is chosen.", where=top
        )
    st.html(PHONE_STYLE)
    opened = _listing(choice, differs, more)
    if opened:
        runs = [("A", choice.first), *([("B", choice.second)] if choice.second else [])]
        samples_one.show_sample(choice.samples, runs, opened, choice.profile)


def _choose(main: Any, more: Sequence[Any]) -> _Choice | None:
    """Let the reader choose runs and metric.

    Args:
        main: where the choices stand that everybody makes.
        more: columns for those that few make.
    """
    samples = choices.sample_set(main)
    language = choices.language(samples, more[0])
    profile = choices.profile(more[1])
    label = samples.samples.removesuffix(f" {samples.digest[:12]}")
    runs = data.cached(runs_over, samples.digest, label)
    if len(samples.generators) > 1:
        generators = [view.ANY, *samples.generators]
        generator = url.choose("Generator", generators, name="generator", help=show.HELP["generator"], where=more[2])
        runs = [run for run in runs if generator in (view.ANY, run.generator)]
    first = url.choose(
        "Run A",
        runs,
        name="run",
        label_of=view.spelled,
        key_of=lambda run: run.id,
        help="The run whose samples are listed.",
        where=main,
    )
    second = url.choose(
        "Run B",
        [None, *(run for run in runs if run.id != first.id)],
        name="other",
        label_of=lambda run: view.spelled(run) if run else view.NONE,
        key_of=lambda run: run.id if run else view.NONE,
        help="A second run, to see where the two differ.",
        where=main,
    )
    run_facets = data.cached(facets, first.id)
    metrics = view.metrics(run_facets, profile)
    default = view.preferred(metrics, first.generator)
    if default is None:
        return None
    metric = url.choose(
        "Metric",
        metrics,
        name="metric",
        default=default,
        label_of=lambda metric: metric.name,
        help=show.HELP["metric"],
        where=main,
    )
    return _Choice(
        samples=samples,
        first=first,
        second=second,
        facets=run_facets,
        profile=profile,
        metric=metric,
        language=language,
    )


def _filters(choice: _Choice, differs: str, more: Any) -> tuple[SampleFilter, Order, str, Any]:
    """Let the reader filter the samples; return the filters, the order, a typed id, and the column for the page."""
    with more:
        upper, middle, lower = st.columns(4), st.columns(4), st.columns(4)
    facet = choice.facets
    words = url.text("Search", name="words", help="Part of an id, a path or a repository.", where=upper[0])
    order = url.choose("Order", list(view.ORDERS), name="order", where=upper[1])
    typed = url.text("Sample", name="sample", help="Its id: opens it, whether it fits or not.", where=upper[3])
    filters = SampleFilter(
        run=choice.first.id,
        measure=choice.metric.measure,
        words=words.strip(),
        language=choice.language,
        repo=_facet("Repository", facet.repos, "repo", middle[0]),
        level=_facet("Level", facet.levels, "level", middle[1]),
        status=_status(middle[2]),
        verdict=_facet("Verdict of tests", facet.verdicts, "verdict", lower[0]) if facet.verdicts else "",
        flag=_facet("Flag", facet.flags, "flag", lower[1]) if facet.flags else "",
        low=_bound("At least", "low", choice.metric, lower[2]),
        high=_bound("At most", "high", choice.metric, lower[3]),
        other=choice.second.id if choice.second else "",
        differs=view.DIFFERS[differs],
    )
    return filters, view.ORDERS[order], typed.strip(), upper[2]


def _facet(label: str, options: tuple[str, ...], name: str, where: object) -> str:
    picked = url.choose(label, [view.ANY, *options], name=name, where=where)
    return "" if picked == view.ANY else picked


def _status(where: object) -> Status | None:
    picked = _facet("Status", tuple(map(str, Status)), "status", where)
    return Status(picked) if picked else None


def _bound(label: str, name: str, metric: view.Metric, where: object) -> float | None:
    unit = metric.scale.unit
    return view.bound(
        url.text(f"{label} ({unit})", name=name, help=f"Of {metric.name} in A.", where=where), metric.scale
    )


def _listing(choice: _Choice, differs: str, more: Any) -> str:
    """Show a page of the samples that fit; return the sample to open, or nothing."""
    filters, order, typed, page_column = _filters(choice, differs, more)
    total = data.cached(search, filters, order=order, limit=1)[0]
    page = url.number("Page", 1, view.pages(total), name="page", default=1, where=page_column)
    _, samples = data.cached(search, filters, order=order, limit=view.PAGE, offset=(page - 1) * view.PAGE)
    is_planned = bool(typed) and data.cached(place_in_plan, choice.first.id, typed) is not None
    opened = typed if is_planned else samples[0].id if samples else ""
    if typed and not is_planned:
        show.note(f"Run A has no sample {typed}; this shows the first one that was found.")
    if not samples:
        show.empty("No sample matches these filters; remove one.", "ctxbench samples show NAME")
    if opened:
        _steps(choice, filters, opened)
    with st.container(key=_LIST):
        if samples:
            rows = view.sample_rows(samples, choice.metric, opened, compared=choice.second is not None)
            _table(rows, f"found/{hash((filters, order, page, opened))}")
            hint = view.steps_hint(compared=choice.second is not None, differing=bool(filters.differs))
            count = f"{total:,} {'sample' if total == 1 else 'samples'} found; page {page} of {view.pages(total)}."
            show.note(f"{count} {hint}")
    return opened


def _table(rows: list[dict[str, object]], key: str) -> None:
    """Show samples to choose from; cells are text, which a table never reads as markup."""

    def choose() -> None:
        selected = st.session_state[key]["selection"]["rows"]
        if selected:
            url.put("sample", str(rows[selected[0]]["sample"]))

    cells = [{name: visible(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]
    config: dict[str, Any] = {name: st.column_config.Column(help=view.HELP.get(name)) for name in rows[0]}
    config[""] = st.column_config.Column(help=view.HELP[""], width=30)
    for name, form in view.NUMBERS.items():
        config[name] = st.column_config.NumberColumn(help=view.HELP[name], format=form)
    st.dataframe(
        cells,
        hide_index=True,
        key=key,
        on_select=choose,
        selection_mode="single-row",
        column_config=config,
        height=_TALL,
        placeholder="–",
    )


def _steps(choice: _Choice, filters: SampleFilter, opened: str) -> None:
    """Show the ways to the sample before and after the open one, among those that fit the filters."""
    position = data.cached(place_in_plan, choice.first.id, opened)
    before, after = data.cached(neighbours, filters, position) if position is not None else (None, None)
    noun = "disagreement" if filters.differs else "sample"
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

"""The Cost page: a metric plotted against tokens, calls, seconds or price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import cost as view
from ctxbench.harness.leaderboard.columns import COLUMNS
from ctxbench.harness.leaderboard.curves import Blank, curves
from ctxbench.harness.leaderboard.notes import group_warnings
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Group
from ctxbench.harness.leaderboard.selection import load_of

HELP: Mapping[str, str] = {
    "point": "Number of the point in the chart, the cheapest first.",
    **{title: COLUMNS[name].help for name, title in view.COSTS.items()},
    "front": "On the Pareto front: no other ranked strategy is at least as good in both cost and value and "
    "better in one.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    group: Group
    metric: str
    cost: str
    """A key of `views.cost.COSTS`; empty if no cost is known."""


def page() -> None:
    """Show a metric against cost for a sample set, language and generator; then the metric over token budgets."""
    top, where = st.container(), show.choices()
    with where:
        choice = _choose()
    with top:
        if choice is None:
            show.no_scores()
            return
        _against(choice)
    show.notes(group_warnings(replace(choice.group, metric=choice.metric)))
    if "seconds" in choice.cost and (load := load_of([row.run for row in choice.group.rows])):
        show.note(load)
    _over_budgets(choice.group, choice.metric)


def _choose() -> _Choice | None:
    (
        set_column,
        language_column,
        profile_column,
        generator_column,
        metric_column,
        cost_column,
        after_column,
    ) = st.columns(7)
    samples = choices.sample_set(set_column)
    language = choices.language(samples, language_column)
    profile = choices.profile(profile_column)
    after = choices.newer_than(after_column)
    every = data.tables(samples.samples, language, profile=profile, after=after)
    stored = {table.run.generator for table in every}
    generators = [generator for generator in samples.generators if generator in stored]
    if not generators:
        return None
    generator = choices.choose(
        "Generator", generators, name="generator", help=show.HELP["generator"], where=generator_column
    )
    board = data.board(samples.samples, language, generator, profile=profile, after=after)
    group = next(group for group in board.groups if group.level == ALL_LEVELS)
    if not group.scales:
        return None
    metrics = sorted(group.scales, key=lambda name: (name != group.metric, name))
    metric = choices.choose("Metric", metrics, name="metric", help=show.HELP["metric"], where=metric_column)
    cost, costs = "", view.available_costs(group)
    if costs:
        cost = choices.choose(
            "Cost",
            costs,
            name="cost",
            label_of=lambda cost: view.COSTS[cost],
            key_of=str,
            help="Mean cost over the counted samples.",
            where=cost_column,
        )
    return _Choice(group=group, metric=metric, cost=cost)


def _against(choice: _Choice) -> None:
    group, metric, name = choice.group, choice.metric, choice.cost
    if not name:
        show.note("The costs of these runs are unknown, because they were recorded elsewhere.")
        return
    scale, points = group.scales[metric], view.points(group, metric, name)
    show.answer(view.headline(points, metric, scale.unit, name), group.samples, group.language, group.generator)
    show.chart(view.chart(points, metric, scale.unit, name), key="against")
    show.frame(view.rows(points, metric, name), help=HELP, key="costs")
    better = "lower is better" if scale.lower_is_better else "higher is better"
    show.note(
        f"{metric} ({scale.unit}, {better}) with its 95% interval; points are numbered as in the table. The dashed "
        "line is the Pareto front of the means. Strategies with overlapping intervals may change places."
    )
    undrawn = view.undrawn(points)
    if undrawn:
        show.note(f"Not drawn, because {view.COSTS[name]} or {metric} is unknown: {', '.join(undrawn)}.")


def _over_budgets(group: Group, metric: str) -> None:
    st.header("What a budget buys", anchor=False)
    picture = curves(group, metric=metric)
    if isinstance(picture, Blank):
        show.note(picture.why)
        return
    show.chart(view.curves_chart(picture), key="budgets")
    table = picture.table()
    heads = [head.text for head in table.heads]
    show.frame(
        [dict(zip(heads, line, strict=True)) for line in table.lines],
        help={
            head.text: head.help or f"Mean {metric} and its 95% interval at this {picture.parameter}."
            for head in table.heads
        },
        key="by-budget",
    )

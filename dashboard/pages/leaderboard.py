"""The Leaderboard page: the ranking of comparable runs, with intervals and tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import streamlit as st

from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import leaderboard as view
from ctxbench.dashboard.views import metrics
from ctxbench.harness.leaderboard import Board, Group
from ctxbench.harness.leaderboard.headline import answer, heading_of
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.leaderboard.rows import ALL_LEVELS
from ctxbench.harness.leaderboard.sections import short_names
from ctxbench.harness.leaderboard.selection import file_labelled

_INVALID = {"exclude": "left out", "include": "counted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    samples: str
    after: date | None
    board: Board
    group: Group
    invalid: data.Invalid
    more: list[str]


def page() -> None:
    """Show the comparable runs of one sample set, language and generator: result, table, choices."""
    tabs, top, where = st.container(horizontal=True), st.container(), show.choices()
    with where:
        choice = _choose(tabs)
    if choice is None:
        with top:
            show.empty(
                "No run over this sample set, in this language and by this generator, has scores of this metric "
                "profile.",
                "ctxbench run --help",
            )
        return
    group = choice.group
    with top:
        first, then = answer(group, short_names(group))
        show.answer(first, heading_of(group), then=then)
        show.tables([view.ranking(group, _links(choice), choice.more)])
    st.download_button("Save as CSV", view.csv(choice.board, group).encode("utf-8", "replace"), "leaderboard.csv")
    show.notes(notes(group, PAGE))
    for title, table, remarks in view.published(choice.board, group):
        st.header(show.plain(title[:1].upper() + title[1:]), anchor=False)
        show.tables([table])
        show.notes(remarks)


def _choose(tabs: Any) -> _Choice | None:
    set_column, metric_column, baseline_column, more_column = st.columns(4)
    profile_column, level_column, invalid_column, after_column = st.expander(
        "More choices: metric profile, level, invalid samples, newer samples"
    ).columns(4)
    samples = choices.sample_set(set_column)
    language = choices.language(samples, tabs, tabs=True)
    profile = choices.profile(profile_column)
    invalid: data.Invalid = choices.choose(
        "Invalid samples",
        ["exclude", "include"],
        name="invalid",
        label_of=_INVALID.__getitem__,
        key_of=str,
        help="Functions that tests cannot judge: the reference fails the tests, or an empty body passes them.",
        where=invalid_column,
    )
    generator = choices.choose("Generator", samples.generators, name="generator", where=tabs, tabs=True)
    after = choices.newer_than(after_column)
    where = (samples.samples, language, generator)
    tables = data.tables(*where, profile=profile, invalid=invalid, after=after)
    names = metrics(tables)
    if not names:
        return None
    metric = choices.choose("Metric", names, name="metric", help=show.HELP["metric"], where=metric_column)
    level = choices.choose("Level", view.levels(tables), name="level", help=show.HELP["level"], where=level_column)

    def rank(baseline: str | None) -> Board:
        return data.board(
            *where,
            metric=metric,
            baseline=baseline,
            by_level=True if level != "all" else None,
            profile=profile,
            invalid=invalid,
            after=after,
        )

    board = rank(None)
    usual = view.at_level(board, level).baseline
    strategies = sorted({table.run.strategy for table in file_labelled(tables)})
    baseline = choices.choose(
        "Baseline", strategies, name="baseline", default=usual, help=show.HELP["baseline"], where=baseline_column
    )
    if baseline != usual:
        board = rank(baseline)
    group = view.at_level(board, level)
    more = choices.choose_many(
        "More columns",
        view.more_columns(group),
        name="columns",
        help="Columns to add at the right of the table.",
        where=more_column,
    )
    return _Choice(samples=samples.samples, after=after, board=board, group=group, invalid=invalid, more=more)


def _links(choice: _Choice) -> dict[str, dict[str, str]]:
    group, base = choice.group, choice.group.base
    common = {"samples": choice.samples, "language": group.language, "profile": group.profile}
    common |= {"metric": group.metric, "generator": group.generator}
    level = "" if group.level == ALL_LEVELS else group.level
    # Link to Compare only if it shows the same numbers: all levels together, whole runs, no invalid samples.
    can_compare = base is not None and not level and choice.invalid == "exclude"
    links = {}
    for row in group.rows:
        other = base.run.id if base is not None and row is not base else ""
        links[row.run.id] = {"strategy": choices.link("samples", **common, run=row.run.id, other=other, level=level)}
        if can_compare and other and not row.missing:
            day = str(choice.after or "")
            links[row.run.id]["difference"] = choices.link("compare", **common, after=day, first=other, runs=row.run.id)
    return links

"""The Leaderboard page: the ranking of comparable runs, with intervals and tests. Layout only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import streamlit as st

from ctxbench.dashboard import choices, data, show
from ctxbench.dashboard.views import leaderboard as view
from ctxbench.dashboard.views import metrics
from ctxbench.dashboard.views.leaderboard import chart
from ctxbench.harness.leaderboard import Board, Group
from ctxbench.harness.leaderboard.choices import file_labelled
from ctxbench.harness.leaderboard.notes import PAGE, notes
from ctxbench.harness.leaderboard.sections import headline

_LINKS = {
    "compare": st.column_config.LinkColumn(
        "compare", help="This run beside the baseline, sample by sample.", display_text="open"
    ),
    "samples": st.column_config.LinkColumn(
        "samples", help="What the model saw and wrote in this run.", display_text="open"
    ),
}
_MARKED = {"exclude": "left out", "include": "counted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    samples: str
    after: date | None
    board: Board
    group: Group
    marked: data.Marked


def page() -> None:
    """Show one group of runs that may be ranked together: answer, picture, table, choices."""
    top, where = st.container(), show.choices()
    with where:
        choice = _choose()
    if choice is None:
        with top:
            show.empty(
                "No run of this sample set, language and generator has scores of this metric profile.",
                "ctxbench run --help",
            )
        return
    group = choice.group
    with top:
        show.answer(headline(group), group.samples, group.language, group.generator, group.level)
        drawn = chart(group)
        if drawn is not None:
            show.chart(drawn, key="intervals")
        _table(choice)
    show.notes(notes(group, PAGE))
    _published(choice)


def _table(choice: _Choice) -> None:
    group = choice.group
    lines = view.lines(group, _links(choice))
    show.frame(lines, help=view.helps(group), key="leaderboard", csv=view.csv(choice.board, group), **_LINKS)


def _choose() -> _Choice | None:
    set_column, language_column, generator_column, metric_column = st.columns(4)
    profile_column, baseline_column, level_column, marked_column, after_column = st.expander(
        "More choices: metric profile, baseline, level, marked samples, newer samples"
    ).columns(5)
    samples = choices.sample_set(set_column)
    language = choices.language(samples, language_column)
    profile = choices.profile(profile_column)
    marked: data.Marked = choices.choose(
        "Marked samples",
        ["exclude", "include"],
        name="marked",
        label_of=_MARKED.__getitem__,
        key_of=str,
        help="Samples whose answer fails their tests, or whose tests an empty body passes.",
        where=marked_column,
    )
    generator = choices.choose(
        "Generator", samples.generators, name="generator", help=show.HELP["generator"], where=generator_column
    )
    after = choices.after(after_column)
    where = (samples.samples, language, generator)
    tables = data.tables(*where, profile=profile, marked=marked, after=after)
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
            marked=marked,
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
    return _Choice(
        samples=samples.samples,
        after=after,
        board=board,
        group=view.at_level(board, level),
        marked=marked,
    )


def _links(choice: _Choice) -> dict[str, dict[str, str | None]]:
    """Return run -> heading -> the address of what stands behind its numbers; the baseline is compared with none."""
    group, base = choice.group, choice.group.base
    links: dict[str, dict[str, str | None]] = {}
    for row in group.rows:
        common = {"samples": choice.samples, "language": group.language, "profile": group.profile}
        common |= {"metric": group.metric, "generator": group.generator}
        links[row.run.id] = {
            "compare": None
            if row is base
            else choices.link(
                "compare", **common, after=str(choice.after or ""), first=base.run.id if base else "", runs=row.run.id
            ),
            "samples": choices.link("samples", **common, run=row.run.id),
        }
    return links


def _published(choice: _Choice) -> None:
    for index, table in enumerate(view.published(choice.board, choice.group)):
        st.subheader(show.plain(table.title[:1].upper() + table.title[1:]), anchor=False)
        show.frame(table.lines, help={"origin": show.HELP["origin"]}, key=f"published-{index}")
        show.notes(table.notes)

"""Table, chart and sentences of one group of the leaderboard. Pure.

Numbers are those of the board, rounded as `harness.leaderboard.numbers` does; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from ctxbench.dashboard.views import Figure
from ctxbench.harness.leaderboard import Board, Group, Row, numbers
from ctxbench.harness.leaderboard.columns import (
    COLUMNS,
    PAGE_COSTS,
    PAGE_LAST,
    PAGE_RANKING,
    PAGE_TEST,
    Column,
    heading,
    label,
    metric_column,
)
from ctxbench.harness.leaderboard.notes import PAGE
from ctxbench.harness.leaderboard.published import published_notes, published_table, published_title
from ctxbench.harness.leaderboard.render import to_csv
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, COMBINED, Standing, level_order
from ctxbench.harness.leaderboard.sections import beside
from ctxbench.harness.metrics import MADE_UP
from ctxbench.harness.results import RunTable

Line = dict[str, object]
_STATES = {
    Standing.UNBEATEN: "significantly better than another",
    Standing.BEATEN: "significantly worse than another",
    Standing.UNDECIDED: "not significantly different",
    Standing.UNRANKED: "not ranked",
}
_COLOURS = dict(zip(_STATES.values(), ("#0072B2", "#B58900", "#8A9499", "#C4CBCF"), strict=True))
_ROW = 40
_AROUND = 95
"""Pixels of the axis, and of a line of the legend, which a phone has no room for side by side."""
_LEGEND = 18
_LONGEST = 340
"""Pixels of a name; the whole one is in the hover text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The rows that a paper prints about the same benchmark."""

    title: str
    lines: tuple[Mapping[str, object], ...]
    notes: tuple[str, ...]


def levels(tables: Sequence[RunTable]) -> list[str]:
    """Return what can be ranked by itself: all samples, CoderEval's three levels together, and every level."""
    single = {level for table in tables for level in set(table.level)}
    combined = {COMBINED} if any(table.run.benchmark == "codereval" for table in tables) else set()
    return sorted({ALL_LEVELS, *combined, *single}, key=level_order) if len(single) > 1 else [ALL_LEVELS]


def at_level(board: Board, level: str) -> Group:
    """Return the group of a level; of a level that no run has, that of all samples."""
    return next((group for group in board.groups if group.level == level), board.groups[0])


def columns(group: Group) -> tuple[list[Column], list[Column]]:
    """Return the columns of a group's table before and behind its links.

    First what is measured, the ranking metric and those beside it, and what the test says; then costs and the others.
    """
    first = beside(group)
    others = [name for name in group.scales if name not in (group.metric, MADE_UP, *first)]
    return (
        [
            *(COLUMNS[key] for key in PAGE_RANKING),
            *(metric_column(group, name) for name in (group.metric, *first)),
            *(COLUMNS[key] for key in PAGE_TEST if group.all_pairs or key != "group"),
        ],
        [
            *(COLUMNS[key] for key in PAGE_COSTS),
            *(metric_column(group, name) for name in others),
            *(COLUMNS[key] for key in PAGE_LAST),
        ],
    )


def lines(group: Group, links: Mapping[str, Mapping[str, str | None]] | None = None) -> list[Line]:
    """Return a line a row: heading -> cell, a number where there is one to sort by.

    Args:
        group: whose rows.
        links: run -> heading -> address, None where there is nothing to open.
    """
    before, behind = columns(group)
    full_lines: list[Line] = []
    for row in group.rows:
        first, last = (
            {column.head(group, page=True): _cell(column, group, row) for column in part} for part in (before, behind)
        )
        full_lines.append({**first, **(links or {}).get(row.run.id, {}), **last})
    filled = {name for line in full_lines for name, cell in line.items() if cell is not None}
    always = {column.head(group, page=True) for column in (*before, *behind) if column.always}
    return [{name: cell for name, cell in line.items() if name in filled | always} for line in full_lines]


def helps(group: Group) -> dict[str, str]:
    """Return heading -> hover text."""
    return {column.head(group, page=True): column.help for part in columns(group) for column in part}


def _cell(column: Column, group: Group, row: Row) -> object:
    """Return a cell: words and counts as they are, other numbers with the digits that are justified."""
    value = column.value(group, row)
    if not isinstance(value, float):
        return value
    return Figure(column.written(group, row), value if column.exact else None)


def published(board: Board, group: Group) -> list[Published]:
    """Return the best of the papers' rows about the group's benchmark: never ranked with ours."""
    tables = []
    for listing in board.published:
        table = published_table(listing)
        headings = [head.text for head in table.heads]
        tables.append(
            Published(
                title=published_title(listing),
                lines=tuple(dict(zip(headings, line, strict=True)) for line in table.lines),
                notes=published_notes(listing, group.profile, PAGE),
            )
        )
    return tables


def csv(board: Board, group: Group) -> str:
    """Return the view as `ctxbench leaderboard --format csv` writes it: the group's rows, then the papers'."""
    return to_csv(replace(board, groups=(group,), overall=()))


def chart(group: Group) -> alt.LayerChart | alt.FacetChart | None:
    """Return the chart of the ranking metric, None if no row has a mean.

    A bar from the interval's lower to its upper end, a point at the mean, a dashed line at the baseline's mean. Colours
    say what the test says, not what the eye makes of overlapping bars.
    """
    points = [point for row in group.rows if (point := _point(group, row)) is not None]
    if not points:
        return None
    states = [state for state in _COLOURS if any(point["state"] == state for point in points)]
    base = alt.Chart(alt.InlineData(values=points))
    y = alt.Y("label:N", sort=None, axis=None)
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=states, range=[_COLOURS[state] for state in states]),
        legend=alt.Legend(orient="top", direction="vertical", symbolOpacity=1),
    )
    hover = [alt.Tooltip(f"{name}:N") for name in ("strategy", "rank", "mean", "n", "origin")]
    scale = alt.Scale(zero=False, nice=True)
    # Ending where the axis ends, a title that is longer than a phone's axis has room to its left.
    under = alt.Axis(titleAnchor="end", titleAlign="right")
    axis: dict[str, Any] = {"title": f"{heading(group, group.metric)}, 95% interval", "scale": scale, "axis": under}
    bars = base.mark_bar(height=8, opacity=0.55).encode(
        y=y, x=alt.X("low:Q", **axis), x2="high:Q", color=colour, tooltip=hover
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        y=y, x=alt.X("value:Q", **axis), color=colour, tooltip=hover
    )
    # Above their bars names leave a phone's width to the bars.
    names = base.mark_text(align="left", baseline="bottom", dy=-7, fontSize=12, limit=_LONGEST).encode(
        y=y, x=alt.value(0), text="label:N", tooltip=hover
    )
    layers: list[Any] = [bars, names, dots]
    baseline = next((point for point in points if point["baseline"]), None)
    if baseline is not None:
        line = alt.Chart(alt.InlineData(values=[{"value": baseline["value"]}]))
        layers.insert(0, line.mark_rule(strokeDash=[4, 4], color="#8A9499").encode(x=alt.X("value:Q", **axis)))
    return alt.layer(*layers).properties(height=_ROW * len(points) + _LEGEND * len(states) + _AROUND)


def _point(group: Group, row: Row) -> dict[str, Any] | None:
    value = row.metrics.get(group.metric)
    if value is None or value.mean is None:
        return None
    rank = "-" if row.rank_low is None else f"{row.rank_low}-{row.rank_high}"
    return {
        "label": label(row),
        "strategy": row.run.strategy,
        "rank": rank,
        "value": value.mean,
        "low": value.mean if value.low is None else value.low,
        "high": value.mean if value.high is None else value.high,
        "mean": numbers.interval(value.mean, value.low, value.high),
        "n": row.n,
        "origin": str(row.run.origin),
        "state": _STATES[row.standing],
        "baseline": row is group.base,
    }

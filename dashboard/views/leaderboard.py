"""Tables of a board with drawn intervals, for the Leaderboard page and the report. All texts are escaped."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from ctxbench.bench.escaping import visible
from ctxbench.harness.leaderboard import Board, Group, Row, scales
from ctxbench.harness.leaderboard.columns import (
    COLUMNS,
    INTERVAL,
    INTERVAL_HELP,
    ColumnHead,
    TextTable,
    secondary_metrics,
)
from ctxbench.harness.leaderboard.notes import PAGE
from ctxbench.harness.leaderboard.published import published_notes, published_table, published_title
from ctxbench.harness.leaderboard.render import to_csv
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, COMBINED, Standing, level_order
from ctxbench.harness.leaderboard.sections import screen_table, short_names
from ctxbench.harness.results import RunTable

_MARGIN, _WIDTH = 3, 94
"""Start and width of the axis, in percent of a bar's cell."""
_AIR = 0.04
_TICKS = 4
Interval: TypeAlias = tuple[float, float | None, float | None]
"""Mean, low, high in the displayed unit; low and high are None without an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A round number on the axis, and its position in percent of the cell."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Positions of a mean and its interval, in percent of the cell. Without an interval, both ends are at the mean."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The common axis of a table's bars."""

    least: float
    most: float

    @classmethod
    def of(cls, intervals: Sequence[Interval]) -> Axis | None:
        """Return the axis over all intervals; None without intervals. The axis need not start at zero."""
        ends = [end for interval in intervals for end in interval if end is not None]
        if not ends:
            return None
        air = (max(ends) - min(ends)) * _AIR or max(abs(max(ends)) * _AIR, 0.5)
        return cls(least=min(ends) - air, most=max(ends) + air)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Round numbers within the axis: multiples of 1, 2 or 5 times a power of ten."""
        for parts in (_TICKS, 2 * _TICKS):
            step = scales.round_step((self.most - self.least) / parts)
            multiples = range(math.ceil(self.least / step), math.floor(self.most / step) + 1)
            if len(multiples) > 1:
                break
        return tuple(Tick(x=self.place(multiple * step), label=f"{multiple * step:.12g}") for multiple in multiples)

    def place(self, value: float) -> float:
        """Return the position of a value on the axis, in percent of the cell, rounded to 0.1."""
        return round(_MARGIN + (value - self.least) / (self.most - self.least) * _WIDTH, 1)

    def bar(self, interval: Interval) -> Bar:
        """Return the positions of a mean and its interval. If only one end is unknown, it is at the cell's edge."""
        mean, low, high = interval
        at = self.place(mean)
        is_none = low is None and high is None
        return Bar(
            mean=at,
            low=self.place(low) if low is not None else at if is_none else 0.0,
            high=self.place(high) if high is not None else at if is_none else 100.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The drawn intervals of a table."""

    at: int
    axis: Axis
    bars: tuple[Bar | None, ...]
    """Bar of each row; None for an empty cell."""
    base: float | None
    help: str = INTERVAL_HELP


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTable:
    """A table with a caption for screen readers, and its drawn intervals."""

    caption: str
    heads: tuple[ColumnHead, ...]
    lines: Sequence[Sequence[str]]
    standings: tuple[Standing, ...]
    """Standing of each row, used as its CSS class. Published rows look like beaten rows."""
    drawn: Bars | None = None
    links: tuple[Mapping[str, str], ...] = ()
    """URLs of each row's cells, by heading."""
    whole: tuple[str, ...] = ()
    """Small text below the name of each row, such as its full name; empty for none."""
    folded: tuple[Sequence[tuple[str, str]], ...] = ()
    """For each row: text and URL of each row that it replaces, folded below its name."""

    @classmethod
    def of(cls, table: TextTable, rows: Sequence[Row] = (), caption: str = "") -> DrawnTable:
        """Return a table of a group's rows, or of published rows, without bars."""
        standings = tuple(row.standing for row in rows) or (Standing.BEATEN,) * len(table.lines)
        return cls(caption=caption or table.caption, heads=table.heads, lines=table.lines, standings=standings)

    def with_bars(self, intervals: Sequence[Interval | None], base: float | None) -> DrawnTable:
        """Return the table with intervals and a line at `base` drawn after the column of intervals, if there is one."""
        known = [interval for interval in intervals if interval is not None]
        axis = Axis.of([*known, *([] if base is None or not known else [(base, None, None)])])
        at = next((index for index, head in enumerate(self.heads) if head.text.endswith(INTERVAL)), None)
        if axis is None or at is None:
            return self
        bars = tuple(None if interval is None else axis.bar(interval) for interval in intervals)
        drawn = Bars(at=at, axis=axis, bars=bars, base=None if base is None else axis.place(base))
        return replace(self, drawn=drawn)

    def of_group(self, group: Group) -> DrawnTable:
        """Return the table with drawn intervals of the group's ranking metric, and a line at the baseline's mean."""

        def interval(row: Row | None) -> Interval | None:
            value = row.metrics.get(group.metric) if row else None
            return None if value is None or value.mean is None else (value.mean, value.low, value.high)

        base = interval(group.base)
        return self.with_bars([interval(row) for row in group.rows], base[0] if base else None)


@functools.cache
def environment() -> Environment:
    """Return the template environment, which escapes every text."""
    return Environment(
        loader=PackageLoader("ctxbench.dashboard", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )


def style() -> str:
    """Return the CSS of drawn tables."""
    return files("ctxbench.dashboard").joinpath("table.css").read_text(encoding="utf-8")


def markup(table: DrawnTable) -> str:
    """Return a table as HTML, without its style sheet. Equal tables produce equal texts."""
    module = environment().get_template("table.html").module
    return str(module.drawn_table(table))  # type: ignore[attr-defined]


def ranking(group: Group, links: Mapping[str, Mapping[str, str]], more: Sequence[str] = ()) -> DrawnTable:
    """Return the Leaderboard page's table of a group. `links`: run id -> column -> URL; `more`: additional columns."""
    text = screen_table(group, more, page=True)
    difference = next((head.text for head in text.heads if head.text.startswith("vs ")), "")
    heading_of = {"strategy": "strategy", "difference": difference}
    table = DrawnTable.of(text, group.rows, f"Ranked by {group.metric}, best first")
    rows = list(zip(group.rows, short_names(group), strict=True))
    return replace(
        table.of_group(group),
        links=tuple(
            {heading_of[key]: address for key, address in links.get(row.run.id, {}).items()} for row in group.rows
        ),
        whole=tuple(_whole(row.run.strategy, name) for row, name in rows),
    )


def _whole(strategy: str, name: str) -> str:
    is_all = name.endswith(strategy.partition("(")[0].rpartition(".")[2] + "".join(strategy.partition("(")[1:]))
    return "" if is_all or strategy.replace("(name=", "(") in name else strategy


def more_columns(group: Group) -> list[str]:
    """Return the columns and metrics that the reader can add to the Leaderboard page's table."""
    usual = {"metric", "difference", "context_tokens", *(head.text for head in screen_table(group, page=True).heads)}
    keys = [key for key, column in COLUMNS.items() if column.heading and not {key, column.head(group)} & usual]
    keys = [key for key in keys if any(COLUMNS[key].value(group, row) not in (None, "") for row in group.rows)]
    return [*keys, *(name for name in group.scales if name not in (group.metric, *secondary_metrics(group)))]


def levels(tables: Sequence[RunTable]) -> list[str]:
    """Return the levels to rank: all samples; with several levels, also each, and for CoderEval the averaged three."""
    single = {level for table in tables for level in set(table.level)}
    combined = {COMBINED} if any(table.run.benchmark == "codereval" for table in tables) else set()
    return sorted({ALL_LEVELS, *combined, *single}, key=level_order) if len(single) > 1 else [ALL_LEVELS]


def at_level(board: Board, level: str) -> Group:
    """Return the group of a level, or of all samples if no run has that level."""
    return next((group for group in board.groups if group.level == level), board.groups[0])


def published(board: Board, group: Group) -> list[tuple[str, DrawnTable, tuple[str, ...]]]:
    """Return the title, table and notes of each table of published results on the board."""
    return [
        (published_title(of), DrawnTable.of(published_table(of)), published_notes(of, group.profile, PAGE))
        for of in board.published
    ]


def csv(board: Board, group: Group) -> str:
    """Return the group's rows, then published rows, as CSV like `ctxbench leaderboard --format csv`."""
    return to_csv(replace(board, groups=(group,), overall=()))

"""What stands in a report: a board and how its runs were made, as frozen texts and places. Pure.

Every text may come from a model, a repository or a person's own names; `page` alone decides how it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctxbench.dashboard.report.bars import Axis, Bar, axis
from ctxbench.dashboard.report.terms import TERMS, meaning
from ctxbench.harness.leaderboard.rows import Board, Group, Row
from ctxbench.harness.leaderboard.sections import BoardSection, sections, title
from ctxbench.harness.repeat import command
from ctxbench.harness.store.work import RunWork

_LEFT = ("strategy", "tier", "generator", "origin")
_METRIC = "[95%]"
_SHOWN = 12
"""Digits of a digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The head of a column."""

    text: str
    help: str
    left: bool
    """Whether it holds words rather than numbers."""
    axis: Axis | None = None
    """Of a column of bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One field of a table: text, or a bar."""

    text: str = ""
    left: bool = False
    head: bool = False
    """Whether it names its line."""
    drawn: bool = False
    bar: Bar | None = None
    """None where a drawn field has nothing to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table."""

    cells: tuple[Cell, ...]
    first: bool
    """Whether it is of a first tier that others are told apart from."""
    ranked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with what it shows in words, for those who do not see it."""

    caption: str
    headings: tuple[Heading, ...]
    lines: tuple[Line, ...]
    base: float | None = None
    """Where the baseline's mean stands among the bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How one row was made."""

    strategy: str
    run: str
    facts: tuple[tuple[str, str], ...]
    command: str
    """What makes it again; empty if the store does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One group, or the published rows of one benchmark."""

    title: str
    lead: str
    """Who is in front, in a sentence; empty of published rows."""
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    made: tuple[Made, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole file."""

    title: str
    dated: str
    parts: tuple[Part, ...]
    terms: tuple[tuple[str, str], ...]


def report(board: Board, works: Mapping[str, RunWork], *, full: bool = False) -> Report:
    """Describe a board.

    Args:
        board: what to show.
        works: id of a run -> how it was made.
        full: give the levels of CoderEval groups of their own.
    """
    groups = {title(group): group for group in board.groups}
    parts = tuple(_part(section, groups.get(section.title), works) for section in sections(board, full=full))
    names = list(dict.fromkeys(group.samples for group in board.groups))
    return Report(
        title=f"Leaderboard: {', '.join(names)}" if names else "Leaderboard",
        dated=_dated([works[row.run.id] for row in board.rows if row.run.id in works]),
        parts=parts,
        terms=tuple((_named(name), text) for name, text in TERMS.items()),
    )


def _named(term: str) -> str:
    return {"[95%]": "mean [95%]", "to": "to (a strategy)"}.get(term, term)


def _dated(works: Sequence[RunWork]) -> str:
    """Say when the newest run was made: reports of one database are the same whenever they are written."""
    times = [each.ended or each.started for one in works for each in one.attempts]
    return _time(max(times)) if times else ""


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _part(section: BoardSection, group: Group | None, works: Mapping[str, RunWork]) -> Part:
    rows: tuple[Row | None, ...] = group.rows if group else ()
    metrics = {scale.heading(name): scale.help for name, scale in group.scales.items()} if group else {}
    first = _first(group) if group else []
    tables = []
    for number, (headings, lines) in enumerate(section.tables):
        caption = _caption(section, group, number, headings)
        shown = rows or (None,) * len(lines)
        table = Table(
            caption=caption,
            headings=tuple(Heading(text=one, help=meaning(one, metrics), left=one in _LEFT) for one in headings),
            lines=tuple(_line(headings, cells, row, first) for cells, row in zip(lines, shown, strict=True)),
        )
        tables.append(_with_bars(table, group) if group and number == 0 else table)
    return Part(
        title=section.title,
        lead=_lead(group) if group else "",
        tables=tuple(tables),
        notes=section.notes,
        made=tuple(_made(row, works.get(row.run.id)) for row in (group.rows if group else ())),
    )


def _caption(section: BoardSection, group: Group | None, number: int, headings: Sequence[str]) -> str:
    if group is None:
        return f"{section.title}, as printed"
    if number == 0:
        return f"Ranked by {group.metric}, best first"
    return "Other metrics and costs" if "calls" in headings else f"{group.metric} by level"


def _lead(group: Group) -> str:
    """Say who leads, and that it is more than one where the test says no more."""
    first = [row.run.strategy for row in _first(group)]
    if first:
        return f"First tier: {', '.join(first)}."
    ranked = sum(row.rank_low is not None for row in group.rows)
    return "No strategy is told apart from all others: all of them share the first tier." if ranked > 1 else ""


def _first(group: Group) -> list[Row]:
    """Return the rows of the first tier, or none where all rows share it."""
    ranked = [row for row in group.rows if row.rank_low is not None]
    first = [row for row in ranked if "a" in row.tier]
    return first if len(first) < len(ranked) else []


def _line(headings: Sequence[str], cells: Sequence[str], row: Row | None, first: Sequence[Row]) -> Line:
    return Line(
        cells=tuple(
            Cell(text=text, left=heading in _LEFT, head=heading == "strategy")
            for heading, text in zip(headings, cells, strict=True)
        ),
        first=row in first,
        ranked=row is None or row.rank_low is not None,
    )


def _with_bars(table: Table, group: Group) -> Table:
    """Return the table of a ranking with a column of bars before that of the metric."""
    found = [row.metrics.get(group.metric) for row in group.rows]
    shown = [None if one is None or one.mean is None else (one.mean, one.low, one.high) for one in found]
    scale = axis([one for one in shown if one is not None])
    at = next((index for index, one in enumerate(table.headings) if one.text.endswith(_METRIC)), None)
    if scale is None or at is None:
        return table
    head = Heading(text="interval", help=TERMS[_METRIC], left=True, axis=scale)
    lines = []
    for line, interval in zip(table.lines, shown, strict=True):
        drawn = Cell(drawn=True, bar=None if interval is None else scale.bar(interval))
        lines.append(Line(cells=(*line.cells[:at], drawn, *line.cells[at:]), first=line.first, ranked=line.ranked))
    base = [one for one, row in zip(shown, group.rows, strict=True) if one and row.run.strategy == group.baseline]
    return Table(
        caption=table.caption,
        headings=(*table.headings[:at], head, *table.headings[at:]),
        lines=tuple(lines),
        base=scale.place(base[0][0]) if base else None,
    )


def _made(row: Row, work: RunWork | None) -> Made:
    run = row.run
    facts = [("run", run.id), ("origin", str(run.origin)), ("sample set", f"{run.samples} ({run.samples_digest})")]
    if work is None:
        return Made(strategy=run.strategy, run=run.id, facts=tuple(facts), command="")
    facts += [(f"version of {name}" if name != "ctxbench" else name, text) for name, text in work.versions.items()]
    facts += [("completions a sample", str(run.completions)), ("seed", str(work.choices.seed))]
    facts += [("decoding", run.sampling)] if run.sampling else []
    if work.imported is not None:
        facts += [("imported from", work.imported.source), ("SHA-256 of that file", work.imported.sha256)]
    if work.attempts:
        last = work.attempts[-1]
        facts += [("last attempt", f"{_time(last.started)}: {last.reason or 'no end noted'}; {last.isolation}")]
    return Made(strategy=run.strategy, run=run.id, facts=tuple(facts), command=command(work.choices, work.file))

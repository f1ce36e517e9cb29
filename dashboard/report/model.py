"""The contents of a report: a board and the origin of its runs, as frozen texts and positions. Pure.

Every text may come from a model, a repository or a person's own names; `page` alone decides how it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ctxbench.dashboard.report.bars import Axis, Bar, axis
from ctxbench.harness.leaderboard.rows import Board, Group, Row
from ctxbench.harness.leaderboard.sections import TEXT_COLUMNS, BoardSection, title
from ctxbench.harness.leaderboard.sections import sections as board_sections
from ctxbench.harness.run.spec import repeat_command
from ctxbench.harness.store.work import RunWork

_METRIC = "[95%]"
TERMS = {
    "rank": "The ranks that significant differences leave open: 1-3 means that any of the three is possible.",
    "tier": "Letters: two rows that share one are not told apart at 5%, after correction for all pairs.",
    "strategy": "What decides which parts of the repository the model is shown.",
    "n": "Samples that count: scored, or without a usable answer, which counts as the worst value.",
    "unscored": "Samples that the machine failed: missing, never counted as 0.",
    "marked": "Samples left out because their own tests cannot judge them.",
    "[95%]": "The mean over samples and its 95% interval, over repositories where there are at least five.",
    "by repo": "The mean of the repositories' means: every repository weighs the same.",
    "to": "The paired difference to the baseline on the samples that both completed, with its 95% interval.",
    "p": "How often chance alone would give such a difference, corrected for the pairs shown; a star: below 5%.",
    "tokens": "Mean number of tokens of the final prompt's context.",
    "calls": "Mean number of calls of the model for a sample.",
    "seconds": "Mean seconds a sample: the strategy's work and the model's answers.",
    "US$": "Mean price of a sample in US dollars; a dash where the model's price is not known.",
}
"""Heading, or its beginning or end, -> what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The head of a column."""

    text: str
    help: str
    is_text: bool
    """Whether it holds words rather than numbers."""
    axis: Axis | None = None
    """Of a column of bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCell:
    """One field of a table: text, or a bar."""

    text: str = ""
    is_text: bool = False
    head: bool = False
    """Whether it names its line."""
    drawn: bool = False
    bar: Bar | None = None
    """None where a drawn field has nothing to draw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One row of a table."""

    cells: tuple[ReportCell, ...]
    first: bool
    """Whether it is of a first tier that others are told apart from."""
    ranked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table with what it shows in words, for those who do not see it."""

    caption: str
    headings: tuple[Heading, ...]
    rows: tuple[ReportRow, ...]
    base: float | None = None
    """Where the baseline's mean stands among the bars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """How one row was made."""

    strategy: str
    run: str
    facts: tuple[tuple[str, str], ...]
    command: str
    """What makes it again; empty if the store does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """One group, or the published rows of one benchmark."""

    title: str
    lead: str
    """Who is in front, in a sentence; empty of published rows."""
    tables: tuple[ReportTable, ...]
    notes: tuple[str, ...]
    origins: tuple[RowOrigin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The whole file."""

    title: str
    dated: str
    sections: tuple[ReportSection, ...]
    terms: tuple[tuple[str, str], ...]


def report(board: Board, works: Mapping[str, RunWork], *, full: bool = False) -> Report:
    """Describe a board.

    Args:
        board: what to show.
        works: id of a run -> how it was made.
        full: give the levels of CoderEval groups of their own.
    """
    groups = {title(group): group for group in board.groups}
    sections = tuple(
        _section(section, groups.get(section.title), works) for section in board_sections(board, full=full)
    )
    names = list(dict.fromkeys(group.samples for group in board.groups))
    return Report(
        title=f"Leaderboard: {', '.join(names)}" if names else "Leaderboard",
        dated=_dated([works[row.run.id] for row in board.rows if row.run.id in works]),
        sections=tuple(sections),
        terms=tuple((_named(name), text) for name, text in TERMS.items()),
    )


def _named(term: str) -> str:
    return {"[95%]": "mean [95%]", "to": "to (a strategy)"}.get(term, term)


def _dated(works: Sequence[RunWork]) -> str:
    """Say when the newest run was made: reports of one database are the same whenever they are written."""
    times = [attempt.ended or attempt.started for work in works for attempt in work.attempts]
    return _time(max(times)) if times else ""


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _section(section: BoardSection, group: Group | None, works: Mapping[str, RunWork]) -> ReportSection:
    rows: tuple[Row | None, ...] = group.rows if group else ()
    metrics = {scale.heading(name): scale.help for name, scale in group.scales.items()} if group else {}
    first = _first(group) if group else []
    tables = []
    for number, (headings, lines) in enumerate(section.tables):
        caption = _caption(section, group, number, headings)
        board_rows = rows or (None,) * len(lines)
        table = ReportTable(
            caption=caption,
            headings=tuple(
                Heading(text=heading, help=meaning(heading, metrics), is_text=heading in TEXT_COLUMNS)
                for heading in headings
            ),
            rows=tuple(_row(headings, cells, row, first) for cells, row in zip(lines, board_rows, strict=True)),
        )
        tables.append(_with_bars(table, group) if group and number == 0 else table)
    return ReportSection(
        title=section.title,
        lead=_lead(group) if group else "",
        tables=tuple(tables),
        notes=section.notes,
        origins=tuple(_origin(row, works.get(row.run.id)) for row in (group.rows if group else ())),
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


def _row(headings: Sequence[str], cells: Sequence[str], row: Row | None, first: Sequence[Row]) -> ReportRow:
    return ReportRow(
        cells=tuple(
            ReportCell(text=text, is_text=heading in TEXT_COLUMNS, head=heading == "strategy")
            for heading, text in zip(headings, cells, strict=True)
        ),
        first=row in first,
        ranked=row is None or row.rank_low is not None,
    )


def _with_bars(table: ReportTable, group: Group) -> ReportTable:
    """Return the table of a ranking with a column of bars before that of the metric."""
    values = [row.metrics.get(group.metric) for row in group.rows]
    intervals = [
        None if value is None or value.mean is None else (value.mean, value.low, value.high) for value in values
    ]
    scale = axis([interval for interval in intervals if interval is not None])
    at = next((index for index, heading in enumerate(table.headings) if heading.text.endswith(_METRIC)), None)
    if scale is None or at is None:
        return table
    head = Heading(text="interval", help=TERMS[_METRIC], is_text=True, axis=scale)
    lines = []
    for line, interval in zip(table.rows, intervals, strict=True):
        drawn = ReportCell(drawn=True, bar=None if interval is None else scale.bar(interval))
        lines.append(ReportRow(cells=(*line.cells[:at], drawn, *line.cells[at:]), first=line.first, ranked=line.ranked))
    base = [
        interval
        for interval, row in zip(intervals, group.rows, strict=True)
        if interval and row.run.strategy == group.baseline
    ]
    return ReportTable(
        caption=table.caption,
        headings=(*table.headings[:at], head, *table.headings[at:]),
        rows=tuple(lines),
        base=scale.place(base[0][0]) if base else None,
    )


def _origin(row: Row, work: RunWork | None) -> RowOrigin:
    run = row.run
    facts = [("run", run.id), ("origin", str(run.origin)), ("sample set", f"{run.samples} ({run.samples_digest})")]
    if work is None:
        return RowOrigin(strategy=run.strategy, run=run.id, facts=tuple(facts), command="")
    facts += [(f"version of {name}" if name != "ctxbench" else name, text) for name, text in work.versions.items()]
    facts += [("completions a sample", str(run.completions)), ("seed", str(work.choices.seed))]
    facts += [("decoding", run.sampling)] if run.sampling else []
    if work.imported is not None:
        facts += [("imported from", work.imported.source), ("SHA-256 of that file", work.imported.sha256)]
    if work.attempts:
        last = work.attempts[-1]
        facts += [("last attempt", f"{_time(last.started)}: {last.reason or 'no end noted'}; {last.isolation}")]
    return RowOrigin(
        strategy=run.strategy, run=run.id, facts=tuple(facts), command=repeat_command(work.choices, work.file)
    )


def meaning(heading: str, metrics: Mapping[str, str]) -> str:
    """Return what a heading means, or nothing where it is a level's own name.

    Args:
        heading: as it is shown.
        metrics: heading of a metric, with its unit -> what its declaration says of it.
    """
    if heading in TERMS:
        return TERMS[heading]
    if heading.endswith("[95%]"):
        return " ".join(filter(None, (metrics.get(heading.removesuffix(" [95%]")), TERMS["[95%]"])))
    first = heading.partition(" ")[0]
    return TERMS["to"] if first == "to" else ""

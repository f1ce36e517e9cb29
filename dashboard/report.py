"""The leaderboard as one self-contained HTML file: everything escaped, nothing loaded, no script.

`report` describes a board and the origin of its runs as frozen texts and positions; every text may come from a model, a
repository or a person's own names, and `html` alone decides how it is written.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.columns import INTERVAL, INTERVAL_HELP, ColumnHead, TextTable, glossary
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Board, Group, Row, Standing
from ctxbench.harness.leaderboard.sections import BoardSection, Curves, curves, headline, title
from ctxbench.harness.leaderboard.sections import sections as board_sections
from ctxbench.harness.results import RunInfo
from ctxbench.harness.run.spec import repeat_command
from ctxbench.harness.store.work import RunWork

WIDTH = 240
"""Of the axis, in the drawing's own unit."""
_MARGIN = 8
_AIR = 0.04
_TICKS = 4
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that HTML does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A round number and its place."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One interval's places; without an interval both ends are the mean's."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What all bars of one group share."""

    least: float
    most: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Return where a value stands, to a tenth of the drawing's unit."""
        return _place(value, self.least, self.most)

    def bar(self, interval: Interval) -> Bar:
        """Return where an interval stands."""
        mean, low, high = interval
        ends = (mean if low is None else low, mean if high is None else high)
        return Bar(mean=self.place(mean), low=self.place(ends[0]), high=self.place(ends[1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """The drawn column of a table."""

    at: int
    """The column that it stands before."""
    axis: Axis
    bars: tuple[Bar | None, ...]
    """Of each row; None where there is nothing to draw."""
    base: float | None
    """Where the baseline's mean stands among them."""
    help: str = INTERVAL_HELP


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table with what it shows in words, for those who do not see it."""

    caption: str
    heads: tuple[ColumnHead, ...]
    lines: list[list[str]]
    standings: tuple[Standing, ...]
    """Of each row its class in the style sheet; published rows look as those that others beat."""
    drawn: Bars | None = None


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
        dated=_dated([works[id_] for row in board.rows for id_ in row.run.ids if id_ in works]),
        sections=tuple(sections),
        terms=glossary(),
    )


def html(report: Report) -> str:
    """Return the file's text; equal reports give equal texts."""
    css = files("ctxbench.dashboard").joinpath("report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode("utf-8")).digest()).decode("ascii")
    environment = Environment(
        loader=PackageLoader("ctxbench.dashboard", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    template = environment.get_template("report.html")
    # Our own style sheet is the only text that is not escaped; its digest is all that the page allows.
    return template.render(report=report, css=Markup(css), style=digest, width=WIDTH)  # noqa: S704 - not from data


def _printable(value: object) -> object:
    return _UNPRINTABLE.sub("\ufffd", value) if type(value) is str else value


Interval = tuple[float, float | None, float | None]
"""Mean, low, high in the unit shown; no interval where the two are None."""


def axis(intervals: Sequence[Interval]) -> Axis | None:
    """Return the axis that holds all intervals, and None if there is none. It need not begin at zero: it has ticks."""
    ends = [end for interval in intervals for end in interval if end is not None]
    if not ends:
        return None
    least, most = min(ends), max(ends)
    air = (most - least) * _AIR or max(abs(most) * _AIR, 0.5)
    least, most = least - air, most + air
    return Axis(least=least, most=most, ticks=_ticks(least, most))


def _place(value: float, least: float, most: float) -> float:
    return round(_MARGIN + (value - least) / (most - least) * (WIDTH - 2 * _MARGIN), 1)


def _ticks(least: float, most: float) -> tuple[Tick, ...]:
    """Return round numbers within the axis: multiples of 1, 2 or 5 times a power of ten."""
    step = numbers.round_step((most - least) / _TICKS)
    multiples = range(math.ceil(least / step), math.floor(most / step) + 1)
    return tuple(Tick(x=_place(multiple * step, least, most), label=f"{multiple * step:.6g}") for multiple in multiples)


def _dated(works: Sequence[RunWork]) -> str:
    """Say when the newest run was made: reports of one database are the same whenever they are written."""
    times = [attempt.ended or attempt.started for work in works for attempt in work.attempts]
    return _time(max(times)) if times else ""


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _section(section: BoardSection, group: Group | None, works: Mapping[str, RunWork]) -> ReportSection:
    rows = group.rows if group else ()
    tables = [_table(table.caption or f"{section.title}, as printed", table, rows) for table in section.tables]
    if group is not None:
        tables = [_with_bars(tables[0], group), *tables[1:], *_budgets(group)]
    return ReportSection(
        title=section.title,
        lead=headline(group) if group else "",
        tables=tuple(tables),
        notes=section.notes,
        origins=tuple(_origin(row.run, id_, works.get(id_)) for row in rows for id_ in row.run.ids),
    )


def _budgets(group: Group) -> list[ReportTable]:
    """Return the table of what a budget buys, if runs differ in nothing else; of a level its ranking says enough."""
    over = curves(group) if group.level == ALL_LEVELS else None
    if not isinstance(over, Curves):
        return []
    return [_table(f"{over.title}, with 95% intervals", over.table(), ())]


def _table(caption: str, table: TextTable, rows: Sequence[Row]) -> ReportTable:
    standings = tuple(row.standing for row in rows) or (Standing.BEATEN,) * len(table.lines)
    return ReportTable(caption=caption, heads=table.heads, lines=table.lines, standings=standings)


def _with_bars(table: ReportTable, group: Group) -> ReportTable:
    values = [row.metrics.get(group.metric) for row in group.rows]
    intervals = [
        None if value is None or value.mean is None else (value.mean, value.low, value.high) for value in values
    ]
    scale = axis([interval for interval in intervals if interval is not None])
    at = next((index for index, head in enumerate(table.heads) if head.text.endswith(INTERVAL)), None)
    if scale is None or at is None:
        return table
    base = [interval for interval, row in zip(intervals, group.rows, strict=True) if interval and row is group.base]
    drawn = Bars(
        at=at,
        axis=scale,
        bars=tuple(None if interval is None else scale.bar(interval) for interval in intervals),
        base=scale.place(base[0][0]) if base else None,
    )
    return replace(table, drawn=drawn)


def _origin(run: RunInfo, id_: str, work: RunWork | None) -> RowOrigin:
    facts = [("run", id_), ("origin", str(run.origin)), ("sample set", f"{run.samples} ({run.samples_digest})")]
    if work is None:
        return RowOrigin(strategy=run.strategy, run=id_, facts=tuple(facts), command="")
    facts += [(f"version of {name}" if name != "ctxbench" else name, text) for name, text in work.versions.items()]
    facts += [("completions a sample", str(run.completions)), ("seed", str(work.choices.seed))]
    facts += [("decoding", work.choices.sampling)] if run.sampling else []
    if work.imported is not None:
        facts += [("imported from", work.imported.source), ("SHA-256 of that file", work.imported.sha256)]
    if work.attempts:
        last = work.attempts[-1]
        facts += [("last attempt", f"{_time(last.started)}: {last.reason or 'no end noted'}; {last.isolation}")]
    return RowOrigin(
        strategy=run.strategy, run=id_, facts=tuple(facts), command=repeat_command(work.choices, work.file)
    )

"""Formats the leaderboard as one self-contained HTML file, with all texts escaped and no scripts or external files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup

from ctxbench.dashboard.views.leaderboard import DrawnTable, environment
from ctxbench.dashboard.views.runs import when
from ctxbench.harness.leaderboard.columns import glossary
from ctxbench.harness.leaderboard.curves import Curves, curves
from ctxbench.harness.leaderboard.headline import headline
from ctxbench.harness.leaderboard.rows import ALL_LEVELS, Board, Group
from ctxbench.harness.leaderboard.sections import BoardSection
from ctxbench.harness.leaderboard.sections import sections as board_sections
from ctxbench.harness.results import RunInfo
from ctxbench.harness.run.spec import sampling_key
from ctxbench.harness.store.work import RunWork


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOrigin:
    """A run that a row shows, and the command that repeats the run."""

    strategy: str
    run: str
    facts: tuple[tuple[str, str], ...]
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section of the report: comparable runs, or the results that papers published for a benchmark."""

    title: str
    lead: str
    """A sentence about the leader; empty for published results."""
    tables: tuple[DrawnTable, ...]
    notes: tuple[str, ...]
    origins: tuple[RowOrigin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content of the report file."""

    title: str
    dated: str
    sections: tuple[ReportSection, ...]
    terms: tuple[tuple[str, str], ...]


def report(board: Board, works: Mapping[str, RunWork], *, full: bool = False) -> Report:
    """Return the content of a report on a board. `works` contains the settings and attempts of the runs, by run id."""
    names = list(dict.fromkeys(group.samples for group in board.groups))
    return Report(
        title=f"Leaderboard: {', '.join(names)}" if names else "Leaderboard",
        dated=_dated([works[id_] for row in board.rows for id_ in row.run.ids if id_ in works]),
        sections=tuple(section(part, works) for part in board_sections(board, full=full)),
        terms=glossary(),
    )


def html(report: Report) -> str:
    """Return the report as HTML. Equal reports produce equal HTML."""
    return page("report.html", title=report.title, report=report)


def page(template: str, *, css: str = "", script: str = "", **values: object) -> str:
    """Return an HTML page. Its security policy allows only the page's own styles and script.

    Args:
        template: name of the template.
        css: file with additional style.
        script: file of the page's script; empty for none.
    """
    own = files("ctxbench.dashboard")
    sheet, code = (
        "".join(own.joinpath(name).read_text(encoding="utf-8") for name in names if name)
        for names in (("report.css", "table.css", css), (script,))
    )
    digests = {
        name: base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
        for name, text in (("style", sheet), ("script_digest", code))
    }
    # Only our own style and script are not escaped.
    marked = {"css": Markup(sheet), "script": Markup(code)}  # noqa: S704
    return environment().get_template(template).render(**marked, **digests, **values)


def _dated(works: Sequence[RunWork]) -> str:
    """Return the time of the newest run, so that reports of the same runs are equal whenever they are written."""
    times = [attempt.ended or attempt.started for work in works for attempt in work.attempts]
    return f"{when(max(times))} UTC" if times else ""


def section(part: BoardSection, works: Mapping[str, RunWork]) -> ReportSection:
    """Return a section of the report. `works` contains the settings and attempts of the runs, by run id."""
    group = part.group
    rows = group.rows if group else ()
    tables = [DrawnTable.of(of, rows, of.caption or f"{part.title}, as printed") for of in part.tables]
    if group is not None:
        tables = [tables[0].of_group(group), *tables[1:], *_budgets(group)]
    return ReportSection(
        title=part.title,
        lead=headline(group) if group else "",
        tables=tuple(tables),
        notes=part.notes,
        origins=tuple(_origin(row.run, id_, works.get(id_)) for row in rows for id_ in row.run.ids),
    )


def _budgets(group: Group) -> list[DrawnTable]:
    over = curves(group) if group.level == ALL_LEVELS else None
    if not isinstance(over, Curves):
        return []
    return [DrawnTable.of(over.table(), (), f"{over.title}, with 95% intervals")]


def _origin(run: RunInfo, id_: str, work: RunWork | None) -> RowOrigin:
    facts = [("run", id_), ("origin", str(run.origin)), ("sample set", f"{run.samples} ({run.samples_digest})")]
    if work is None:
        return RowOrigin(strategy=run.strategy, run=id_, facts=tuple(facts), command="")
    versions = work.choices.versions
    facts += [(f"version of {name}" if name != "ctxbench" else name, text) for name, text in versions.items()]
    facts += [("completions per sample", str(run.completions)), ("seed", str(work.choices.seed))]
    facts += [("decoding", sampling_key(work.choices.sampling))] if run.sampling else []
    if work.imported is not None:
        facts += [("imported from", work.imported.source), ("SHA-256 of the file", work.imported.sha256)]
    if work.attempts:
        last = work.attempts[-1]
        facts += [("last attempt", f"{when(last.started)} UTC: {last.reason or 'no end recorded'}; {last.isolation}")]
    return RowOrigin(strategy=run.strategy, run=id_, facts=tuple(facts), command=work.repeat_command())

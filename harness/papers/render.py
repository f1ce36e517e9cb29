"""A paper's table with ours beside it, as text, markdown and JSON. Pure: returns text."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ctxbench.bench.visible import markdown as plain_markdown
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.papers.beside import Cell, Ours, overall
from ctxbench.harness.papers.notes import notes
from ctxbench.harness.papers.reproduce import Beside
from ctxbench.harness.papers.tables import ORIGINS, STATUSES, Row

WIDTH = 120
_BLANK = "    \n"
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)
_HEADS = {
    "id_em": "ID-EM",
    "id_f1": "ID-F1",
    "em": "EM",
    "es": "ES",
    "construction": "construction s",
    "inference": "inference s",
    "overall": "mean of both languages",
}
_WHOLE = ("tokens", "completed")
_SHORT = {"out_of_memory": "oom"}
_BOTH = "both"

Line = tuple[str, ...]


def title(beside: Beside) -> str:
    """Return what the table is."""
    return f"{beside.table.name}: {beside.table.paper}, {beside.table.title}"


def table(beside: Beside, languages: Sequence[str], *, width: int = WIDTH) -> str:
    """Return the table for a person: remarks first, then a table a language, ours under the paper's lines."""
    screen = io.StringIO()
    console = Console(file=screen, width=width, no_color=True, highlight=False, emoji=False, markup=False)
    console.print(Text(title(beside)))
    for note in notes(beside, languages):
        console.print(Text(f"- {note}"))
    for heading, columns, lines in sections(beside, languages):
        made = RichTable(box=_RULE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
        for index, column in enumerate(columns):
            made.add_column(Text(column), justify="right" if index > 1 else "left", overflow="fold", no_wrap=index > 1)
        for line in lines:
            made.add_row(*map(Text, line))
        console.print(Text(f"\n{heading}"))
        console.print(made)
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(beside: Beside, languages: Sequence[str]) -> str:
    """Return the same as markdown."""
    parts = [
        f"## {plain_markdown(title(beside))}\n",
        "".join(f"- {plain_markdown(note)}\n" for note in notes(beside, languages)),
    ]
    for heading, columns, lines in sections(beside, languages):
        rule = ["---", "---", *["---:"] * (len(columns) - 2)]
        rows = [columns, rule, *([plain_markdown(cell) for cell in line] for line in lines)]
        parts.append(f"### {heading}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows))
    return "\n".join(parts)


def to_json(beside: Beside, languages: Sequence[str]) -> str:
    """Return one record a row and language, the paper's numbers and ours at full precision."""
    whole = {
        "table": beside.table.name,
        "paper": beside.table.paper,
        "title": beside.table.title,
        "generator": beside.generator,
        "encoder": beside.encoder,
        "notes": list(notes(beside, languages)),
        "rows": [_record(beside, row, language) for language in languages for row in beside.table.rows
                 if language in row.languages],
    }  # fmt: skip
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def sections(beside: Beside, languages: Sequence[str]) -> Iterator[tuple[str, Line, list[Line]]]:
    """Yield heading, column names and lines: one a language, and one for their mean where the paper prints it."""
    for language in languages:
        columns = beside.table.columns
        yield (
            language,
            ("method", "whose", *(_HEADS.get(one, one) for one in columns)),
            _lines(beside, language, columns),
        )
    if len(languages) > 1 and any(_BOTH in row.printed for row in beside.table.rows):
        yield "both languages", ("method", "whose", _HEADS["overall"]), _lines(beside, _BOTH, ("overall",))


def _lines(beside: Beside, language: str, columns: Sequence[str]) -> list[Line]:
    """Return the paper's lines of each strategy, then ours; strategies in the order of the paper."""
    groups: dict[str, list[Row]] = {}
    for row in beside.table.rows:
        if language in row.printed or language in row.missing:
            groups.setdefault(beside.specs.get(row.preset, row.preset), []).append(row)
    lines = []
    for spec, rows in groups.items():
        lines += [_theirs(row, language, columns) for row in rows]
        lines += _ours(beside, spec, language, columns)
    return lines


def _theirs(row: Row, language: str, columns: Sequence[str]) -> Line:
    said = [row.model, row.encoder] if row.table.startswith("icl") else [row.benchmark, row.model]
    if ORIGINS[row.origin] != "measured":
        said.append(ORIGINS[row.origin])
    if not row.strategy:
        said.append("external")
    return (
        row.method,
        f"paper: {', '.join(filter(None, said))}",
        *(_printed(row, language, column) for column in columns),
    )


def _printed(row: Row, language: str, column: str) -> str:
    number = row.printed.get(language, {}).get(column)
    if number is None:
        return _SHORT.get(row.missing.get(language, {}).get(column, ""), numbers.UNKNOWN)
    text = f"{number:.0f}" if column in _WHOLE else f"{number:.2f}"
    return f"{text}?" if f"{language}.{column}" in row.doubtful else text


def _ours(beside: Beside, spec: str, language: str, columns: Sequence[str]) -> Iterator[Line]:
    found = beside.ours.get(spec, ())
    for samples in dict.fromkeys(one.samples for one in found):
        of_set = [one for one in found if one.samples == samples]
        whose = f"ours: {samples}, {beside.generator}"
        if language == _BOTH:
            mean = overall(of_set)
            yield "", whose, numbers.UNKNOWN if mean is None else f"{mean:.2f}"
        for one in of_set:
            if one.language == language:
                yield "", whose, *(_cell(one.cells.get(column), column) for column in columns)


def _cell(cell: Cell | None, column: str) -> str:
    if cell is None:
        return numbers.UNKNOWN
    if column in _WHOLE or column == "inference":
        return numbers.amount(cell.mean)
    return numbers.interval(cell.mean, cell.low, cell.high)


def _record(beside: Beside, row: Row, language: str) -> dict[str, Any]:
    spec = beside.specs.get(row.preset)
    prefix = f"{language}."
    return {
        "preset": row.preset,
        "row": row.row,
        "benchmark": row.benchmark,
        "language": language,
        "method": row.method,
        "model": row.model,
        "encoder": row.encoder or None,
        "origin": ORIGINS[row.origin],
        "external": not row.strategy,
        "strategy": spec,
        "paper": dict(row.printed.get(language, {})),
        "missing": {column: STATUSES[why] for column, why in row.missing.get(language, {}).items()},
        "doubtful": sorted(one.removeprefix(prefix) for one in row.doubtful if one.startswith(prefix)),
        "flags": {one.removeprefix(prefix): why for one, why in row.flags.items() if one.startswith(prefix)},
        "remarks": list(row.remarks),
        "ours": [_ours_record(one) for one in beside.ours.get(spec or "", ()) if one.language == language],
    }


def _ours_record(one: Ours) -> dict[str, Any]:
    cells = {column: asdict(cell) for column, cell in one.cells.items()}
    rounded = {
        column: {key: round(value, 6) if isinstance(value, float) else value for key, value in cell.items()}
        for column, cell in cells.items()
    }
    return {
        "samples": one.samples,
        "run": one.run,
        "strategy": one.strategy,
        "counts": dict(sorted(one.counts.items())),
        "unscored": one.unscored,
        **rounded,
    }

"""Formats boards and comparisons as text: terminal tables, Markdown, and JSON and CSV with more decimals."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxbench.bench.errors import UnknownName
from ctxbench.bench.escaping import markdown as plain_markdown
from ctxbench.harness.frames import ResultFrame
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import (
    COLUMNS,
    FRAME,
    FRAME_APART,
    FRAME_COSTS,
    MOST_FRAME,
    RECORD,
    TextTable,
    Value,
    secondary_metrics,
)
from ctxbench.harness.leaderboard.compare import Compared, LevelDifference
from ctxbench.harness.leaderboard.headline import heading_of, headline
from ctxbench.harness.leaderboard.pairs import Difference
from ctxbench.harness.leaderboard.published import BOTH, published_records
from ctxbench.harness.leaderboard.repetitions import VarianceParts, variance_text
from ctxbench.harness.leaderboard.rows import Board, Group, Overall, Row, pair_verdict
from ctxbench.harness.leaderboard.sections import OTHERS, screen_table, sections, short_names
from ctxbench.harness.leaderboard.selection import differing_coders, run_warnings
from ctxbench.harness.leaderboard.stats import Estimate, IntervalScope
from ctxbench.harness.results import PRICE, RunInfo

WIDTH = 120
_BLANK = "    \n"
_GAP = "  "
"""Gap between two columns. Its last character is the column divider of `_RULE`."""
_NARROWEST = 12
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)
_DECIMALS = 6
_PRICE_DECIMALS = 12


def table(
    board: Board,
    *,
    width: int = WIDTH,
    terminal: bool = False,
    columns: Sequence[str] = (),
    explain: bool = False,
    diagnostics: bool = False,
    full: bool = False,
    by: str = "",
) -> str:
    """Return the board as text for terminals: per group a headline, a line per row, and warnings.

    Args:
        width: maximum characters per line. Default columns that do not fit are dropped from the right, except the
            ranking metric and its test.
        terminal: print headings in bold; False prints plain text.
        columns: names of columns and metrics that replace the default columns, and are never dropped.
        explain: add all notes.
        diagnostics: add tables of what each context contributed and which names the answers invented.
        full: print each CoderEval level as its own group.
        by: add a table of strategies by the values of this parameter.

    Raises:
        UnknownName: if a column does not exist, or no two strategies of a group differ only in `by`.
    """
    printable = {name for name, column in COLUMNS.items() if column.heading}
    known = printable | {metric for group in board.groups for metric in group.scales}
    for key in columns:
        if key not in known:
            raise UnknownName("column or metric of this board", key, known)
    parts: list[Text | Table] = []
    for index, section in enumerate(sections(board, diagnostics=diagnostics, full=full, by=by)):
        group = section.group
        parts += [Text()] * bool(index)
        parts.append(Text(section.title if group is None else heading_of(group), style="bold"))
        if group is None:
            tables, said = list(section.all_tables), section.notes
        else:
            parts += [Text(headline(group, short_names(group))), Text()]
            ranking = screen_table(group, columns)
            tables = [ranking if columns else _fitting(ranking, width)]
            tables += [part for part in section.all_tables[1:] if part.caption != OTHERS]
            said = section.notes if explain else section.warnings
        for text_table in tables:
            parts += [rich_table(text_table, width), Text()]
        parts += [Text(f"- {line}") for line in said]
    return printed(parts, width=width, terminal=terminal)


def _fitting(text_table: TextTable, width: int) -> TextTable:
    columns = list(zip(*([head.text for head in text_table.heads], *text_table.lines), strict=True))
    widths = [max(map(cell_len, cells)) + len(_GAP) for cells in columns]
    kept = next((count for count in range(len(widths), 5, -1) if sum(widths[:count]) - len(_GAP) <= width), 5)
    return TextTable(text_table.heads[:kept], [line[:kept] for line in text_table.lines], text_table.caption)


def printed(parts: Iterable[Text | Table], *, width: int, terminal: bool = False) -> str:
    """Return the parts as text for a screen of `width` characters, without trailing blanks."""
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, force_terminal=terminal, no_color=True, highlight=False, emoji=False, markup=False
    )
    for part in parts:
        console.print(part, crop=False)
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(board: Board, *, diagnostics: bool = False, full: bool = False, by: str = "") -> str:
    """Return the board as Markdown: per section a heading, tables and all notes; arguments as for `table`."""
    parts = []
    for section in sections(board, diagnostics=diagnostics, full=full, by=by):
        tables = "\n".join(map(markdown_table, section.all_tables))
        remarks = "\n".join(f"- {plain_markdown(line)}" for line in section.notes)
        parts.append(f"## {plain_markdown(section.title)}\n\n" + (f"{tables}\n" if tables else "") + f"{remarks}\n")
    return "\n".join(parts)


def comparison(compared: Sequence[Compared]) -> str:
    """Return paired differences as text, below each pair's means by repository and, if several, by level."""
    lines: list[str] = []
    previous: tuple[str, str] | None = None
    coders = differing_coders([run for pair in compared for run in (pair.other, pair.this)])
    for pair in sorted(compared, key=lambda pair: (pair.this.language, pair.this.id)):
        if (pair.this.language, pair.this.id) != previous:
            previous = (pair.this.language, pair.this.id)
            lines += [""] * bool(lines)
            lines.append(f"{_named(pair.this)} minus {_named(pair.other)}")
            generators = dict.fromkeys((pair.this.generator, pair.other.generator))
            lines.append(f"  {pair.this.samples}, {pair.this.language}, generator {' minus '.join(generators)}")
            lines += [f"  {line}" for line in (*run_warnings((pair.other, pair.this)), *coders)]
            lines += _where(pair)
            lines += [f"  {claim}" for claim in [pair.difference.claim] if claim]
        difference = pair.difference
        interval = scales.interval(difference.mean, difference.low, difference.high, sign=True)
        over = f"interval over {difference.over}" if difference.low is not None else "no interval"
        over = "interval of the test" if difference.over is IntervalScope.FLIPS else over
        control = pair.this.control or pair.other.control
        together = f", {difference.pairs} comparisons together" if difference.pairs > 1 else ""
        flips = f"sign flips of {difference.unit.count(difference.units)}{together}"
        test = f"p {scales.p_value(difference.p)} ({flips})"
        lines.append(
            f"  {pair.metric}: {interval} {pair.unit} ({over}), {'a control: not tested' if control else test}, "
            f"better {difference.wins}, equal {difference.ties}, worse {difference.losses} of {difference.n_common}"
        )
        if verdict := pair_verdict(difference, pair.unit):
            lines.append(f"    {verdict}")
        if difference.variance:
            lines.append(f"    sources of the variance: {variance_text(difference.variance, pair.this, pair.other)}")
    return "".join(f"{line}\n" for line in lines)


def _named(run: RunInfo) -> str:
    runs = f", {len(run.repetitions)} runs" if run.repetitions else ""
    return f"{run.strategy} ({run.id}{runs})"


def _where(pair: Compared) -> list[str]:
    # A single level repeats the whole table.
    levels = pair.levels if len(pair.levels) > 1 else ()
    units = () if pair.difference.unit.repo else pair.units
    parts = [(part.name, part.n, part.this, part.other) for part in units]
    parts += [(f"level {part.level}", part.n, part.this, part.other) for part in levels]
    width = max((len(name) for name, *_ in parts), default=0)
    return [f"  {name:{width}}  n {n:4}  {pair.metric} {other:.1f} -> {this:.1f}" for name, n, this, other in parts]


def rich_table(text_table: TextTable, width: int) -> Table:
    """Return a table for a screen of this width. It is wider if its numbers need more space."""
    columns = list(zip(*([head.text for head in text_table.heads], *text_table.lines), strict=True))
    widest = [max(map(cell_len, cells)) for cells in columns]
    # Fold only text: a folded number would be misread, and a column without width would vanish.
    least = sum(
        min(size, _NARROWEST) if head.is_text else size for head, size in zip(text_table.heads, widest, strict=True)
    ) + len(_GAP) * (len(widest) - 1)
    grid = Table(
        box=_RULE,
        padding=(0, len(_GAP) - 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        width=least if least > width else None,
    )
    for head in text_table.heads:
        grid.add_column(
            Text(head.text), justify="left" if head.is_text else "right", overflow="fold", no_wrap=not head.is_text
        )
    for line in text_table.lines:
        grid.add_row(*map(Text, line))
    return grid


def markdown_table(text_table: TextTable) -> str:
    """Return a table as Markdown."""
    headings = [plain_markdown(head.text) for head in text_table.heads]
    rule = ["---" if head.is_text else "---:" for head in text_table.heads]
    rows = [headings, rule, *([plain_markdown(cell) for cell in line] for line in text_table.lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def to_json(board: Board) -> str:
    """Return the board as JSON: the list of its `records`."""
    return json.dumps(records(board), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_csv(board: Board) -> str:
    """Return the board as CSV. Nested numbers become columns such as ``es_low`` or ``difference_es_p``."""
    return ResultFrame.of_records(map(_flat, records(board))).to_csv()


def frame(board: Board, columns: str | Iterable[str] = ()) -> ResultFrame:
    """Return the board as a data frame, whose `attrs` contain ``headline`` and ``notes``.

    Args:
        columns: names of columns of the CSV or of the table; empty for at most `MOST_FRAME` usual columns.

    Raises:
        InputFault: if a column does not exist.
    """
    rows = [(group, row) for group in board.groups for row in group.rows]
    flat = [_flat(record) for record in records(board)]
    named = [_of_table(group, row) for group, row in rows] + [{}] * (len(flat) - len(rows))
    parts = [(part, heading_of(part.group) if part.group else part.title) for part in sections(board)]
    attrs = {
        "headline": "\n".join(f"{name}: {headline(part.group)}" for part, name in parts if part.group),
        "notes": "\n".join("\n- ".join((name, *part.notes)) for part, name in parts),
    }
    made = ResultFrame.of_records([{**row, **more, **row} for row, more in zip(flat, named, strict=True)], attrs)
    metrics = dict.fromkeys(name for group in board.groups for name in (group.metric, *secondary_metrics(group)))
    usual = [*FRAME, *(list(metrics) or ["em", "es", "pass@1"])[:4], *FRAME_COSTS]
    same = {key for key in FRAME_APART if len(set(made.get(key, ()))) < 2}
    return made.chosen(columns, [key for key in usual if key not in same][:MOST_FRAME])


def _of_table(group: Group, row: Row) -> dict[str, Any]:
    values = {key: _cell(key, column.value(group, row)) for key, column in COLUMNS.items()}
    bounds = {"metric": row.metrics.get(group.metric), "difference": row.difference.get(group.metric)}
    for key, found in bounds.items():
        values |= _rounded(**{f"{key}_{end}": getattr(found, end, None) for end in ("low", "high")})
    return values


def records(board: Board) -> list[dict[str, Any]]:
    """Return one record per row: identity, counts, metrics by name, costs, rank, then the rest.

    For CoderEval, one record per strategy and generator over both languages follows. Papers' numbers come last.
    """
    return [
        *(_record(group, row) for group in board.groups for row in group.rows),
        *map(_overall, board.overall),
        *published_records(board.published),
    ]


def comparison_json(compared: Sequence[Compared]) -> str:
    """Return a JSON list with one record per metric and pair of runs."""
    return json.dumps(list(map(_comparison, compared)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def flat_comparison(compared: Sequence[Compared]) -> list[dict[str, Any]]:
    """Return one record per metric and pair of runs, without repositories, files, levels and variance."""
    parts = ("repositories", "files", "levels", "difference")
    return [
        {
            **{key: value for key, value in _flat(record).items() if not key.startswith(parts)},
            **{key: value for key, value in record["difference"].items() if not isinstance(value, dict)},
        }
        for record in map(_comparison, compared)
    ]


def _comparison(pair: Compared) -> dict[str, Any]:
    unit = pair.difference.unit
    return {
        "run": pair.this.id,
        "baseline": pair.other.id,
        "repetitions": list(pair.this.repetitions),
        "baseline_repetitions": list(pair.other.repetitions),
        "strategy": pair.this.strategy,
        "baseline_strategy": pair.other.strategy,
        "language": pair.this.language,
        "metric": pair.metric,
        "difference": _difference(pair.difference),
        unit.plural: [
            {unit.noun: part.name, "n": part.n, **_rounded(this=part.this, baseline=part.other)} for part in pair.units
        ],
        "levels": [_level(part) for part in pair.levels],
    }


def _record(group: Group, row: Row) -> dict[str, Any]:
    run = row.run
    return {
        "samples": run.samples,
        "language": run.language,
        "level": row.level,
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "n": row.n,
        "missing": row.missing,
        **{name: _estimate(estimate) for name, estimate in row.metrics.items()},
        **{key: _cell(key, COLUMNS[key].value(group, row)) for key in RECORD},
        "control": run.control,
        "ranked_by": group.metric,
        "run": run.id,
        "repetitions": list(run.repetitions),
        "answers": asdict(row.answers),
        "variance": {name: _variance(parts) for name, parts in row.variance.items()},
        "profile": run.profile,
        "samples_digest": run.samples_digest,
        "benchmark": run.benchmark,
        "remarks": list(run.remarks),
        "completions": run.completions,
        "sampling": json.loads(run.sampling or "{}"),
        "versions": dict(run.versions),
        "model_failed": row.model_failed,
        "excluded": row.excluded,
        "marks": dict(row.marks),
        "sensitivity": {
            name: _rounded(worst=bounds.worst, best=bounds.best) for name, bounds in row.sensitivity.items()
        },
        "baseline": row.baseline,
        "difference": {name: _difference(difference) for name, difference in row.difference.items()},
        "beats": [group.rows[loser].run.id for loser in row.beats],
        **_rounded(smallest_visible_difference=group.family.visible, smallest_p=group.family.smallest_p),
    }


def _overall(overall: Overall) -> dict[str, Any]:
    run = overall.run
    return {
        "samples": " + ".join(overall.samples),
        "language": BOTH,
        "level": overall.level,
        "strategy": run.strategy,
        "generator": run.generator,
        "origin": str(run.origin),
        "n": max(mean.n for mean in overall.metrics.values()),
        "missing": overall.missing,
        **{
            name: {**_rounded(mean=mean.mean, mean_of_levels=mean.mean_of_levels), "n": mean.n}
            for name, mean in overall.metrics.items()
        },
        **dict.fromkeys(RECORD),
        "group": "",
        "control": run.control,
        "profile": run.profile,
        "benchmark": run.benchmark,
    }


def _level(part: LevelDifference) -> dict[str, Any]:
    return {
        "level": part.level,
        "n": part.n,
        **_rounded(this=part.this, baseline=part.other),
        "difference": {**_rounded(mean=part.mean, low=part.low, high=part.high), "interval": str(part.over)},
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        **_rounded(mean=estimate.mean, low=estimate.low, high=estimate.high),
        "interval": str(estimate.over),
        "n": estimate.n,
        estimate.unit.plural: estimate.units,
        **_rounded(
            mean_of_repositories=estimate.mean_of_repositories,
            mean_of_levels=estimate.mean_of_levels,
            mean_with_invalid=estimate.mean_with_invalid,
            median=estimate.median,
            trimmed_mean=estimate.trimmed,
        ),
    }


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        **_rounded(mean=difference.mean, low=difference.low, high=difference.high),
        "interval": str(difference.over),
        **_rounded(p=difference.p),
        "pairs": difference.pairs,
        "n_common": difference.n_common,
        difference.unit.plural: difference.units,
        **_rounded(smallest_visible=difference.visible),
        f"{difference.unit.plural}_needed": difference.needed,
        "wins": difference.wins,
        "ties": difference.ties,
        "losses": difference.losses,
        **({"variance": _variance(difference.variance)} if difference.variance else {}),
    }


def _variance(parts: VarianceParts) -> dict[str, Any]:
    return {
        name: {**_rounded(deviation=part.deviation, share=part.share), "negative": part.negative}
        for name, part in parts.items()
    }


def _rounded(**numbers: float | None) -> dict[str, float | None]:
    return {name: _number(value) for name, value in numbers.items()}


def _number(value: float | None) -> float | None:
    # Digits after the sixth decimal are noise, and may differ between machines.
    return None if value is None else round(value, _DECIMALS) + 0.0


def _cell(key: str, value: Value) -> Value:
    if not isinstance(value, float):
        return value
    # A sample may cost less than a millionth of a dollar.
    return round(value, _PRICE_DECIMALS) if key.endswith(PRICE) else _number(value)


def _flat(record: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            inner = _flat(value, f"{prefix}{key}_")
            # A metric's column is its mean: es, es_low, es_high.
            flat.update({name.removesuffix("_mean"): cell for name, cell in inner.items()})
        else:
            flat[f"{prefix}{key}"] = "; ".join(map(str, value)) if isinstance(value, list) else value
    return flat

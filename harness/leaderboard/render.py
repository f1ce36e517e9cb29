"""A board as a table for terminals and as markdown. Pure: returns text."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxbench.bench.visible import markdown as plain_markdown
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.columns import TextTable
from ctxbench.harness.leaderboard.comparability import bits_apart, run_warnings
from ctxbench.harness.leaderboard.compare import Compared
from ctxbench.harness.leaderboard.family import count_of, pair_verdict
from ctxbench.harness.leaderboard.repetitions import variance_text
from ctxbench.harness.leaderboard.rows import Board
from ctxbench.harness.leaderboard.sections import sections
from ctxbench.harness.results import RunInfo

WIDTH = 120
_BLANK = "    \n"
_GAP = "  "
"""Between two columns: the last character of it is the rule's."""
_NARROWEST = 12
"""Characters to which a column of texts may be folded."""
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)


def table(
    board: Board,
    *,
    width: int = WIDTH,
    terminal: bool = False,
    diagnostics: bool = False,
    full: bool = False,
    by: str = "",
) -> str:
    """Return the board for a person: tables a group (the ranking; other metrics and costs) and its notes.

    Args:
        board: what to show.
        width: columns of the screen; long names are folded, and a table whose numbers do not fit is wider than that:
            nothing is cut off.
        terminal: mark headings with bold; False gives plain text.
        diagnostics: add a table of what each context brought and what was made up.
        full: give the levels of CoderEval groups of their own.
        by: add a table of strategies by the values of this parameter.
    """
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, force_terminal=terminal, no_color=True, highlight=False, emoji=False, markup=False
    )
    for index, section in enumerate(sections(board, diagnostics=diagnostics, full=full, by=by)):
        if index:
            console.print()
        console.print(Text(section.title, style="bold"))
        for text_table in section.all_tables:
            console.print(_rich(text_table, width), crop=False)
            console.print()
        for line in section.notes:
            console.print(Text(f"- {line}"))
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(board: Board, *, diagnostics: bool = False, full: bool = False, by: str = "") -> str:
    """Return the board as markdown: a heading, tables and notes, as `table` does."""
    parts = []
    for section in sections(board, diagnostics=diagnostics, full=full, by=by):
        tables = "\n".join(map(_markdown, section.all_tables))
        remarks = "\n".join(f"- {plain_markdown(line)}" for line in section.notes)
        parts.append(f"## {plain_markdown(section.title)}\n\n" + (f"{tables}\n" if tables else "") + f"{remarks}\n")
    return "\n".join(parts)


def comparison(compared: Sequence[Compared]) -> str:
    """Return paired differences as text, the repositories and levels of each pair's first metric above them."""
    lines: list[str] = []
    previous: tuple[str, str] | None = None
    apart = bits_apart([run for pair in compared for run in (pair.other, pair.this)])
    for pair in sorted(compared, key=lambda pair: (pair.this.language, pair.this.id)):
        if (pair.this.language, pair.this.id) != previous:
            previous = (pair.this.language, pair.this.id)
            lines += [""] * bool(lines)
            lines.append(f"{_named(pair.this)} minus {_named(pair.other)}")
            generators = dict.fromkeys((pair.this.generator, pair.other.generator))
            lines.append(f"  {pair.this.samples}, {pair.this.language}, generator {' minus '.join(generators)}")
            lines += [f"  {line}" for line in (*run_warnings((pair.other, pair.this)), *apart)]
            lines += _where(pair)
        difference = pair.difference
        interval = numbers.interval(difference.mean, difference.low, difference.high, sign=True)
        over = f"interval over {difference.over}" if difference.low is not None else "no interval"
        control = pair.this.control or pair.other.control
        test = f"p {numbers.p_value(difference.p_adjusted)} (sign flips of {count_of(difference.repositories)})"
        lines.append(
            f"  {pair.metric}: {interval} {pair.unit} ({over}), {'a control: not tested' if control else test}, "
            f"better {difference.wins}, equal {difference.ties}, worse {difference.losses} of {difference.n_common}"
        )
        if verdict := pair_verdict(difference, pair.unit):
            lines.append(f"    {verdict}")
        if difference.variance:
            lines.append(f"    of its variance: {variance_text(difference.variance, pair.this, pair.other)}")
    return "".join(f"{line}\n" for line in lines)


def _named(run: RunInfo) -> str:
    runs = f", {len(run.repetitions)} runs" if run.repetitions else ""
    return f"{run.strategy} ({run.id}{runs})"


def _where(pair: Compared) -> list[str]:
    # Of a single level there is nothing to say that the whole does not say.
    levels = pair.levels if len(pair.levels) > 1 else ()
    parts = [(part.repo, part.n, part.this, part.other) for part in pair.repositories]
    parts += [(f"level {part.level}", part.n, part.this, part.other) for part in levels]
    width = max((len(name) for name, *_ in parts), default=0)
    return [f"  {name:{width}}  n {n:4}  {pair.metric} {other:.1f} -> {this:.1f}" for name, n, this, other in parts]


def _rich(text_table: TextTable, width: int) -> Table:
    """Return a table as wide as the screen at most, or as it needs where that is too narrow for its numbers."""
    columns = list(zip(*([head.text for head in text_table.heads], *text_table.lines), strict=True))
    widest = [max(map(cell_len, cells)) for cells in columns]
    # Only texts are folded: half a number would be another one, and a column without a place would be gone.
    least = sum(
        min(size, _NARROWEST) if head.is_text else size for head, size in zip(text_table.heads, widest, strict=True)
    ) + len(_GAP) * (len(widest) - 1)
    rich_table = Table(
        box=_RULE,
        padding=(0, len(_GAP) - 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        width=least if least > width else None,
    )
    for head in text_table.heads:
        rich_table.add_column(
            Text(head.text), justify="left" if head.is_text else "right", overflow="fold", no_wrap=not head.is_text
        )
    for line in text_table.lines:
        rich_table.add_row(*map(Text, line))
    return rich_table


def _markdown(text_table: TextTable) -> str:
    headings = [plain_markdown(head.text) for head in text_table.heads]
    rule = ["---" if head.is_text else "---:" for head in text_table.heads]
    rows = [headings, rule, *([plain_markdown(cell) for cell in line] for line in text_table.lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)

"""A board as a table for terminals and as markdown. Pure: returns text."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ctxbench.bench.visible import markdown as plain_markdown
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.compare import Compared
from ctxbench.harness.leaderboard.pairs import can_be_told_apart
from ctxbench.harness.leaderboard.rows import Board
from ctxbench.harness.leaderboard.sections import TextTable, sections
from ctxbench.harness.leaderboard.unlike import bits_apart, unlike_runs

WIDTH = 120
_BLANK = "    \n"
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)
_LEFT = ("strategy", "tier", "generator", "origin")


def table(
    board: Board, *, width: int = WIDTH, terminal: bool = False, diagnostics: bool = False, full: bool = False
) -> str:
    """Return the board for a person: tables a group (the ranking; other metrics and costs) and its notes.

    Args:
        board: what to show.
        width: columns of the screen; long names are folded, nothing is cut off.
        terminal: mark headings with bold; False gives plain text.
        diagnostics: add a table of what each context brought and what was made up.
        full: give the levels of CoderEval groups of their own.
    """
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, force_terminal=terminal, no_color=True, highlight=False, emoji=False, markup=False
    )
    for index, section in enumerate(sections(board, diagnostics=diagnostics, full=full)):
        if index:
            console.print()
        console.print(Text(section.title, style="bold"))
        for made in section.tables:
            console.print(_rich(made))
            console.print()
        for line in section.notes:
            console.print(Text(f"- {line}"))
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(board: Board, *, diagnostics: bool = False, full: bool = False) -> str:
    """Return the board as markdown: a heading, tables and notes, as `table` does."""
    parts = []
    for section in sections(board, diagnostics=diagnostics, full=full):
        tables = "\n".join(map(_markdown, section.tables))
        remarks = "\n".join(f"- {plain_markdown(line)}" for line in section.notes)
        parts.append(f"## {plain_markdown(section.title)}\n\n" + (f"{tables}\n" if tables else "") + f"{remarks}\n")
    return "\n".join(parts)


def comparison(compared: Sequence[Compared]) -> str:
    """Return paired differences as text, the repositories and levels of each pair's first metric above them."""
    lines: list[str] = []
    previous: tuple[str, str] | None = None
    apart = bits_apart([run for one in compared for run in (one.other, one.this)])
    for one in sorted(compared, key=lambda one: (one.this.language, one.this.id)):
        if (one.this.language, one.this.id) != previous:
            previous = (one.this.language, one.this.id)
            lines += [""] * bool(lines)
            lines.append(f"{one.this.strategy} ({one.this.id}) minus {one.other.strategy} ({one.other.id})")
            generators = dict.fromkeys((one.this.generator, one.other.generator))
            lines.append(f"  {one.this.samples}, {one.this.language}, generator {' minus '.join(generators)}")
            lines += [f"  {line}" for line in (*unlike_runs((one.other, one.this)), *apart)]
            lines += _where(one)
        found = one.difference
        shown = numbers.interval(found.mean, found.low, found.high, sign=True)
        over = f"interval over {found.over}" if found.low is not None else "no interval"
        control = one.this.control or one.other.control
        test = f"p {numbers.p_value(found.p_holm)} (sign flips of {found.repositories} repositories)"
        lines.append(
            f"  {one.metric}: {shown} {one.unit} ({over}), {'a control: not tested' if control else test}, "
            f"better {found.wins}, equal {found.ties}, worse {found.losses} of {found.n_common}"
        )
        if not control and found.n_common and not can_be_told_apart(found.repositories, found.pairs):
            lines.append(f"    no difference of {found.repositories} repositories can be significant at 5%")
    return "".join(f"{line}\n" for line in lines)


def _where(one: Compared) -> list[str]:
    # Of a single level there is nothing to say that the whole does not say.
    levels = one.levels if len(one.levels) > 1 else ()
    parts = [(part.repo, part.n, part.this, part.other) for part in one.repositories]
    parts += [(f"level {part.level}", part.n, part.this, part.other) for part in levels]
    width = max((len(name) for name, *_ in parts), default=0)
    return [f"  {name:{width}}  n {n:4}  {one.metric} {other:.1f} -> {this:.1f}" for name, n, this, other in parts]


def _rich(made: TextTable) -> Table:
    headings, lines = made
    shown = Table(box=_RULE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for heading in headings:
        left = heading in _LEFT
        shown.add_column(Text(heading), justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for line in lines:
        shown.add_row(*map(Text, line))
    return shown


def _markdown(made: TextTable) -> str:
    headings, lines = made
    head = [plain_markdown(heading) for heading in headings]
    rule = ["---" if heading in _LEFT else "---:" for heading in headings]
    rows = [head, rule, *([plain_markdown(cell) for cell in line] for line in lines)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)

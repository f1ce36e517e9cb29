"""A board as a table for terminals and as markdown. Pure: returns text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.leaderboard import choices, numbers
from harness.leaderboard.columns import BLOCK_GAIN, DIAGNOSTICS, MADE_UP
from harness.leaderboard.compare import Compared
from harness.leaderboard.notes import notes
from harness.leaderboard.pairs import can_be_told_apart
from harness.leaderboard.rows import ALL_LEVELS, Board, Group, Row
from harness.leaderboard.signflip import ALPHA
from harness.results import Origin

WIDTH = 120
_BESIDE = ("em", "es", "id_f1", "context_gain")
_BESIDE_PASSES = ("context_gain", "es", "id_f1", "em")
_MOST_BESIDE = 3
_MOST_PASSES = 2
_BLANK = "    \n"
_RULE = box.Box(2 * _BLANK + " -- \n" + 5 * _BLANK, ascii=True)

Column = tuple[str, Callable[[Row], str]]


def table(board: Board, *, width: int = WIDTH, terminal: bool = False, diagnostics: bool = False) -> str:
    """Return the board for a person: two tables a group (the ranking; other metrics and costs) and its notes.

    Args:
        board: what to show.
        width: columns of the screen; long names are folded, nothing is cut off.
        terminal: mark headings with bold; False gives plain text.
        diagnostics: add a table of what each context brought and what was made up.
    """
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, force_terminal=terminal, no_color=True, highlight=False, emoji=False, markup=False
    )
    for index, group in enumerate(board.groups):
        if index:
            console.print()
        console.print(Text(title(group), style="bold"))
        for columns in _tables(group, diagnostics):
            console.print(_rich(columns, group.rows))
            console.print()
        for line in notes(group):
            console.print(Text(f"- {line}"))
    return "".join(f"{line.rstrip()}\n" for line in screen.getvalue().splitlines())


def markdown(board: Board, *, diagnostics: bool = False) -> str:
    """Return the board as markdown: a heading, two tables and the notes of each group."""
    parts = []
    for group in board.groups:
        tables = [_markdown(columns, group.rows) for columns in _tables(group, diagnostics)]
        remarks = "\n".join(f"- {_escaped(line)}" for line in notes(group))
        parts.append(f"## {_escaped(title(group))}\n\n" + "\n".join(tables) + f"\n{remarks}\n")
    return "\n".join(parts)


def comparison(compared: Sequence[Compared]) -> str:
    """Return paired differences as text, the repositories of each pair's first metric below them."""
    lines: list[str] = []
    previous: tuple[str, str] | None = None
    for one in sorted(compared, key=lambda one: (one.this.language, one.this.id)):
        if (one.this.language, one.this.id) != previous:
            previous = (one.this.language, one.this.id)
            lines += [""] * bool(lines)
            lines.append(f"{one.this.strategy} ({one.this.id}) minus {one.other.strategy} ({one.other.id})")
            lines.append(f"  {one.this.samples}, {one.this.language}, generator {one.this.generator}")
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
    width = max((len(part.repo) for part in one.repositories), default=0)
    return [
        f"  {part.repo:{width}}  n {part.n:4}  {one.metric} {part.other:.1f} -> {part.this:.1f}"
        for part in one.repositories
    ]


def title(group: Group) -> str:
    """Return what the rows of a group have in common."""
    level = "" if group.level == ALL_LEVELS else f", {group.level}"
    return f"{group.samples} ({group.samples_digest[:12]}), {group.language}{level}, generator {group.generator}"


def _tables(group: Group, diagnostics: bool) -> list[list[Column]]:
    more = [name for name in (*DIAGNOSTICS, MADE_UP, BLOCK_GAIN) if name in group.scales] if diagnostics else []
    return [_ranking(group), _beside(group), *([[_STRATEGY, *_metrics(group, more)]] if more else [])]


def _metrics(group: Group, names: Sequence[str]) -> list[Column]:
    return [(f"{name} {group.scales[name].unit} [95%]", partial(_estimate, name=name)) for name in names]


def _ranking(group: Group) -> list[Column]:
    name = group.metric
    unit = f" {group.scales[name].unit}" if name in group.scales else ""
    columns: list[Column] = [
        ("rank", _rank),
        ("tier", lambda row: row.tier),
        ("strategy", _strategy),
        ("n", lambda row: str(row.n)),
        ("unscored", lambda row: str(row.unscored)),
        (f"{name}{unit} [95%]", partial(_estimate, name=name)),
        ("by repo", partial(_mean_of_repositories, name=name)),
    ]
    if group.baseline is not None and any(row.difference for row in group.rows):
        columns += [(f"to {group.baseline}", lambda row: _difference(row, name)), ("p", lambda row: _p(row, name))]
    return columns


def _beside(group: Group) -> list[Column]:
    passes = [name for name in choices.passes(group.scales) if name != group.metric][-_MOST_PASSES:]
    others = _BESIDE_PASSES if choices.passes(group.scales) else _BESIDE
    names = [*passes, *(name for name in others if name in group.scales and name != group.metric)][:_MOST_BESIDE]
    return [
        _STRATEGY,
        *_metrics(group, names),
        ("tokens", lambda row: numbers.amount(row.context_tokens)),
        ("calls", lambda row: numbers.amount(row.calls)),
        ("seconds", lambda row: numbers.amount(row.seconds)),
    ]


def _rank(row: Row) -> str:
    if row.rank_low is None:
        return numbers.UNKNOWN
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}-{row.rank_high}"


def _strategy(row: Row) -> str:
    if row.run.control:
        return f"{row.run.strategy} (control)"
    return row.run.strategy if row.run.origin is Origin.RUN else f"{row.run.strategy} ({row.run.origin})"


_STRATEGY: Column = ("strategy", _strategy)


def _estimate(row: Row, name: str) -> str:
    found = row.metrics.get(name)
    return numbers.interval(found.mean, found.low, found.high) if found else numbers.UNKNOWN


def _mean_of_repositories(row: Row, name: str) -> str:
    found = row.metrics.get(name)
    return numbers.value(found.mean_of_repositories, numbers.half_width(found.low, found.high)) if found else ""


def _difference(row: Row, name: str) -> str:
    found = row.difference.get(name)
    return numbers.interval(found.mean, found.low, found.high, sign=True) if found else ""


def _p(row: Row, name: str) -> str:
    """Write the corrected p-value (the plain one for rows outside the family), a star where it is significant."""
    found = row.difference.get(name)
    if not found:
        return ""
    if found.p_holm is None:
        return numbers.p_value(found.p)
    return numbers.p_value(found.p_holm) + ("*" if found.p_holm <= ALPHA else "")


def _rich(columns: Sequence[Column], rows: Sequence[Row]) -> Table:
    made = Table(box=_RULE, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for heading, _ in columns:
        left = heading in ("strategy", "tier")
        made.add_column(Text(heading), justify="left" if left else "right", overflow="fold", no_wrap=not left)
    for row in rows:
        made.add_row(*(Text(cell(row)) for _, cell in columns))
    return made


def _markdown(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    head = [_escaped(heading) for heading, _ in columns]
    rule = ["---" if heading in ("strategy", "tier") else "---:" for heading, _ in columns]
    lines = [head, rule, *([_escaped(cell(row)) for _, cell in columns] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("*", "\\*").replace("\n", " ")

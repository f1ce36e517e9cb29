"""`ctxbench leaderboard`: rank the stored runs."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from ctxbench.harness.cli.board import BoardQuery, board_options
from ctxbench.harness.cli.options import format_option

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board

FORMS = ("table", "json", "csv", "markdown", "latex")
_WIDEST = 120


@click.command()
@board_options
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context brought and what was made up (docs/diagnostics.md); JSON and CSV always do.",
)
@format_option(*FORMS)
def leaderboard(*, query: BoardQuery, diagnostics: bool, form: str) -> None:
    """Rank the stored runs by sample set, language and generator: means, 95% intervals, paired tests, tiers.

    Rows that share a tier are not told apart. What each number means is in docs/statistics.md.
    """
    from ctxbench.harness.leaderboard.notes import missing_scores

    board = query.board()
    click.echo(printed(board, form, diagnostics=diagnostics, full=bool(query.by_level)), nl=False)
    # The other forms have it among their notes.
    for group in board.groups if form in ("json", "csv") else ():
        for sentence in missing_scores(group):
            click.echo(f"{group.samples}, {group.language}: {sentence}", err=True)


def printed(board: Board, form: str, *, diagnostics: bool = False, full: bool = False) -> str:
    """Return a board as text: ``table`` (as wide as the terminal), ``json``, ``csv``, ``markdown`` or ``latex``.

    With `full` the levels of CoderEval have rankings of their own, not only a table.
    """
    from ctxbench.harness.leaderboard import latex, records, render

    if form == "json":
        return records.to_json(board)
    if form == "csv":
        return records.to_csv(board)
    if form == "markdown":
        return render.markdown(board, diagnostics=diagnostics, full=full)
    if form == "latex":
        return latex.latex(board, diagnostics=diagnostics, full=full)
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if terminal else _WIDEST
    return render.table(board, width=width, terminal=terminal, diagnostics=diagnostics, full=full)

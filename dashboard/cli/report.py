"""`ctxbench report`: the leaderboard as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli.leaderboard import board_options
from ctxbench.harness.cli.options import format_option
from ctxbench.harness.query import BoardQuery

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board
    from ctxbench.harness.store.work import RunWork


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@board_options
@format_option("html", "latex", "markdown", "csv", "json", text="What to write.")
def report(*, query: BoardQuery, out: Path, form: str) -> None:
    """Write the leaderboard as one self-contained file, with the commands that make its rows again.

    The numbers are those of `ctxbench leaderboard` with the same options. Reports of the same runs are equal, byte for
    byte, whenever they are written.
    """
    from ctxbench.bench.files import write_atomic
    from ctxbench.harness.cli.leaderboard import printed

    _check(out)
    board = query.board()
    if form == "html":
        text = _html(board, _works(board, query.url) if board.rows else {}, full=bool(query.by_level))
    else:
        text = printed(board, form, full=bool(query.by_level))
    write_atomic(out, text)
    click.echo(f"{out}: {len(board.rows)} rows in {len(board.groups)} groups", err=True)


def _check(out: Path) -> None:
    """Refuse a place that nothing can be written to, before the work is done."""
    if out.is_dir():
        raise InputFault("is a folder, not a file", where=str(out), cure="give --out the path of a file")
    if not out.absolute().parent.is_dir():
        raise InputFault(
            "there is no such folder", where=str(out.absolute().parent), cure="make it, or give --out another path"
        )


def _works(board: Board, url: str) -> dict[str, RunWork]:
    from ctxbench.harness.store.store import open_reader
    from ctxbench.harness.store.work import works

    with open_reader(url) as store:
        return {work.id: work for work in works(store, {id_ for row in board.rows for id_ in row.run.ids})}


def _html(board: Board, works: dict[str, RunWork], *, full: bool) -> str:
    from ctxbench.dashboard.report import page

    return page.html(page.report(board, works, full=full))

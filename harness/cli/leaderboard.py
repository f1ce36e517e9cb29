"""`ctxbench leaderboard` and `ctxbench scores`: rank stored runs, and export their scores by sample."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.files import write_atomic
from ctxbench.harness.cli.options import (
    after_option,
    db_option,
    format_by_ending,
    format_option,
    home_option,
    k_option,
    prices_option,
)
from ctxbench.harness.query import BoardQuery, RunQuery

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.rows import Board

FORMS = ("table", "json", "csv", "markdown", "latex")
_SCORES = {"csv": ".csv", "jsonl": ".jsonl", "parquet": ".parquet"}
_WIDEST = 100
_SAMPLES = click.option(
    "--samples",
    metavar="NAME",
    help="Show only runs over this sample set or, if there are none, over parts of it (NAME[:N]).",
)
_GENERATOR = click.option(
    "--generator",
    metavar="SPEC",
    help="Show only runs by this generator: its spec, its name, or the name of its model.",
)
_PROFILE = click.option("--profile", default="ctxbench", show_default=True, help="The metric profile of all scores.")
_INVALID = click.option(
    "--invalid",
    type=click.Choice(["exclude", "include"]),
    default="exclude",
    show_default=True,
    help="Leave out or count invalid samples: broken (the reference fails their tests) or vacuous (an empty body "
    "passes them).",
)
_AFTER = after_option("Use only samples whose code is dated after DATE (see docs/fidelity.md).")
_STRICT = click.option(
    "--strict", is_flag=True, help="Count passes as failed unless the code is plain, as defined in docs/verdicts.md."
)
_OF_RUNS: tuple[Callable[..., Any], ...] = (
    _SAMPLES,
    _GENERATOR,
    k_option,
    _PROFILE,
    _INVALID,
    _AFTER,
    _STRICT,
    prices_option,
    home_option,
    db_option,
)
_OF_BOARDS: tuple[Callable[..., Any], ...] = (
    _SAMPLES,
    _GENERATOR,
    click.option(
        "--metric",
        metavar="METRIC",
        help="The metric that ranks the rows; default: pass@1 for functions; copyable_bits for incontext; "
        "definition_recall@1024 without a model; otherwise es, em or the first metric of the profile.",
    ),
    k_option,
    click.option(
        "--baseline", metavar="SPEC", help="The strategy that the other rows are compared with; default: lc.infile."
    ),
    _PROFILE,
    click.option(
        "--all-pairs",
        is_flag=True,
        help="Test every pair of rows; default: each of your runs against the baseline.",
    ),
    click.option(
        "--by-level/--no-by-level",
        default=None,
        help="Add a ranking for each level (single-line, next-line, …); default: CoderEval's levels in one table.",
    ),
    click.option(
        "--published",
        type=click.Choice(["auto", "all", "none"]),
        default="auto",
        show_default=True,
        help="Published numbers to show below the runs; auto: those of the runs' models and the best per benchmark; "
        "all: all, even without runs.",
    ),
    _INVALID,
    _AFTER,
    _STRICT,
    prices_option,
    home_option,
    db_option,
)


def _with_query(
    query_type: type[RunQuery], options: Sequence[Callable[..., Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathered(**values: Any) -> Any:
            query = query_type(**{field.name: values.pop(field.name) for field in dataclasses.fields(query_type)})
            return command(query=query, **values)

        decorated = gathered
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


run_options = _with_query(RunQuery, _OF_RUNS)
"""Decorator that adds the options for selecting runs; the command receives a `RunQuery`."""
board_options = _with_query(BoardQuery, _OF_BOARDS)
"""Decorator that adds the options of a leaderboard; the command receives a `BoardQuery`."""
chosen = click.command("chosen")(board_options(lambda *, query: query))


@click.command()
@board_options
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context contributed, and which names the model invented "
    "(docs/metrics.md#diagnostics); JSON and CSV always contain this.",
)
@click.option(
    "--by",
    metavar="PARAMETER",
    default="",
    help="Add a table of results by a parameter, such as budget, for strategies that differ only in it; "
    "JSON and CSV have a row per spec.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="Columns and metrics to show in the table, separated by commas: n, runs, beats, es, tokens_in, ….",
)
@click.option("--explain", is_flag=True, help="Print all notes below the table.")
@click.option("--all", "everything", is_flag=True, help="Print a table for every sample set and generator with runs.")
@format_option(*FORMS)
def leaderboard(
    *,
    query: BoardQuery,
    diagnostics: bool,
    by: str,
    columns: str | None,
    explain: bool,
    everything: bool,
    form: str,
) -> None:
    """Rank the stored runs: does each of your runs differ from the baseline?

    The table shows the sample set and generator of your newest run, and names the others; --all and the other formats
    show all of them. docs/statistics.md explains the numbers.
    """
    from ctxbench.harness.leaderboard.notes import missing_scores
    from ctxbench.harness.leaderboard.selection import of_newest_run

    names = [name.strip() for name in (columns or "").split(",") if name.strip()]
    if (names or explain or everything) and form != "table":
        raise click.UsageError("--columns, --explain and --all need --format table; the other formats print everything")
    others: list[tuple[str, str]] = []
    tables = None
    if form == "table" and not everything and query.published != "all":
        tables, others = of_newest_run(query.tables())
    board = query.board(tables)
    text = printed(
        board, form, columns=names, explain=explain, diagnostics=diagnostics, full=bool(query.by_level), by=by
    )
    click.echo(text, nl=False)
    if others:
        listed = "; ".join(f"{samples} by {generator}" for samples, generator in others)
        click.echo(f"\nAlso stored (show with --samples, --generator or --all): {listed}")
    # The other formats print these sentences in their notes.
    for group in board.groups if form in ("json", "csv") else ():
        for sentence in missing_scores(group):
            click.echo(f"{group.samples}, {group.language}: {sentence}", err=True)


def printed(
    board: Board,
    form: str,
    *,
    columns: Sequence[str] = (),
    explain: bool = False,
    diagnostics: bool = False,
    full: bool = False,
    by: str = "",
) -> str:
    """Return a board as text: ``table`` (at most 100 columns wide), ``json``, ``csv``, ``markdown`` or ``latex``.

    Args:
        columns: columns and metrics of a ``table``; empty for the default columns.
        explain: print all notes below a ``table``. JSON and CSV ignore this and the following arguments.
        diagnostics: include the diagnostics of contexts and invented names.
        full: rank each CoderEval level separately too.
        by: parameter for an additional table of strategies that differ only in it.

    Raises:
        UnknownName: if a ``table`` lacks a column, or no two strategies differ only in `by`.
    """
    from ctxbench.harness.leaderboard import latex, render

    if form == "json":
        return render.to_json(board)
    if form == "csv":
        return render.to_csv(board)
    if form == "markdown":
        return render.markdown(board, diagnostics=diagnostics, full=full, by=by)
    if form == "latex":
        return latex.latex(board, diagnostics=diagnostics, full=full, by=by)
    terminal = sys.stdout.isatty()
    width = min(_WIDEST, shutil.get_terminal_size().columns) if terminal else _WIDEST
    return render.table(
        board,
        width=width,
        terminal=terminal,
        columns=columns,
        explain=explain,
        diagnostics=diagnostics,
        full=full,
        by=by,
    )


@click.command()
@run_options
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; default: stdout.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_SCORES)),
    help="Output format; default: by the ending of --out, or csv.",
)
def scores(*, query: RunQuery, out: Path | None, form: str | None) -> None:
    """Write a row per sample of the stored runs, with scores and costs, for notebooks and other tools.

    Metrics have their profile's own scale. A sample without a score has an empty field, and
    `status` names the reason. Parquet needs --out and pyarrow.
    """
    from ctxbench.harness import frames

    form = format_by_ending(out, form, _SCORES)
    frame = frames.of_runs(query.tables())
    if form == "parquet":
        if out is None:
            raise click.UsageError("--format parquet needs a file; give --out FILE")
        frame.write_parquet(out)
        return
    text = frame.to_csv() if form == "csv" else frame.to_jsonl()
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomic(out, text)

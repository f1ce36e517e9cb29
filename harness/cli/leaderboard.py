"""`ctxbench leaderboard` and `ctxbench scores`: rank stored runs, and export their samples."""

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
    help="Only runs over this sample set; if there are none, limited runs (NAME[:N]) of it.",
)
_GENERATOR = click.option(
    "--generator",
    metavar="SPEC",
    help="Only runs by this generator: its spec, its name, or its model's.",
)
_PROFILE = click.option(
    "--profile", default="ctxbench", show_default=True, help="The metric profile; never mixed in a ranking."
)
_INVALID = click.option(
    "--invalid",
    type=click.Choice(["exclude", "include"]),
    default="exclude",
    show_default=True,
    help="Invalid samples: broken (their own answer fails their tests) or vacuous (an empty body passes them).",
)
_AFTER = after_option("Only samples whose code is dated after DATE (see docs/fidelity.md).")
_STRICT = click.option(
    "--strict", is_flag=True, help="Count completions that passed and are not plain as failed (docs/verdicts.md)."
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
        help="What ranks; default: pass@1 for functions; copyable_bits for incontext; definition_recall@1024 without a "
        "model; for others es, em or what the profile declares first.",
    ),
    k_option,
    click.option("--baseline", metavar="SPEC", help="The strategy that differences refer to; default: lc.infile."),
    _PROFILE,
    click.option(
        "--all-pairs",
        is_flag=True,
        help="Test every pair of rows, whoever made them; default: each of your runs against the baseline.",
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
        help="Published numbers below the runs: of their benchmarks, the nearest and best; all, also without a run; "
        "none.",
    ),
    _INVALID,
    _AFTER,
    _STRICT,
    prices_option,
    click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples."),
    home_option,
    db_option,
)


def _with_query(
    query_type: type[RunQuery], options: Sequence[Callable[..., Any]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds options to a command, which receives them as its ``query``."""

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
"""Decorator: add the options that choose runs; the command receives a `RunQuery`."""
board_options = _with_query(BoardQuery, _OF_BOARDS)
"""Decorator: add the options of a board; the command receives a `BoardQuery`."""
chosen = click.command("chosen")(board_options(lambda *, query: query))
"""Parser of board options for the Python functions; not part of the command line."""


@click.command()
@board_options
@click.option(
    "--diagnostics",
    is_flag=True,
    help="Show what each context brought and what was made up (docs/metrics.md#diagnostics); JSON and CSV always do.",
)
@click.option(
    "--by",
    metavar="PARAMETER",
    default="",
    help="Add a table of what strategies reach at each value of a parameter in which alone they differ, such as "
    "budget; JSON and CSV have a row for each spec.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    help="In the table, show these columns and metrics, with commas between: n, runs, beats, es, tokens_in, ….",
)
@click.option("--explain", is_flag=True, help="Say below the table how each number is to be read.")
@click.option("--all", "everything", is_flag=True, help="Print a table of every sample set and generator with runs.")
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
    """Rank the stored runs: does each of yours differ from the baseline?

    A table shows the sample set and the generator of your newest run, and names the others; --all shows all of them, as
    the other forms do. What each number means is in docs/statistics.md.
    """
    from ctxbench.harness.leaderboard.notes import missing_scores
    from ctxbench.harness.leaderboard.selection import of_newest_run

    names = [name.strip() for name in (columns or "").split(",") if name.strip()]
    if (names or explain or everything) and form != "table":
        raise click.UsageError("--columns, --explain and --all are for the table: the other forms have everything")
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
        click.echo(f"\nAlso stored (--samples, --generator, or --all): {listed}")
    # The other forms print it in their notes.
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
    """Return a board as text: ``table`` (as wide as the terminal), ``json``, ``csv``, ``markdown`` or ``latex``.

    `columns` and `explain` apply to ``table``: its columns, and whether all notes follow. With `full` CoderEval's
    levels have their own rankings besides the table of levels. `by` adds a table by a parameter.

    Raises:
        UnknownName: if no two strategies differ only in the parameter `by`, unless JSON or CSV is asked for.
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
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The file to write; default: print it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(_SCORES)),
    help="What to write; default: by the ending of --out, else csv.",
)
def scores(*, query: RunQuery, out: Path | None, form: str | None) -> None:
    """Write every sample of the stored runs with its scores and costs, a row each, for notebooks and other tools.

    Metrics are in their profile's own scale, as the official programs give them; a sample without a score has an empty
    field, and `status` says why. Parquet is for --out and needs pyarrow.
    """
    from ctxbench.harness import frames

    form = format_by_ending(out, form, _SCORES)
    frame = frames.of_runs(query.tables())
    if form == "parquet":
        if out is None:
            raise click.UsageError("Parquet is no text: give --out FILE")
        frame.write_parquet(out)
        return
    text = frame.to_csv() if form == "csv" else frame.to_jsonl()
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomic(out, text)

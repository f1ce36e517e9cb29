"""`ctxbench quickstart` and `reproduce`: a whole study by one command, the first one or that of a paper's table."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    db_option,
    format_option,
    home_option,
    limit_option,
    opened_sandbox,
    repeat_option,
    run_workers_option,
    sandbox_option,
    seed_option,
    summariser_options,
    tokenizer_option,
)
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.sandbox.errors import SandboxError

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.run.attempt import RunSummary


_Outcome: TypeAlias = "tuple[list[RunSummary], CtxbenchError | None]"


@click.command()
@limit_option
@sandbox_option
@home_option
@db_option
def quickstart(*, limit: int | None, sandbox: str | None, home: Home, db: str | None) -> None:
    """Do the main job once: fetch real repositories, build samples, run two strategies, print the leaderboard.

    Completes lines, then whole functions, which the repositories' own tests judge in a sandbox. Needs no
    GPU and no model: the built-in generator learns from the prompt alone. Run it again and it takes
    seconds, since everything that is stored is used; no number changes.
    """
    from ctxbench.harness.store import open_store

    # A fault of the database shows now, and not after the minutes that samples take.
    open_store(db or home.database).close()
    summaries, fault = _lines(limit, home, db)
    # Functions take minutes more: what the lines tell is shown before.
    _show(summaries, home, db)
    other: CtxbenchError | SandboxError | None
    try:
        summaries, other = _functions(limit, sandbox, home, db)
        _show(summaries, home, db)
    except (CtxbenchError, SandboxError) as missing:
        # The lines are done and shown all the same; the exit code and the last line report the fault.
        other = missing
    say(
        "Next: all other strategies beside these two, `ctxbench results import --reference ctxbench-2-lite` and "
        "`ctxbench leaderboard`; then your own: `ctxbench strategy --help`"
    )
    if fault is not None:
        raise fault
    if other is not None:
        raise other


def _show(summaries: Sequence[RunSummary], home: Home, db: str | None) -> None:
    from ctxbench.harness.cli.leaderboard import printed
    from ctxbench.harness.leaderboard import board
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.runs import run_tables

    run_ids = {summary.run for summary in summaries}
    with open_store(db or home.database) as store:
        tables = [table for table in run_tables(store) if table.run.id in run_ids]
    if tables:
        click.echo(printed(board(tables), "table"))


def _lines(limit: int | None, home: Home, db: str | None) -> _Outcome:
    from ctxbench.bench import quickstart as job

    manifests = job.fetch_set(home, say)
    sample_set = job.sample_set(home, manifests, workers=os.cpu_count() or 1, report=say)
    return _run(sample_set, limit, None, home, db)


def _functions(limit: int | None, sandbox: str | None, home: Home, db: str | None) -> _Outcome:
    from ctxbench.bench import quickstart as job

    judge = opened_sandbox(sandbox, home)
    manifests = job.fetch_set(home, say, job.FUNCTION_SET)
    sample_set = job.function_set(home, manifests, judge, workers=os.cpu_count() or 1, report=say)
    return _run(sample_set, limit, judge.name, home, db)


def _run(sample_set: SampleSet, limit: int | None, sandbox: str | None, home: Home, db: str | None) -> _Outcome:
    from ctxbench.bench import quickstart as job
    from ctxbench.harness.run.runner import fault_of, run
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    repositories = len(sample_set.manifest["repositories"])
    say(f"{len(sample_set.samples)} samples of {repositories} repositories in {home.samples / sample_set.name}")
    with open_store(db or home.database) as store:
        summaries = run(
            home,
            store,
            sample_set,
            strategies=job.STRATEGIES,
            generator=job.GENERATOR,
            choices=RunOptions(limit=limit, sandbox=sandbox),
            progress=progress,
        )
    return summaries, fault_of(summaries)


_WIDEST = 120


@click.command()
@click.argument("table")
@click.option(
    "--generator",
    "generators",
    required=True,
    multiple=True,
    metavar="SPEC",
    help="A model for every row (see `ctxbench generator list`); give the option again for more.",
)
@summariser_options
@tokenizer_option
@click.option(
    "--samples",
    multiple=True,
    metavar="NAME",
    help="A sample set; give the option again for more.  [default: the quick start's]",
)
@click.option(
    "--encoder",
    metavar="SPEC",
    help="Take this encoder in place of every row's own (minilm, hashed, …); said beside the table.",
)
@limit_option
@click.option(
    "--languages",
    type=click.Choice(["python", "java"]),
    multiple=True,
    help="Show only these; default: those of the samples.",
)
@run_workers_option
@seed_option("Seed of strategies.")
@repeat_option
@click.option(
    "--figure",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Draw who solves what into FILE, an SVG.",
)
@format_option("table", "json", "markdown")
@sandbox_option
@home_option
@db_option
def reproduce(
    *,
    table: str,
    generators: tuple[str, ...],
    samples: tuple[str, ...],
    encoder: str | None,
    languages: tuple[str, ...],
    figure: Path | None,
    form: str,
    home: Home,
    db: str | None,
    **choices: Any,
) -> None:
    """Run every strategy of a paper's table and print ours beside the paper's numbers, row by row.

    TABLE is icl-table1, icl-table2, icl-table3 or icl-table4 (functions), infercom-table3, infercom-table4,
    infercom-table5, infercom-table6 or infercom-section6.4 (lines).

    Rows that differ in the model only are one run with each generator given. Below the table stand the averages over
    models, benchmarks and languages, and who solves what. It is no reproduction as long as samples, model or encoder
    are others, and says in what they are. The same command again does only what is missing.
    Table 6 of the InferCom paper is of five runs (--repeat 5).
    """
    from ctxbench.bench.files import write_atomic
    from ctxbench.bench.spec import parse
    from ctxbench.harness import paper_tables
    from ctxbench.harness.papers import render
    from ctxbench.harness.papers import reproduce as job
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    paper_table = paper_tables.table(table)
    if encoder is not None:
        parse(encoder)
    sample_sets = job.load_sets(home, samples, paper_table.kind)
    with open_store(db or home.database) as store:
        beside, fault = job.run(
            home,
            store,
            paper_table,
            sample_sets,
            generators=generators,
            encoder=encoder,
            choices=RunOptions(**choices),
            progress=progress,
        )
    columns = languages or beside.languages
    if form == "json":
        text = render.to_json(beside, columns)
    elif form == "markdown":
        text = render.markdown(beside, columns)
    else:
        width = min(_WIDEST, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _WIDEST
        text = render.table(beside, columns, width=width)
    click.echo(text, nl=False)
    if figure is not None:
        write_atomic(figure, render.figure(beside, columns))
    if fault is not None:
        raise fault

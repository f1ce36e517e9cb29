"""`ctxbench reproduce`: repeat a paper's table here, with our numbers beside the paper's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    db_option,
    format_option,
    home_option,
    repeat_option,
    sandbox_option,
    summariser_options,
    tokenizer_option,
)
from ctxbench.harness.cli.terminal import progress

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
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take N samples of each set, from the repositories in turn.",
)
@click.option(
    "--languages",
    type=click.Choice(["python", "java"]),
    multiple=True,
    help="Show only these; default: those of the samples.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="W",
    help="Strategies, and tests, at work at once; default: one a core.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="S", help="Seed of strategies."
)
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

"""``ctxbench results``: predictions and verdicts that were made elsewhere, in and out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.home import Home
from harness.cli.options import db_option, home_option

if TYPE_CHECKING:
    from harness.imported.importing import Summary

_IMPORTED = click.Choice(["codereval", "crosscodeeval", "ctxbench", "infercom", "repocoder"])


@click.group()
def results() -> None:
    """Bring recorded predictions and verdicts in and out."""


@results.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--format", "shape", type=_IMPORTED, required=True, help="Shape of the files.")
@click.option(
    "--samples",
    metavar="NAME",
    help="The sample set that the predictions are of; only the output of CoderEval's harness says it itself.",
)
@click.option(
    "--strategy", default="", metavar="TEXT", help="What to call the strategy; default: the file's, else recorded."
)
@click.option(
    "--generator",
    default="",
    metavar="TEXT",
    help="What to call the model; default: the file's, else its name's first part.",
)
@click.option(
    "--language",
    type=click.Choice(["python", "java"]),
    help="Only this language's samples are meant; others are refused.",
)
@home_option
@db_option
def import_files(
    *,
    files: tuple[str, ...],
    shape: str,
    samples: str | None,
    strategy: str,
    generator: str,
    language: str | None,
    home: Home,
    db: str | None,
) -> None:
    """Store recorded predictions as runs, with their verdicts where FILE has them; origin `imported`.

    JSON Lines, also with .gz. Texts are scored where --samples gives the answers; completions of functions
    without verdicts can be judged afterwards with `ctxbench exec --run`. Samples that a file lacks are missing,
    never dropped. Nothing of a file is stored if one of its lines is wrong, and nothing twice.
    """
    from bench import samples as sets
    from bench.formats.rows import open_tables
    from bench.types import Language
    from harness.imported.importing import import_results
    from harness.imported.matching import Labels
    from harness.store import open_store

    sample_set = None if samples is None else sets.load(home, samples)
    tables = open_tables(files)
    with open_store(db or home.database) as store:
        for table in tables:
            for summary in import_results(
                store,
                table,
                shape,
                labels=Labels(strategy=strategy, generator=generator),
                sample_set=sample_set,
                language=None if language is None else Language(language),
            ):
                _say(summary)


def _say(one: Summary) -> None:
    stored = f"{one.new} of {one.planned} samples" if one.new else "was imported before: nothing changed"
    click.echo(f"{one.run}  {one.samples}  {one.strategy}  {one.generator}  n={one.n}  {stored}")
    for remark in one.remarks:
        click.echo(remark, err=True)

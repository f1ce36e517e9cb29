"""`ctxbench compare`: paired differences of stored runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, format_option, home_option
from ctxbench.harness.cli.progress import say

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.compare import Compared
    from ctxbench.harness.results import RunTable


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--metric", metavar="METRIC", help="Only this metric; default: all that the runs share.")
@click.option("--profile", default="ctxbench", show_default=True, help="The metric profile.")
@click.option("--seed", default=0, show_default=True, help="Decides drawn permutations and bootstrap samples.")
@format_option("table", "json")
@home_option
@db_option
def compare(
    *, runs: tuple[str, ...], metric: str | None, profile: str, seed: int, form: str, home: Home, db: str | None
) -> None:
    """Compare runs with the first one named, on the samples that both completed: differences, p-values, repositories.

    RUN is the id that `ctxbench run` printed (also in `ctxbench runs`), its beginning, or the run's name. It stands for
    all runs that differ from it only in the seed, unless two of these are named: then every run is compared by itself.
    """
    from ctxbench.harness.leaderboard import compare as comparing
    from ctxbench.harness.leaderboard import render
    from ctxbench.harness.query import BoardQuery

    query = BoardQuery(home=home, db=db, profile=profile)
    ids = query.ids_of(runs)
    tables_by_run = _of_runs(query.tables(), ids)
    comparisons: list[Compared] = []
    first, *others = ({table.run.language for table in tables_of_run} for tables_of_run in tables_by_run)
    # A run with a limit may have no sample of a language that others have.
    shared = first.intersection(set().union(*others)) if others else first
    if not shared:
        raise InputFault(
            f"no other run has samples of a language of the first one, {runs[0]}",
            cure="name runs over the same samples (see `ctxbench runs`)",
        )
    for language in sorted(shared):
        parts = [table for tables_of_run in tables_by_run for table in tables_of_run if table.run.language == language]
        comparisons += comparing.compare(parts, metric=metric, seed=seed)
    if not comparisons:
        raise InputFault(
            f"these runs share no metric of profile {profile} that can be compared",
            cure=f"finish them by the same commands as before, then `ctxbench rescore --profile {profile}`",
        )
    for language in sorted(first.union(*others) - shared):
        say(f"left out: {language}, of which not both the first run and another one have samples")
    click.echo(render.comparison_json(comparisons) if form == "json" else render.comparison(comparisons), nl=False)


def _of_runs(tables: Sequence[RunTable], ids: Sequence[str]) -> list[list[RunTable]]:
    """Return for each id the tables of that run, one a language.

    They are pooled with the runs that differ only in the seed, unless that would make two of the named runs one.
    """
    from ctxbench.harness.leaderboard.repetitions import pooled

    pools = pooled(tables)
    is_shared = any(len(set(ids).intersection(table.run.ids)) > 1 for table in pools)
    return [[table for table in (tables if is_shared else pools) if id_ in table.run.ids] for id_ in ids]

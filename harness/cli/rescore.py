"""`ctxbench rescore`: give stored completions the metrics of profiles that were added since."""

from __future__ import annotations

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option


@click.command()
@click.option("--profile", metavar="NAME", help="Only this metric profile; default: all that are installed.")
@home_option
@db_option
def rescore(*, profile: str | None, home: Home, db: str | None) -> None:
    """Score stored completions under metric profiles that they lack. No model is asked, and no stored score changes.

    Needs the sample sets of the runs, which hold the answers. Interrupted, the same command goes on where it stopped.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.errors import InputFault, UnknownName
    from ctxbench.harness.cli.progress import progress
    from ctxbench.harness.metrics import PROFILES
    from ctxbench.harness.run.stored import rescore as score_stored
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.queries import run_of, runs

    if profile is not None and profile not in PROFILES:
        raise UnknownName("metric profile", profile, PROFILES)
    unread: dict[str, InputFault] = {}
    total = 0
    with open_store(db or home.database, create=False) as store:
        for run in runs(store):
            try:
                sample_set = sets.load(home, run.samples)
                run_of(store, run.id, sample_set)
            except InputFault as fault:
                # The other runs get their scores all the same.
                unread[run.id] = fault
                continue
            for name in PROFILES if profile is None else (profile,):
                scored = score_stored(store, run.id, sample_set, name, progress=progress)
                total += scored
                if scored:
                    click.echo(f"{run.id}  {run.strategy}  {name}  scored {scored}")
    if not total and not unread:
        click.echo("nothing to score: the stored completions have every metric that is defined for them")
    if unread:
        first = next(iter(unread.values()))
        raise InputFault(
            f"not rescored: {', '.join(unread)}: {first.what}",
            where=first.where,
            cure=f"{first.cure}; then run the same command again",
        )

"""`ctxbench quickstart`: the main job on the built-in set, then the leaderboard."""

from __future__ import annotations

import functools
import os

import click

from bench.home import Home
from harness.cli.options import db_option, home_option


@click.command()
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Take only N samples, from the repositories in turn."
)
@home_option
@db_option
def quickstart(*, limit: int | None, home: Home, db: str | None) -> None:
    """Do the main job once: fetch real repositories, build samples, run two strategies, print the leaderboard.

    Needs no GPU and no model: the built-in generator learns from the prompt alone. Run it again and it
    takes seconds, since everything that is stored is used; no number changes.
    """
    from harness import quickstart as job
    from harness.cli.leaderboard import printed, read_tables
    from harness.cli.progress import progress
    from harness.leaderboard import board
    from harness.runner import Choices, fault_of, run
    from harness.store import open_store

    say = functools.partial(click.echo, err=True)
    manifests = job.fetch_set(home, say)
    chosen = job.sample_set(home, manifests, workers=os.cpu_count() or 1, report=say)
    say(f"{len(chosen.samples)} samples of {len(manifests)} repositories in {home.samples / chosen.name}")
    with open_store(db or home.database) as store:
        summaries = run(
            home,
            store,
            chosen,
            strategies=job.STRATEGIES,
            generator=job.GENERATOR,
            choices=Choices(limit=limit),
            progress=progress,
        )
    here = {summary.run for summary in summaries}
    tables = [table for table in read_tables(home, db, samples=None, profile="ctxbench") if table.run.id in here]
    click.echo(printed(board(tables), "table"), nl=False)
    say(f"Next: `ctxbench samples show {chosen.name}`, `ctxbench strategy list`, and your own strategy: README.md")
    fault = fault_of(summaries)
    if fault is not None:
        raise fault

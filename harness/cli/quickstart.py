"""`ctxbench quickstart`: build a standard set and functions, run two strategies over it, and print the leaderboard."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import click

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option, opened_sandbox, sandbox_option
from ctxbench.harness.cli.terminal import progress, say
from ctxbench.sandbox.errors import SandboxError

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet
    from ctxbench.harness.run.attempt import RunSummary

_Outcome: TypeAlias = "tuple[list[RunSummary], CtxbenchError | None]"


@click.command()
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Take only N samples, from the repositories in turn."
)
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
    """Print the leaderboard of those of some runs that have results."""
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

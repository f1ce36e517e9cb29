"""`ctxbench merge`: bring shards that other processes made into one database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option

if TYPE_CHECKING:
    from ctxbench.harness.run.merging import Merged
    from ctxbench.harness.store import Store


@click.command()
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER…")
@home_option
@db_option
def merge(*, places: tuple[Path, ...], home: Home, db: str | None) -> None:
    """Bring the shards of `ctxbench run --shard` into one database.

    Merge only shards of people whom you trust: their answers and scores are taken as they are, and the board says so.
    Their verdicts count for their own run alone.

    Takes folders of shards, or single files. The sample sets that they are of must be in the home folder, with the
    same content. Prints a line a run: run id, strategy, samples new, there already, faults; then what is missing.
    Shards may come in any order and any number of times: what is stored already is dropped where it is equal. A shard
    with another value for something that is stored is refused as a whole, the others are merged, and the command ends
    with exit code 1.
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.cli.terminal import progress
    from ctxbench.harness.run.merging import Merger, shard_files
    from ctxbench.harness.store import open_store

    files = shard_files(places)
    refused: list[InputFault] = []
    merged: list[Merged] = []
    with open_store(db or home.database) as store:
        merger = Merger(store, home=home)
        with progress("shards", len(files)) as tick:
            for file in files:
                try:
                    merged.append(merger.merge_file(file))
                except InputFault as fault:
                    refused.append(fault)
                tick(1)
        _say(store, merged)
    if len(refused) == 1:
        raise refused[0]
    if refused:
        raise InputFault(f"{len(refused)} shards are refused; the first: {refused[0]}")


def _say(store: Store, merged: list[Merged]) -> None:
    """Print what came of each run."""
    from ctxbench.harness.store.runs import stored_runs

    runs = {run.id: run for run in stored_runs(store)}
    for id_ in sorted({part.run for part in merged}):
        parts = [part for part in merged if part.run == id_]
        new, again, faults, judged = (
            sum(getattr(part, name) for part in parts) for name in ("new", "again", "faults", "judged")
        )
        run = runs[id_]
        click.echo(
            f"{id_}  {run.strategy}  new {new}  already there {again}  faults {faults}  "
            f"missing {run.planned - run.finished}" + (f"  judged {judged}" if judged else "")
        )

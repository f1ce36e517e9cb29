"""`ctxbench diagnose`: the worth of each retrieved block of stored runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, format_option, home_option

if TYPE_CHECKING:
    from ctxbench.harness.diagnostics.gains import RunDiagnosis
    from ctxbench.harness.store import Store


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Price N more samples a run at most.")
@format_option("table", "json", text="How to print it; json tells every block.")
@home_option
@db_option
def diagnose(*, runs: tuple[str, ...], limit: int | None, form: str, home: Home, db: str | None) -> None:
    """Price what each retrieved block is worth: the bits that the answer costs more when it alone is left out.

    RUN is the id that `ctxbench run` printed, or its beginning. Every block costs a pricing, so try --limit first.
    The same command again prices only what is missing. Afterwards the leaderboard's JSON has `block_gain`.
    """
    from ctxbench.bench.files import dump_line
    from ctxbench.harness.cli.progress import progress
    from ctxbench.harness.diagnostics.gains import diagnose as price
    from ctxbench.harness.diagnostics.gains import find

    with _open(db or home.database) as store:
        for run in [find(store, wanted) for wanted in runs]:
            made = price(home, store, run, limit=limit, progress=progress)
            click.echo(dump_line(_record(made)) if form == "json" else _lines(made), nl=False)


def _open(url: str) -> Store:
    """Open a database to price what is missing there, or for reading where nothing can be written."""
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.faults import Unwritable
    from ctxbench.harness.store.reading import open_reader

    try:
        return open_store(url, create=False)
    except Unwritable:
        return open_reader(url)


def _record(made: RunDiagnosis) -> dict[str, Any]:
    return {
        "run": made.run.id,
        "strategy": made.run.strategy,
        "new": made.new,
        "left": made.over_limit,
        "unpriced": made.unpriced,
        "samples": {
            sample: [{"kind": one.kind, "gain": round(one.bits, 6)} for one in blocks]
            for sample, blocks in made.blocks.items()
        },
    }


def _lines(made: RunDiagnosis) -> str:
    lines = [f"{made.run.id}  {made.run.strategy}  samples {len(made.blocks)}  new {made.new}  left {made.over_limit}"]
    if made.unpriced:
        lines.append(f"  {made.unpriced} samples cannot be priced: their prompts do not end at the cursor")
    every = [one for blocks in made.blocks.values() for one in blocks]
    kinds = sorted({one.kind for one in every})
    lines += [_summary(kind, [one.bits for one in every if one.kind == kind]) for kind in kinds]
    if not every:
        lines.append("  no retrieved block is priced")
    return "".join(f"{line}\n" for line in lines)


def _summary(kind: str, bits: Sequence[float]) -> str:
    mean, median = statistics.fmean(bits), statistics.median(bits)
    helped, hurt = (100 * sum(sign * one > 1 for one in bits) / len(bits) for sign in (1, -1))
    return (
        f"  {kind:8} blocks {len(bits)}  mean {mean:+.2f} bits  median {median:+.2f}  "
        f"more than a bit of help {helped:.0f}%, of harm {hurt:.0f}%"
    )

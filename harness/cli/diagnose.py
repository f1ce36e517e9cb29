"""`ctxbench diagnose`: the worth of retrieved blocks, and what exact match misses."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, format_option, home_option

if TYPE_CHECKING:
    from ctxbench.bench.errors import MachineFault
    from ctxbench.harness.diagnostics.gains import RunDiagnosis
    from ctxbench.harness.store import Store
    from ctxbench.harness.store.runs import StoredRun
    from ctxbench.harness.store.scores import Judged


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--equivalent",
    is_flag=True,
    help="Instead: count the completions that their tests accept though they are not the reference.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Price N more samples a run at most.")
@format_option("table", "json", text="How to print it; json tells every block.")
@home_option
@db_option
def diagnose(
    *,
    runs: tuple[str, ...],
    equivalent: bool,
    limit: int | None,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Price what each retrieved block is worth: the bits that the answer costs more when it alone is left out.

    RUN is the id that `ctxbench run` printed, or its beginning. Every block costs a pricing, so try --limit first.
    The same command again prices only what is missing. Afterwards the leaderboard's JSON has `block_gain`. A sample
    that cannot be priced is left out and named at the end.

    With --equivalent nothing is priced: it says what exact match misses, by the tests of functions.
    """
    from ctxbench.bench.files import dump_line
    from ctxbench.harness.cli.progress import progress
    from ctxbench.harness.diagnostics.gains import diagnose as price
    from ctxbench.harness.run.scoring import unpriced
    from ctxbench.harness.store.runs import find_run

    if equivalent and limit is not None:
        raise click.UsageError("--equivalent prices nothing: leave out --limit")
    faults: dict[str, MachineFault] = {}
    with _open(db or home.database) as store:
        for run in [find_run(store, id_prefix) for id_prefix in runs]:
            if equivalent:
                counts = _judged(store, run)
                text = dump_line(_judged_record(run, counts)) if form == "json" else _judged_lines(run, counts)
                click.echo(text, nl=False)
            else:
                diagnosis = price(home, store, run, limit=limit, progress=progress)
                click.echo(dump_line(_record(diagnosis)) if form == "json" else _lines(diagnosis), nl=False)
                faults |= {f"{sample} of {run.id}": fault for sample, fault in diagnosis.faults.items()}
    if faults:
        raise unpriced(faults)


def _open(url: str) -> Store:
    """Open a database to add prices, or for reading if it cannot be written."""
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.engine import Unwritable
    from ctxbench.harness.store.store import open_reader

    try:
        return open_store(url, create=False)
    except Unwritable:
        return open_reader(url)


def _judged(store: Store, run: StoredRun) -> Counter[Judged]:
    from ctxbench.harness.store.scores import judged_completions

    counts = judged_completions(store, run.id)
    if not counts:
        raise InputFault(
            f"no completion of the run {run.id} has a verdict",
            cure="only tests tell what else is right: name a run over functions, and judge it by `ctxbench exec` first",
        )
    return counts


def _judged_record(run: StoredRun, counts: Mapping[Judged, int]) -> dict[str, Any]:
    by_outcome = {
        f"{'exact' if judged.exact else 'other'}_{'passed' if judged.passed else 'failed'}": n
        for judged, n in counts.items()
    }
    return {"run": run.id, "strategy": run.strategy, **dict(sorted(by_outcome.items()))}


def _judged_lines(run: StoredRun, counts: Counter[Judged]) -> str:
    from ctxbench.harness.store.scores import Judged

    exact, others = (counts[Judged(exact=exact, passed=True)] for exact in (True, False))
    lines = [
        f"{run.id}  {run.strategy}  completions with a verdict {counts.total()}",
        f"  tests accept {exact + others}, {others} of them no exact match",
    ]
    if refused := counts[Judged(exact=True, passed=False)]:
        lines.append(f"  tests refuse {refused} that are an exact match: see `ctxbench samples verify`")
    return "".join(f"{line}\n" for line in lines)


def _record(diagnosis: RunDiagnosis) -> dict[str, Any]:
    return {
        "run": diagnosis.run.id,
        "strategy": diagnosis.run.strategy,
        "new": diagnosis.new,
        "left": diagnosis.over_limit,
        "unpriced": diagnosis.unpriced,
        "samples": {
            sample: [{"kind": block.kind, "gain": round(block.bits, 6)} for block in blocks]
            for sample, blocks in diagnosis.blocks.items()
        },
        "faults": {sample: str(fault) for sample, fault in diagnosis.faults.items()},
    }


def _lines(diagnosis: RunDiagnosis) -> str:
    counts = f"samples {len(diagnosis.blocks)}  new {diagnosis.new}  left {diagnosis.over_limit}"
    lines = [f"{diagnosis.run.id}  {diagnosis.run.strategy}  {counts}"]
    if diagnosis.unpriced:
        lines.append(f"  {diagnosis.unpriced} samples cannot be priced: their prompts do not end at the cursor")
    priced = [block for blocks in diagnosis.blocks.values() for block in blocks]
    kinds = sorted({block.kind for block in priced})
    lines += [_summary(kind, [block.bits for block in priced if block.kind == kind]) for kind in kinds]
    if not priced:
        lines.append("  no retrieved block is priced")
    return "".join(f"{line}\n" for line in lines)


def _summary(kind: str, bits: Sequence[float]) -> str:
    mean, median = statistics.fmean(bits), statistics.median(bits)
    helped, hurt = (100 * sum(sign * gain > 1 for gain in bits) / len(bits) for sign in (1, -1))
    return (
        f"  {kind:8} blocks {len(bits)}  mean {mean:+.2f} bits  median {median:+.2f}  "
        f"more than a bit of help {helped:.0f}%, of harm {hurt:.0f}%"
    )

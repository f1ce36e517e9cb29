"""`ctxbench compare`, `power` and `diagnose`: compare runs, plan their size, and measure single retrieved blocks."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import Finite, columns, db_option, format_option, home_option, samples_option
from ctxbench.harness.cli.terminal import progress, say

if TYPE_CHECKING:
    from ctxbench.bench.errors import MachineFault
    from ctxbench.harness.run.stored import RunDiagnosis
    from ctxbench.harness.store import Store


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN...")
@click.option("--metric", metavar="METRIC", help="Compare only this metric; default: all metrics that the runs share.")
@click.option("--profile", default="ctxbench", show_default=True, help="The metric profile.")
@format_option("table", "json")
@home_option
@db_option
def compare(*, runs: tuple[str, ...], metric: str | None, profile: str, form: str, home: Home, db: str | None) -> None:
    """Compare runs with the first RUN, on samples that both completed: differences, p-values, means by repository.

    RUN is a run id from `ctxbench run` or `ctxbench runs`, the beginning of an id, a run's name, or a strategy. A
    strategy means its newest complete run. RUN includes all runs that differ from it only in the seed. If you name two
    of these runs, each run is compared separately.
    """
    from ctxbench.harness.leaderboard import render
    from ctxbench.harness.query import BoardQuery

    comparisons, left_out = BoardQuery(home=home, db=db, profile=profile).compared(runs, metric=metric)
    for language in left_out:
        say(f"{language} is left out: the first run or all other runs have no samples in this language")
    click.echo(render.comparison_json(comparisons) if form == "json" else render.comparison(comparisons), nl=False)


@click.command()
@samples_option
@click.option(
    "--baseline",
    required=True,
    metavar="RUN|SPEC",
    help="The strategy to compare with, or the id or name of one of its runs.",
)
@click.option(
    "--effect",
    required=True,
    type=Finite(min=0, min_open=True),
    metavar="X",
    help="The difference to detect, in the unit that boards show: points or bits.",
)
@click.option(
    "--metric", metavar="METRIC", help="The metric of the difference; default: the metric that ranks the board."
)
@click.option(
    "--rows",
    type=click.IntRange(2, 40),
    default=2,
    show_default=True,
    metavar="N",
    help="Number of rows on the planned board, including the baseline; p is corrected for the other N - 1 rows.",
)
@format_option("table", "json")
@home_option
@db_option
def power(
    *,
    samples: str,
    baseline: str,
    effect: float,
    metric: str | None,
    rows: int,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Print how many repositories, with how many samples each, a run needs to show a difference.

    The estimate simulates repositories whose paired differences vary as in stored runs, and applies the leaderboard's
    test to them (docs/statistics.md).
    """
    import contextlib
    import dataclasses
    import json

    from ctxbench.bench.errors import UnknownName
    from ctxbench.harness.leaderboard import selection
    from ctxbench.harness.leaderboard.power import REPOSITORIES, SAMPLES, plans
    from ctxbench.harness.query import BoardQuery

    query = BoardQuery(home=home, db=db, samples=samples)
    tables = query.tables()
    if not any(selection.is_named(baseline, table.run.strategy) for table in selection.file_labelled(tables)):
        with contextlib.suppress(UnknownName):
            [baseline] = query.ids_of([baseline])
    planned, faults = plans(tables, baseline=baseline, effect=effect, metric=metric, rows=rows)
    if faults and not planned:
        raise faults[0]
    for fault in faults:
        click.echo(str(fault), err=True)
    if form == "json":
        click.echo(json.dumps([dataclasses.asdict(plan) for plan in planned], indent=2))
        return
    for number, plan in enumerate(planned):
        click.echo(
            "\n" * bool(number) + f"{plan.samples}, {plan.language}, {plan.generator}: power for {plan.metric}\n"
        )
        percent = {(count, size): f"{100 * share:.0f} %" for count, size, share in plan.table}
        heads = ["repositories", *(f"{size} samples each" for size in SAMPLES)]
        lines = [[str(count), *(percent[count, size] for size in SAMPLES)] for count in REPOSITORIES]
        for line in columns([heads, *lines]):
            click.echo(line)
        click.echo(f"\n{plan.answer()}\n{plan.basis()}")


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Measure at most N more samples per run.")
@format_option("table", "json", text="Output format; json lists every block.")
@home_option
@db_option
def diagnose(
    *,
    runs: tuple[str, ...],
    limit: int | None,
    form: str,
    home: Home,
    db: str | None,
) -> None:
    """Measure each retrieved block's value: how many more bits the reference costs when only this block is left out.

    RUN is a run's id, the beginning of its id, or its name. Each block is measured separately, so try --limit first.
    Run the command again to measure only what is missing. Afterwards the leaderboard's JSON contains `block_gain`.
    Samples that cannot be measured are listed at the end.
    """
    from ctxbench.bench.files import dump_line
    from ctxbench.harness.run.scoring import unmeasured_fault
    from ctxbench.harness.run.stored import diagnose as measure
    from ctxbench.harness.store.runs import find_run

    faults: dict[str, MachineFault] = {}
    with _open_measured(db or home.database) as store:
        for run in [find_run(store, id_prefix) for id_prefix in runs]:
            diagnosis = measure(home, store, run, limit=limit, progress=progress)
            text = dump_line(_diagnosis_record(diagnosis)) if form == "json" else _diagnosis_lines(diagnosis)
            click.echo(text, nl=False)
            faults |= {f"{sample} of {run.id}": fault for sample, fault in diagnosis.faults.items()}
    if faults:
        raise unmeasured_fault(faults)


def _open_measured(url: str) -> Store:
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.database import Unwritable
    from ctxbench.harness.store.store import open_reader

    try:
        return open_store(url, create=False)
    except Unwritable:
        return open_reader(url)


def _diagnosis_record(diagnosis: RunDiagnosis) -> dict[str, Any]:
    return {
        "run": diagnosis.run.id,
        "strategy": diagnosis.run.strategy,
        "new": diagnosis.new,
        "left": diagnosis.over_limit,
        "unmeasurable": diagnosis.unmeasurable,
        "samples": {
            sample: [{"kind": block.kind, "gain": round(block.bits, 6)} for block in blocks]
            for sample, blocks in diagnosis.blocks.items()
        },
        "faults": {sample: str(fault) for sample, fault in diagnosis.faults.items()},
    }


def _diagnosis_lines(diagnosis: RunDiagnosis) -> str:
    counts = f"samples {len(diagnosis.blocks)}  new {diagnosis.new}  left {diagnosis.over_limit}"
    lines = [f"{diagnosis.run.id}  {diagnosis.run.strategy}  {counts}"]
    if diagnosis.unmeasurable:
        lines.append(f"  {diagnosis.unmeasurable} samples cannot be measured: their prompts do not end at the cursor")
    measured = [block for blocks in diagnosis.blocks.values() for block in blocks]
    kinds = sorted({block.kind for block in measured})
    lines += [_summary(kind, [block.bits for block in measured if block.kind == kind]) for kind in kinds]
    if not measured:
        lines.append("  no retrieved block has been measured")
    return "".join(f"{line}\n" for line in lines)


def _summary(kind: str, bits: Sequence[float]) -> str:
    mean, median = statistics.fmean(bits), statistics.median(bits)
    helped, hurt = (100 * sum(sign * gain > 1 for gain in bits) / len(bits) for sign in (1, -1))
    return (
        f"  {kind:8} blocks {len(bits)}  mean {mean:+.2f} bits  median {median:+.2f}  "
        f"helps by over 1 bit {helped:.0f}%, harms by over 1 bit {hurt:.0f}%"
    )

"""`ctxbench power`: what a difference takes, from stored runs."""

from __future__ import annotations

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import Finite, columns, db_option, format_option, home_option


@click.command()
@click.option("--samples", required=True, metavar="NAME", help="The sample set of the stored runs.")
@click.option(
    "--baseline",
    required=True,
    metavar="RUN|SPEC",
    help="What the difference is from: a strategy, or the id or name of one of its runs.",
)
@click.option(
    "--effect",
    required=True,
    type=Finite(min=0, min_open=True),
    metavar="X",
    help="The difference to be seen, in the unit that boards show: points, bits.",
)
@click.option("--metric", metavar="METRIC", help="Of the difference; default: the one that ranks.")
@click.option(
    "--rows",
    type=click.IntRange(2, 40),
    default=2,
    show_default=True,
    metavar="N",
    help="Ranked rows of the board that will test it: it corrects for all pairs of them.",
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
    """Say how many repositories, with how many samples each, show a difference: before the run.

    Stored runs tell how paired differences vary between repositories and within them; the leaderboard's own test, on
    simulated repositories that vary so, tells the power (docs/statistics.md).
    """
    import contextlib
    import dataclasses
    import json

    from ctxbench.bench.errors import UnknownName
    from ctxbench.harness.leaderboard import choices
    from ctxbench.harness.leaderboard.power import REPOSITORIES, SAMPLES, plans
    from ctxbench.harness.query import BoardQuery

    query = BoardQuery(home=home, db=db, samples=samples)
    tables = query.tables()
    if not any(choices.is_named(baseline, table.run.strategy) for table in choices.file_labelled(tables)):
        with contextlib.suppress(UnknownName):
            [baseline] = query.ids_of([baseline])
    telling, faults = plans(tables, baseline=baseline, effect=effect, metric=metric, rows=rows)
    if faults and not telling:
        raise faults[0]
    for fault in faults:
        click.echo(str(fault), err=True)
    if form == "json":
        click.echo(json.dumps([dataclasses.asdict(plan) for plan in telling], indent=2))
        return
    for number, plan in enumerate(telling):
        click.echo(
            "\n" * bool(number) + f"{plan.samples}, {plan.language}, {plan.generator}: power for {plan.metric}\n"
        )
        percent = {(count, size): f"{100 * share:.0f} %" for count, size, share in plan.table}
        heads = ["repositories", *(f"{size} samples each" for size in SAMPLES)]
        lines = [[str(count), *(percent[count, size] for size in SAMPLES)] for count in REPOSITORIES]
        for line in columns([heads, *lines]):
            click.echo(line)
        click.echo(f"\n{plan.answer()}\n{plan.basis()}")

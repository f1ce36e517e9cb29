"""`ctxbench run`: strategies over a sample set with a generator; goes on where an earlier call ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from bench.home import Home
from harness.cli.options import db_option, home_option

if TYPE_CHECKING:
    from harness.attempt import Summary


@click.command()
@click.option("--samples", required=True, metavar="NAME", help="The sample set (see `ctxbench samples list`).")
@click.option(
    "--strategy",
    "strategies",
    required=True,
    multiple=True,
    metavar="SPEC",
    help="A strategy, name(key=value, …); give the option again for more (see `ctxbench strategy list`).",
)
@click.option(
    "--generator", required=True, metavar="SPEC", help="The model, name(key=value, …) (see `ctxbench generator list`)."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Take N samples, from the repositories in turn.")
@click.option(
    "--n", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Completions a sample."
)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="W", help="Strategies at work at once; default: one a core."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="Seed of strategies and decoding.",
)
@home_option
@db_option
def run(
    *,
    samples: str,
    strategies: tuple[str, ...],
    generator: str,
    limit: int | None,
    n: int,
    workers: int | None,
    seed: int,
    home: Home,
    db: str | None,
) -> None:
    """Run strategies over a sample set with a generator, and store every result.

    Prints a line a strategy: run id, strategy, samples scored, failed by the model, missing. The same
    command again does only what is missing; it ends with exit code 1 as long as something is.
    """
    from bench import samples as sets
    from harness.cli.progress import progress
    from harness.runner import Choices, fault_of
    from harness.runner import run as run_strategies
    from harness.store import open_store

    sample_set = sets.load(home, samples)
    with open_store(db or home.database) as store:
        summaries = run_strategies(
            home,
            store,
            sample_set,
            strategies=strategies,
            generator=generator,
            choices=Choices(limit=limit, n=n, seed=seed, workers=workers),
            progress=progress,
            report=_say,
        )
    fault = fault_of(summaries)
    if fault is not None:
        raise fault


def _say(summary: Summary) -> None:
    click.echo(
        f"{summary.run}  {summary.strategy}  scored {summary.scored}  "
        f"model-failed {summary.model_failed}  missing {summary.missing}"
    )

"""`ctxbench engine`: list, show and check context engines, and measure whether one leaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import check_line, columns, db_option, home_option, sandbox_name
from ctxbench.harness.cli.terminal import progress, remarks

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.compare import Compared
    from ctxbench.harness.leaderboard.pairs import Difference

_SANDBOX = click.option(
    "--sandbox",
    metavar="[docker|bubblewrap]",
    callback=sandbox_name(),
    help="Whose boxes engines live in. Default: docker where an engine answers, else bubblewrap.",
)


@click.group()
def engine() -> None:
    """List, show and check context engines, and measure whether one leaks (see docs/writing-an-engine.md)."""


@engine.command("list")
def list_() -> None:
    """List the installed engines: name, summary."""
    from ctxbench.bench.engines import recipe
    from ctxbench.bench.errors import InputFault

    rows, broken = [], []
    for name in recipe.names():
        try:
            rows.append((name, recipe.read(name).summary))
        except InputFault as fault:
            broken.append(str(fault))
    for line in columns(rows):
        click.echo(line)
    for line in broken:
        click.echo(f"left out: {line}", err=True)


@engine.command()
@click.argument("spec")
def show(spec: str) -> None:
    """Show one engine: what it does, its parameters with their defaults, what its box holds. Nothing of it is run.

    SPEC is name(key=value, …), path/to/file.py@Class(key=value, …), or path/to/file.toml.
    """
    from ctxbench.bench.engines import recipe

    read = recipe.read(spec)
    click.echo(read.spec)
    click.echo(f"mode: {read.mode}")
    click.echo(f"defined in: {read.origin} ({f'class {read.entry}, ' if read.entry else ''}version {read.version})")
    if read.remote:
        click.echo(f"runs elsewhere: {read.remote}")
    else:
        click.echo(f"installed in its box: {', '.join((*read.requirements, *read.programs)) or 'nothing'}")
    click.echo("parameters:")
    for parameter in read.parameters:
        value = read.mode if parameter.name == "mode" else read.arguments.get(parameter.name, parameter.default)
        click.echo(f"  {parameter.name} = {value}  ({parameter.expects})")
    click.echo(f"\n{read.summary or 'It says nothing of itself.'}")


@engine.command()
@click.argument("spec")
@_SANDBOX
@home_option
def check(spec: str, *, sandbox: str | None, home: Home) -> None:
    """Run the conformance list in a box, on a tiny repository, one line a check; exit 1 if one fails.

    SPEC is as for `ctxbench engine show`.
    """
    from ctxbench.bench.engines import conformance, recipe
    from ctxbench.harness.run.execution import back_end

    read, failed, count = recipe.read(spec), 0, 0
    with remarks():
        boxes = None if read.remote else back_end(home, sandbox)
        for finding in conformance.check(read, boxes, lambda line: click.echo(line, err=True)):
            count, failed = count + 1, failed + (not finding.passed)
            click.echo(check_line(finding.name, finding.detail, passed=finding.passed, width=29))
    click.echo(f"{count - failed} of {count} checks passed")
    if failed:
        raise click.exceptions.Exit(1)


@engine.command("measure-leak")
@click.argument("spec")
@click.option("--samples", required=True, metavar="NAME", help="The sample set.")
@click.option(
    "--limit",
    type=click.IntRange(min=2),
    default=60,
    show_default=True,
    metavar="N",
    help="Samples that are drawn, from the repositories in turn.",
)
@click.option("--generator", default="incontext", show_default=True, metavar="SPEC", help="The model.")
@click.option("--workers", type=click.IntRange(min=1), metavar="W", help="Boxes at work at once; default: one a core.")
@_SANDBOX
@home_option
@db_option
def measure_leak(
    spec: str,
    *,
    samples: str,
    limit: int,
    generator: str,
    workers: int | None,
    sandbox: str | None,
    home: Home,
    db: str | None,
) -> None:
    """Run an engine in both modes on a drawn part of a set, and print what the shared mode gains, with its interval.

    In per-file mode its tree holds no answer of its samples. What it gains by seeing target files whole is a leak,
    or the code between two cursors of a file. The runs are stored, and are those of `ctxbench run` with --limit.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.engines import recipe
    from ctxbench.bench.engines.types import Mode
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.spec import Spec, parse
    from ctxbench.harness.leaderboard import compare as comparing
    from ctxbench.harness.leaderboard import render
    from ctxbench.harness.query import BoardQuery
    from ctxbench.harness.run.runner import fault_of, run
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    read = recipe.read(spec)
    if read.remote:
        raise InputFault(
            "asks a server elsewhere, which has one mode", where=spec, cure="name an engine that lives in a box"
        )
    engine_spec = parse(read.spec)
    other_arguments = {key: value for key, value in engine_spec.arguments.items() if key != "mode"}
    specs = [
        Spec(engine_spec.name, other_arguments),
        Spec(engine_spec.name, {**other_arguments, "mode": Mode.SHARED.value}),
    ]
    strategies = [str(Spec("engine", {"name": str(spelled)})) for spelled in specs]
    sample_set = sets.load(home, samples)
    options = RunOptions(limit=limit, workers=workers, sandbox=sandbox)
    with open_store(db or home.database) as store:
        summaries = run(
            home, store, sample_set, strategies=strategies, generator=generator, choices=options, progress=progress
        )
    if (fault := fault_of(summaries)) is not None:
        raise fault
    ids = [summary.run for summary in summaries]
    tables = [table for table in BoardQuery(home=home, db=db, samples=samples).tables() if table.run.id in ids]
    compared: list[Compared] = []
    for language in sorted({table.run.language for table in tables}):
        pair = [table for id_ in ids for table in tables if (table.run.id, table.run.language) == (id_, language)]
        compared += comparing.compare(pair)
    click.echo(render.comparison(compared), nl=False)
    for line in _verdicts(compared):
        click.echo(line)


def _verdicts(compared: list[Compared]) -> Iterator[str]:
    """Yield a line a language on the metric that boards rank by, context gain where it is measured."""
    for language in dict.fromkeys(pair.this.language for pair in compared):
        pairs = {pair.metric: pair.difference for pair in compared if pair.this.language == language}
        metric = "context_gain" if "context_gain" in pairs else next(iter(pairs))
        yield f"shared minus per-file, {language}, {metric}: {_judged(pairs[metric])}"


def _judged(difference: Difference) -> str:
    mean, low, high = difference.mean, difference.low, difference.high
    if mean is None or low is None or high is None:
        return "too few samples for an interval"
    words = "it gains by what it saw: a leak" if low > 0 else "no leak can be seen at this size"
    return f"{mean:+.3g} [{low:+.3g}, {high:+.3g}]; {words}"

"""`ctxbench strategy`, `engine` and `generator`: list, show and check plug-ins; measure leaks of engines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    check_line,
    columns,
    db_option,
    home_option,
    run_workers_option,
    samples_option,
    sandbox_choice,
    strategy_seconds_option,
)
from ctxbench.harness.cli.terminal import progress, remarks, say
from ctxbench.harness.metrics import COPYABLE, GAIN

if TYPE_CHECKING:
    from ctxbench.harness.leaderboard.compare import Compared
    from ctxbench.harness.leaderboard.pairs import Difference
    from ctxbench.strategies.registry import Registration


_LINES, _FUNCTIONS, _BOTH = "For lines", "For functions", "For lines and functions"
_WRAPPERS = "Wrappers of another strategy, as in aim(lc.repocoder)"
_CONTROLS = "Controls: built from the answer; shown on the leaderboard, never ranked"
_GROUPS = (_LINES, _FUNCTIONS, _BOTH, _WRAPPERS, _CONTROLS)


@click.group()
def strategy() -> None:
    """List, show and check context strategies."""


@strategy.command("list")
@click.argument("text", required=False, default="")
@click.option(
    "--presets",
    is_flag=True,
    help="List the presets instead: preset, strategy, model, summariser, encoder, table in the paper.",
)
@home_option
def list_strategies(text: str, *, presets: bool, home: Home) -> None:
    """List the installed strategies by purpose: name and summary.

    With TEXT, only strategies with this text in their line are listed, ignoring case.
    """
    if presets:
        for line in _presets():
            if text.lower() in line.lower():
                click.echo(line)
        return
    grouped, broken = _grouped(home)
    width = max(len(name) for rows in grouped.values() for name, _ in rows)
    for group in _GROUPS:
        rows = [row for row in grouped[group] if text.lower() in f"{row[0]} {row[1]}".lower()]
        if rows:
            click.echo(f"{group}:")
        for name, summary in rows:
            click.echo(f"  {name:{width}}  {summary}")
    if not text:
        from ctxbench.harness.papers.presets import presets as known

        click.echo(f"Presets: {len(known())} rows of papers' tables (`ctxbench strategy list --presets`)")
    for line in broken:
        click.echo(f"left out: {line}", err=True)


def _grouped(home: Home) -> tuple[dict[str, list[tuple[str, str]]], list[str]]:
    """Return group -> (name, summary) of its strategies, and a message per broken strategy."""
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.cells import open_registrations
    from ctxbench.strategies.registry import CONTROLS

    grouped: dict[str, list[tuple[str, str]]] = {group: [] for group in _GROUPS}
    broken = []
    with open_registrations([home.root]) as registrations:
        installed = registrations.installed()
    for name, registration in installed.items():
        if isinstance(registration, InputFault):
            broken.append(str(registration))
        else:
            grouped[_group(registration)].append((name, registration.summary))
    grouped[_CONTROLS] += CONTROLS.items()
    return grouped, broken


def _group(registration: Registration) -> str:
    from ctxbench.bench.types import Kind

    if any(parameter.wraps for parameter in registration.parameters):
        return _WRAPPERS
    if len(registration.kinds) > 1:
        return _BOTH
    return _LINES if Kind.LINE in registration.kinds else _FUNCTIONS


def _presets() -> Iterator[str]:
    from ctxbench.harness.papers.presets import presets

    return columns(
        [
            (row.preset, row.strategy or "external", row.model, row.summariser or "-", row.encoder or "-", row.table)
            for row in presets().values()
        ]
    )


@strategy.command("show")
@click.argument("name")
@home_option
def show_strategy(name: str, *, home: Home) -> None:
    """Show a strategy: what it does, its parameters with defaults, and where it is defined.

    NAME is an installed strategy, path/to/file.py@name, a preset, or a control.
    """
    from ctxbench.harness.cells import open_registrations
    from ctxbench.harness.papers.presets import presets, spec_of
    from ctxbench.strategies.registry import CONTROLS

    if name in CONTROLS:
        click.echo(f"{name}\n{_CONTROLS.lower()}\n\n{CONTROLS[name]}")
        return
    row = presets().get(name.partition("(")[0].strip())
    with open_registrations([home.root]) as registrations:
        bound = registrations.bound(spec_of(name))
    registration = bound.strategy
    click.echo(f"{bound.spec}")
    if row is not None:
        click.echo(f"preset: {name} ({row.table}, row {row.row}: {row.method}, {row.model}, {row.benchmark})")
        if row.summariser:
            click.echo(f"summaries in the paper: by {row.summariser} (--summariser)")
    click.echo(f"kinds: {', '.join(sorted(bound.kinds))}")
    click.echo(f"languages: {', '.join(sorted(bound.languages)) or 'all'}")
    click.echo(f"asks the model for drafts: {'yes' if bound.drafts else 'no'}")
    click.echo(f"runs the model's code: {'yes, in the sandbox' if bound.executes else 'no'}")
    click.echo(f"defined in: {registration.source} (version {registration.version or 'unknown'})")
    for line in _papers(registration.name):
        click.echo(f"in the papers: {line}")
    click.echo("parameters:" if registration.parameters else "parameters: none")
    for parameter in registration.parameters:
        default = str(bound.arguments.get(parameter.name, parameter.default))
        default = default.lower() if parameter.kind is bool else default
        click.echo(f"  {parameter.name} = {default}  ({parameter.expects})")
    click.echo(f"\n{registration.text or 'The strategy has no docstring.'}")


def _papers(name: str) -> Iterator[str]:
    from ctxbench.bench.spec import parse
    from ctxbench.harness import paper_tables

    for table in map(paper_tables.table, paper_tables.NAMES):
        methods = dict.fromkeys(row.method for row in table.rows if row.strategy and parse(row.strategy).name == name)
        if methods:
            yield f"{table.paper}, {table.title} ({'; '.join(methods)})"


@strategy.command("check")
@click.argument("spec")
@click.option(
    "--samples",
    metavar="NAME",
    help="Hide installed packages that contain this set's targets, as a run over the set does.",
)
@strategy_seconds_option
@home_option
def check_strategy(spec: str, *, samples: str | None, strategy_seconds: float, home: Home) -> None:
    """Run a strategy's conformance checks on a tiny repository, in a cell as in a run; exit 1 if one fails.

    SPEC is name(key=value, …), path/to/file.py@name(key=value, …), or a preset.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.harness.cells import StrategyBounds, checked
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.resources import kept_from_strategies

    hidden = [home.root]
    if samples is not None:
        hidden = kept_from_strategies(home, str(home.root), sets.load(home, samples))
    with remarks():
        findings = checked(spec_of(spec), hidden, StrategyBounds.of_work(strategy_seconds))
    _print_checks(findings, max(len(finding.name) for finding in findings))


def _print_checks(findings: Iterable[Any], width: int) -> None:
    count = failed = 0
    for finding in findings:
        count, failed = count + 1, failed + (not finding.passed)
        click.echo(check_line(finding.name, finding.detail, passed=finding.passed, width=width))
    click.echo(f"{count - failed} of {count} checks passed")
    if failed:
        raise click.exceptions.Exit(1)


_SANDBOX = sandbox_choice("Where engines run.")


@click.group()
def engine() -> None:
    """List, show and check context engines, and measure whether one leaks (see docs/engine.md)."""


@engine.command("list")
def list_engines() -> None:
    """List the installed engines: name and summary."""
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


@engine.command("show")
@click.argument("spec")
def show_engine(spec: str) -> None:
    """Show an engine: what it does, its parameters with defaults, what its box contains. Nothing is run.

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
    click.echo(f"\n{read.summary or 'The engine has no description.'}")


@engine.command("check")
@click.argument("spec")
@_SANDBOX
@home_option
def check_engine(spec: str, *, sandbox: str | None, home: Home) -> None:
    """Run an engine's conformance checks in a box, on a tiny repository; print a line per check; exit 1 if one fails.

    SPEC is as for `ctxbench engine show`.
    """
    from ctxbench.bench.engines import conformance, recipe
    from ctxbench.harness.run.execution import back_end

    read = recipe.read(spec)
    with remarks():
        boxes = None if read.remote else back_end(home, sandbox)
        _print_checks(conformance.check(read, boxes, say), 29)


@engine.command("measure-leak")
@click.argument("spec")
@samples_option
@click.option(
    "--limit",
    type=click.IntRange(min=2),
    default=60,
    show_default=True,
    metavar="N",
    help="Samples to draw, from the repositories in turn.",
)
@click.option(
    "--generator", default="incontext", show_default=True, metavar="SPEC", help="The model that completes the samples."
)
@run_workers_option
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
    """Run an engine in both modes on drawn samples of a set, and print the gain of shared mode, with its interval.

    In per-file mode, the engine's tree contains no answers to its samples. In shared mode it contains whole target
    files: a gain there is a leak, or comes from code between two cursors of a file. The runs are stored, as by
    `ctxbench run` with --limit.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.engines import recipe
    from ctxbench.bench.engines.types import Mode
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.spec import POSITIONAL, Spec, parse
    from ctxbench.harness.leaderboard import render
    from ctxbench.harness.query import BoardQuery
    from ctxbench.harness.run.runner import fault_of, run
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    read = recipe.read(spec)
    if read.remote:
        raise InputFault(
            "the engine runs on a server, which has only one mode", where=spec, cure="name an engine that runs in a box"
        )
    engine_spec = parse(read.spec)
    other_arguments = {key: value for key, value in engine_spec.arguments.items() if key != "mode"}
    specs = [
        Spec(engine_spec.name, other_arguments),
        Spec(engine_spec.name, {**other_arguments, "mode": Mode.SHARED.value}),
    ]
    strategies = [str(Spec("engine", {POSITIONAL: str(spelled)})) for spelled in specs]
    sample_set = sets.load(home, samples)
    options = RunOptions(limit=limit, workers=workers, sandbox=sandbox)
    with open_store(db or home.database) as store:
        summaries = run(
            home, store, sample_set, strategies=strategies, generator=generator, choices=options, progress=progress
        )
    if (fault := fault_of(summaries)) is not None:
        raise fault
    compared, _ = BoardQuery(home=home, db=db, samples=samples).compared([summary.run for summary in summaries])
    click.echo(render.comparison(compared), nl=False)
    for line in _verdicts(compared):
        click.echo(line)


def _verdicts(compared: list[Compared]) -> Iterator[str]:
    for language in dict.fromkeys(pair.this.language for pair in compared):
        pairs = {pair.metric: pair.difference for pair in compared if pair.this.language == language}
        metric = next((name for name in (GAIN, COPYABLE) if name in pairs), next(iter(pairs)))
        yield f"shared minus per-file, {language}, {metric}: {_judged(pairs[metric])}"


def _judged(difference: Difference) -> str:
    mean, low, high = difference.mean, difference.low, difference.high
    if mean is None or low is None or high is None:
        return "too few samples for an interval; raise --limit"
    words = "shared mode scores higher: a likely leak" if low > 0 else "no leak is visible with this many samples"
    return f"{mean:+.3g} [{low:+.3g}, {high:+.3g}]; {words}"


@click.group()
def generator() -> None:
    """List and check generators."""


@generator.command("list")
def list_generators() -> None:
    """List the installed generators: name, summary, parameters with defaults.

    Each also accepts cutoff=2024-06: the day or month when the model's training data ends (see docs/fidelity.md).
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.bench.spec import spelled
    from ctxbench.harness.generators import base

    broken = []
    for name in base.names():
        try:
            summary, parameters = base.summary(name), base.parameters(name)
        except InputFault as error:
            broken.append(str(error))
            continue
        click.echo(f"{name:16} {summary}")
        if parameters:
            inner = ", ".join(f"{p.name}={'…' if p.required else spelled(p.default) or '…'}" for p in parameters)
            click.echo(f"{'':16} {name}({inner})")
    for line in broken:
        click.echo(f"left out: {line}", err=True)


@generator.command("check")
@click.argument("spec")
def check_generator(spec: str) -> None:
    """Check what a generator must do, and show what else it can do.

    The generator completes a tiny prompt a few times. Prints a line per check; exit 1 if one fails.

    SPEC is name(key=value, …).
    """
    from contextlib import closing

    from ctxbench.harness.generators import base, conformance

    with remarks(), closing(base.resolve(spec)) as model:
        _print_checks(conformance.check(model), 24)
        click.echo()
        lines = [*conformance.abilities(model), ("answered by", ", ".join(model.served))]
    for name, words in lines:
        if words:
            click.echo(f"{name:13} {words}")

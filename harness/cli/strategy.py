"""`ctxbench strategy`: list, show and check strategies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import check_line, columns, home_option, strategy_seconds_option
from ctxbench.harness.cli.terminal import remarks

if TYPE_CHECKING:
    from ctxbench.strategies.registry import Registration

_LINES, _FUNCTIONS, _BOTH = "For lines", "For functions", "For lines and functions"
_WRAPPERS = "Wrappers: take another strategy, as in aim(lc.repocoder)"
_CONTROLS = "Controls: made with the answer; shown on the leaderboard, never ranked"
_GROUPS = (_LINES, _FUNCTIONS, _BOTH, _WRAPPERS, _CONTROLS)


@click.group()
def strategy() -> None:
    """List, show and check context strategies."""


@strategy.command("list")
@click.argument("text", required=False, default="")
@click.option(
    "--presets",
    is_flag=True,
    help="List the presets instead: preset, strategy, model, summariser, encoder, table of the paper.",
)
@click.option("--parameters", is_flag=True, help="Add a line with the parameters and their defaults.")
@home_option
def list_(text: str, *, presets: bool, parameters: bool, home: Home) -> None:
    """List the installed strategies by what they are for: name, summary.

    TEXT keeps only those that have it in their line, in any case.
    """
    if presets:
        for line in _presets():
            if text.lower() in line.lower():
                click.echo(line)
        return
    grouped, broken = _grouped(home, parameters=parameters)
    width = max(len(name) for rows in grouped.values() for name, *_ in rows)
    for group in _GROUPS:
        rows = [row for row in grouped[group] if text.lower() in f"{row[0]} {row[1]}".lower()]
        if rows:
            click.echo(f"{group}:")
        for name, summary, spelling in rows:
            click.echo(f"  {name:{width}}  {summary}")
            if spelling:
                click.echo(f"  {'':{width}}  {spelling}")
    if not text:
        from ctxbench.harness.papers.presets import presets as known

        click.echo(f"Presets: {len(known())} rows of the papers' tables (`ctxbench strategy list --presets`)")
    for line in broken:
        click.echo(f"left out: {line}", err=True)


def _grouped(home: Home, *, parameters: bool) -> tuple[dict[str, list[tuple[str, str, str]]], list[str]]:
    """Return group -> (name, summary, spelling) of each strategy, and the reasons why others are left out."""
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.cells import open_registrations
    from ctxbench.strategies.registry import CONTROLS

    grouped: dict[str, list[tuple[str, str, str]]] = {group: [] for group in _GROUPS}
    broken = []
    with open_registrations([home.root]) as registrations:
        installed = registrations.installed()
    for name, registration in installed.items():
        if isinstance(registration, InputFault):
            broken.append(str(registration))
        else:
            grouped[_group(registration)].append(
                (name, registration.summary, _spelling(registration) if parameters else "")
            )
    grouped[_CONTROLS] += [(name, summary, "") for name, summary in CONTROLS.items()]
    return grouped, broken


def _group(registration: Registration) -> str:
    from ctxbench.bench.types import Kind

    if any(parameter.wraps for parameter in registration.parameters):
        return _WRAPPERS
    if len(registration.kinds) > 1:
        return _BOTH
    return _LINES if Kind.LINE in registration.kinds else _FUNCTIONS


def _spelling(registration: Registration) -> str:
    from ctxbench.bench.spec import Spec

    if not registration.parameters:
        return ""
    inner = [str(Spec("x", {p.name: p.default}))[2:-1] for p in registration.parameters]
    return f"{registration.name}({', '.join(inner)})"


def _presets() -> Iterator[str]:
    from ctxbench.harness.papers.presets import presets

    return columns(
        [
            (row.preset, row.strategy or "external", row.model, row.summariser or "-", row.encoder or "-", row.table)
            for row in presets().values()
        ]
    )


@strategy.command()
@click.argument("name")
@home_option
def show(name: str, *, home: Home) -> None:
    """Show one strategy: what it does, its parameters with their defaults, where it comes from.

    NAME is an installed strategy, path/to/file.py@name, a preset, or a control.
    """
    from ctxbench.harness.cells import open_registrations
    from ctxbench.harness.papers.presets import presets, spec_of
    from ctxbench.strategies.registry import CONTROLS

    if name in CONTROLS:
        click.echo(f"{name}\n{_CONTROLS.lower()}\n\n{CONTROLS[name]}")
        return
    row = presets().get(name.partition("(")[0].partition("+")[0].strip())
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
    click.echo(f"asks the model on the way: {'yes' if bound.drafts else 'no'}")
    click.echo(f"runs what the model wrote: {'yes, in the sandbox' if bound.executes else 'no'}")
    click.echo(f"defined in: {registration.source} (version {registration.version or 'unknown'})")
    for line in _papers(registration.name):
        click.echo(f"in the papers: {line}")
    click.echo("parameters:" if registration.parameters else "parameters: none")
    for parameter in registration.parameters:
        default = str(bound.arguments.get(parameter.name, parameter.default))
        default = default.lower() if parameter.kind is bool else default
        click.echo(f"  {parameter.name} = {default}  ({parameter.expects})")
    click.echo(f"\n{registration.text or 'It has no docstring.'}")


def _papers(name: str) -> Iterator[str]:
    """Yield the tables that have rows of a strategy, with the rows' names there."""
    from ctxbench.bench.spec import parse
    from ctxbench.harness import paper_tables

    for table in map(paper_tables.table, paper_tables.NAMES):
        methods = dict.fromkeys(row.method for row in table.rows if row.strategy and parse(row.strategy).name == name)
        if methods:
            yield f"{table.paper}, {table.title} ({'; '.join(methods)})"


@strategy.command()
@click.argument("spec")
@click.option(
    "--samples",
    metavar="NAME",
    help="Hide the installed packages that hold this set's targets, as a run over it does.",
)
@strategy_seconds_option
@home_option
def check(spec: str, *, samples: str | None, strategy_seconds: float, home: Home) -> None:
    """Run the conformance list on a tiny repository, in the cell of a run, one line a check; exit 1 if one fails.

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
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        click.echo(check_line(finding.name, finding.detail, passed=finding.passed, width=width))
    failed = sum(not finding.passed for finding in findings)
    click.echo(f"{len(findings) - failed} of {len(findings)} checks passed")
    if failed:
        click.get_current_context().exit(1)

"""`ctxbench strategy`: list, show and check strategies."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from strategies.registry import Strategy


@click.group()
def strategy() -> None:
    """List, show and check context strategies."""


@strategy.command("list")
def list_() -> None:
    """List the installed strategies: name, task kinds, parameters, summary."""
    from bench.errors import InputFault
    from strategies import registry

    rows, broken = [], []
    for name in registry.names():
        try:
            found = registry.get(name)
        except InputFault as error:
            broken.append(str(error))
            continue
        rows.append((name, ",".join(sorted(found.kinds)), found.summary, _spelling(found)))
    for name, kinds, summary, spelling in rows:
        click.echo(f"{name:16} {kinds:14} {summary}")
        if spelling:
            click.echo(f"{'':16} {spelling}")
    for line in broken:
        click.echo(f"left out: {line}", err=True)


def _spelling(found: Strategy) -> str:
    from bench.spec import Spec

    if not found.parameters:
        return ""
    inner = [str(Spec("x", {p.name: p.default}))[2:-1] for p in found.parameters]
    return f"{found.name}({', '.join(inner)})"


@strategy.command()
@click.argument("name")
def show(name: str) -> None:
    """Show one strategy: what it does, its parameters with their defaults, where it comes from.

    NAME is an installed strategy, or path/to/file.py@name.
    """
    from strategies import resolve

    bound = resolve(name)
    found = bound.strategy
    click.echo(f"{bound.spec}")
    click.echo(f"kinds: {', '.join(sorted(found.kinds))}")
    click.echo(f"asks the model on the way: {'yes' if found.drafts else 'no'}")
    click.echo(f"defined in: {found.source or found.function.__module__} (version {found.version or 'unknown'})")
    click.echo("parameters:" if found.parameters else "parameters: none")
    for parameter in found.parameters:
        default = str(bound.arguments.get(parameter.name, parameter.default))
        default = default.lower() if parameter.kind is bool else default
        click.echo(f"  {parameter.name} = {default}  ({parameter.expects})")
    click.echo(f"\n{inspect.getdoc(found.function) or 'It has no docstring.'}")


@strategy.command()
@click.argument("spec")
def check(spec: str) -> None:
    """Run the conformance list on a tiny repository, one line a check; exit 1 if one fails.

    SPEC is name(key=value, …), or path/to/file.py@name(key=value, …).
    """
    from strategies import resolve
    from strategies.conformance import check as conformance

    findings = conformance(resolve(spec))
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        click.echo(f"{'pass' if finding.passed else 'FAIL'}  {finding.name:{width}}  {finding.detail}")
    failed = sum(not finding.passed for finding in findings)
    click.echo(f"{len(findings) - failed} of {len(findings)} checks passed")
    if failed:
        click.get_current_context().exit(1)

"""`ctxbench generator`: list the generators."""

from __future__ import annotations

import click


@click.group()
def generator() -> None:
    """List generators."""


@generator.command("list")
def list_() -> None:
    """List the installed generators: name, summary, parameters with their defaults."""
    from bench.errors import InputFault
    from harness.generators import registry

    broken = []
    for name in registry.names():
        try:
            card = registry.card(name)
        except InputFault as error:
            broken.append(str(error))
            continue
        click.echo(f"{name:16} {card.summary}")
        if card.parameters:
            inner = ", ".join(f"{key}={default or '…'}" for key, default in card.parameters)
            click.echo(f"{'':16} {name}({inner})")
    for line in broken:
        click.echo(f"left out: {line}", err=True)

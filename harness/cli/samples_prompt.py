"""``ctxbench samples prompt``: the exact prompt that a strategy makes of a sample, and where each part comes from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option, sandbox_name, summariser_options, tokenizer_option
from ctxbench.harness.cli.terminal import remarks

if TYPE_CHECKING:
    from ctxbench.strategies.api import Block, Dropped, Prompt


@click.command()
@click.argument("name", metavar="SET")
@click.argument("sample_id", metavar="ID")
@click.option("--strategy", required=True, metavar="SPEC", help="A strategy or a preset.")
@click.option(
    "--generator",
    default="incontext",
    show_default=True,
    metavar="SPEC",
    help="The model that a strategy asks on the way, and whose window the prompt must fit.",
)
@summariser_options
@tokenizer_option
@click.option("--origins", is_flag=True, help="Print each block under its kind, places, score and tokens.")
@click.option("--fim", is_flag=True, help="As of a run that fills in the middle.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="S", help="Seed of the strategy."
)
@click.option(
    "--sandbox",
    metavar="[docker|bubblewrap|none]",
    callback=sandbox_name("none"),
    help="What runs the programs of strategies that run any.",
)
@home_option
@db_option
def prompt(
    *,
    name: str,
    sample_id: str,
    strategy: str,
    generator: str,
    origins: bool,
    home: Home,
    db: str | None,
    **choices: Any,
) -> None:
    """Print the exact prompt that a strategy makes of the sample ID of SET, to the byte.

    A strategy that asks the model on the way, for a draft or a summary, asks it; answers that are stored are used. No
    run is stored.
    """
    from ctxbench.bench import code_tokens
    from ctxbench.bench import samples as sets
    from ctxbench.bench.code_tokens import P50kBase
    from ctxbench.harness.papers.presets import spec_of
    from ctxbench.harness.run.runner import prompt_of
    from ctxbench.harness.run.spec import RunOptions
    from ctxbench.harness.store import open_store

    sample_set = sets.load(home, name)
    sample = sets.find(sample_set, sample_id)
    with open_store(db or home.database) as store, remarks():
        exact_prompt = prompt_of(
            home,
            store,
            sample_set,
            sample,
            strategy=spec_of(strategy),
            generator=generator,
            choices=RunOptions(**choices),
        )
    if not origins:
        click.echo(exact_prompt.text, nl=False)
        return
    file: Path | None = choices["tokenizer"]
    _show_origins(exact_prompt, code_tokens.count if file is None else P50kBase(file).count)


def _show_origins(prompt: Prompt, count: Callable[[str], int]) -> None:
    """Print the blocks of a prompt, each under its origin, then what was left out of it."""
    for block in prompt.blocks:
        cut = ", cut" if block.cut else ""
        click.echo(f"=== {_origin(block)}, {count(block.text)} tokens{cut}")
        click.echo(block.text, nl=not block.text.endswith("\n"))
    for dropped in prompt.dropped:
        click.echo(f"=== left out ({dropped.reason}): {_origin(dropped)}")
    if prompt.flags:
        click.echo(f"=== flags: {', '.join(prompt.flags)}")


def _origin(block: Block | Dropped) -> str:
    places = ", ".join(f"{place.path}:{place.start + 1}-{place.end}" for place in block.places)
    score = "" if block.score is None else f", score {block.score:.4g}"
    return f"{block.kind}{f' {places}' if places else ''}{score}"

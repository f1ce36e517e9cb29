"""`ctxbench samples import`, `export` and `prompt`: convert other benchmarks' sample sets, and print exact prompts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import (
    FormatChoice,
    WithShapes,
    db_option,
    home_option,
    language_option,
    opened_sandbox,
    sandbox_choice,
    sandbox_option,
    seed_option,
    summariser_options,
    tokenizer_option,
    workers_option,
)
from ctxbench.harness.cli.terminal import remarks, say

if TYPE_CHECKING:
    from ctxbench.bench.formats import Options
    from ctxbench.bench.samples import SampleSet
    from ctxbench.strategies.api import Block, Dropped, Prompt


_SHAPES = FormatChoice("samples")


@click.command("import", cls=WithShapes)
@click.argument("files", nargs=-1, required=True)
@click.option("--format", "shape", type=_SHAPES, required=True, help="Format of the files.")
@click.option("--name", required=True, help="Name of the new set.")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder that contains each repository in a folder of its name, or the folder of the only repository.",
)
@language_option("Refuse files in other languages.")
@click.option(
    "--docstring",
    type=click.Choice(["raw", "human"]),
    default=None,
    help="CoderEval: the original docstrings (raw, the default), or the ones that people wrote for CoderEval (human).",
)
@click.option(
    "--hygiene",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Hide copies of answers from strategies; off reproduces published settings and adds a remark to the set.",
)
@click.option(
    "--packages",
    is_flag=True,
    help="Let strategies also search packages installed in the repositories' folders, as in the ICL paper.",
)
@click.option(
    "--rebuild", is_flag=True, help="For CoderEval: rebuild the projects, and judge by their tests; needs a sandbox."
)
@sandbox_option
@workers_option("With --rebuild: samples to judge at once.")
@click.option("--force", is_flag=True, help="Replace an existing set of this name.")
@home_option
def import_files(files: tuple[str, ...], shape: str, name: str, **arguments: Any) -> None:
    """Build a sample set from another benchmark's FILES.

    FILES are JSON Lines, JSON documents (.json), both also gzipped (.gz), or Parquet files. With --repos, prompts are
    built from the repositories, and strategies can search these. Without it, strategies have only the text in FILES.
    Tasks that cannot be used are left out. The first ones are printed, and the set's manifest counts all by reason.
    """
    _check(shape, arguments)
    from ctxbench.bench import samples as sets
    from ctxbench.bench.formats import Options
    from ctxbench.bench.languages.base import Language

    sets.folder(arguments["home"], name)
    options = Options(
        language=Language(arguments["language"]) if arguments["language"] else None,
        docstring=arguments["docstring"] or "raw",
    )
    if arguments["rebuild"]:
        sample_set = _rebuilt(files, options, name, arguments)
    else:
        from ctxbench.bench.formats.importing import import_set

        sample_set = import_set(
            shape,
            files,
            arguments["home"],
            name,
            repos=arguments["repos"],
            options=options,
            hygiene=arguments["hygiene"] == "on",
            packages=arguments["packages"],
            force=arguments["force"],
            report=say,
        )
    from ctxbench.bench.formats.importing import listed

    about = sample_set.manifest
    prompts = f", {about['prompts']} prompts" if "prompts" in about else ""
    left_out = listed(about.get("unusable", {}))
    click.echo(
        f"{name}: {len(sample_set.samples)} samples ({shape}{prompts})"
        + (f", left out: {left_out}" if left_out else "")
        + f", digest {sample_set.digest}"
    )


def _check(shape: str, options: Mapping[str, Any]) -> None:
    executed = options["rebuild"]
    for name in ("rebuild", "docstring"):
        if options[name] and shape != "codereval":
            raise click.UsageError(f"--{name} needs --format codereval")
    if executed and options["repos"] is not None:
        raise click.UsageError("--rebuild takes no --repos; leave out --repos")
    if executed and options["hygiene"] == "off":
        raise click.UsageError("--rebuild takes no --hygiene off; leave out --hygiene")
    if executed and options["packages"]:
        raise click.UsageError("--rebuild takes no --packages; leave out --packages")
    if options["sandbox"] is not None and not options["rebuild"]:
        raise click.UsageError("--sandbox needs --rebuild; nothing else runs code")


def _rebuilt(files: Sequence[str], options: Options, name: str, arguments: Mapping[str, Any]) -> SampleSet:
    from ctxbench.bench import formats
    from ctxbench.bench.codereval.rebuild import rebuild
    from ctxbench.bench.formats.importing import read_tasks
    from ctxbench.sandbox import wheels

    read = read_tasks("codereval", files, options=options, report=say)
    home = arguments["home"]

    return rebuild(
        read.tasks,
        home,
        name,
        sandbox=opened_sandbox(arguments["sandbox"], home),
        lock=functools.partial(wheels.lock, cache=home.cache / "sandbox", report=say),
        workers=arguments["workers"],
        report=say,
        force=arguments["force"],
        about={
            "imported_from": "codereval",
            "sources": list(read.sources),
            "unusable": dict(read.unusable),
            "remarks": list(formats.samples("codereval").remarks(read.tasks)),
        },
    )


@click.command(cls=WithShapes)
@click.argument("name")
@click.option("--format", "shape", type=_SHAPES, required=True, help="Format of the file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@home_option
def export(name: str, shape: str, out: Path, home: Home) -> None:
    """Write the set NAME, with references, as a file of JSON Lines.

    The format `ctxbench` stores each sample's reference under the key `reference`. Some formats can only be imported,
    and a format refuses samples that it cannot express.
    """
    from ctxbench.bench import formats
    from ctxbench.bench import samples as sets
    from ctxbench.bench.files import write_jsonl
    from ctxbench.harness.cells.process import check_unseen

    sample_set = sets.load(home, name)
    check_unseen(out)
    write_jsonl(out, formats.records(shape, sample_set.samples, sample_set.references))
    click.echo(f"{out}: {len(sample_set.samples)} samples")


@click.command()
@click.argument("name", metavar="SET")
@click.argument("sample_id", metavar="ID")
@click.option("--strategy", required=True, metavar="SPEC", help="A strategy or a preset.")
@click.option(
    "--generator",
    default="incontext",
    show_default=True,
    metavar="SPEC",
    help="The model that a strategy may ask, and whose window the prompt must fit.",
)
@summariser_options
@tokenizer_option
@click.option("--origins", is_flag=True, help="Print each prompt block under its kind, places, score and tokens.")
@click.option("--fim", is_flag=True, help="Print the prompt of a run with --fim.")
@seed_option("Random seed for the strategy.")
@sandbox_choice("Where strategies run programs.", "none")
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
    """Print the exact prompt that a strategy builds for the sample ID of SET.

    If the strategy asks the model for a draft or a summary, a stored answer is used, or the model is asked. No run is
    stored.
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

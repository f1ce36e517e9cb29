"""``ctxbench samples import`` and ``export``: sets in the shapes of other benchmarks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import FormatChoice, WithShapes, home_option, language_option, sandbox_option
from ctxbench.harness.cli.terminal import say

if TYPE_CHECKING:
    from ctxbench.bench.formats import Options
    from ctxbench.bench.samples import SampleSet

_SHAPES = FormatChoice("samples")


@click.command("import", cls=WithShapes)
@click.argument("files", nargs=-1, required=True)
@click.option("--format", "shape", type=_SHAPES, required=True, help="Shape of the files.")
@click.option("--name", required=True, help="Name of the new set.")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=None,
    help="A folder that holds each repository in a folder of its name, or is the only one.",
)
@language_option("Refuse files in another one.")
@click.option(
    "--docstring",
    type=click.Choice(["raw", "human"]),
    default=None,
    help="CoderEval: the original docstrings (raw, the default), or those that people wrote.",
)
@click.option(
    "--hygiene",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Keep copies of answers out of strategies' sight; off reproduces published settings, with a remark.",
)
@click.option(
    "--packages",
    is_flag=True,
    help="Let strategies search packages installed in the repositories' folders too, as the ICL paper's did.",
)
@click.option("--rebuild", is_flag=True, help="CoderEval: judge by tests of rebuilt projects; needs a sandbox.")
@sandbox_option
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="With --rebuild: how many samples to judge at once.",
)
@click.option("--force", is_flag=True, help="Replace another set of that name.")
@home_option
def import_files(files: tuple[str, ...], shape: str, name: str, **arguments: Any) -> None:
    """Make a sample set of other benchmarks' FILES.

    FILES are JSON Lines, JSON documents (.json), both also gzipped (.gz), or Parquet files. With --repos,
    prompts are made anew from the repositories, which strategies can then search; without, only what the
    files store is there. What cannot be used is told, counted and kept in the set's manifest.
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
    """Refuse options that would change nothing."""
    executed = options["rebuild"]
    for name in ("rebuild", "docstring"):
        if options[name] and shape != "codereval":
            raise click.UsageError(f"--{name} is for --format codereval")
    if executed and options["repos"] is not None:
        raise click.UsageError("--repos is for sets whose tests are not run: leave it out")
    if executed and options["hygiene"] == "off":
        raise click.UsageError("--hygiene off is for --repos")
    if executed and options["packages"]:
        raise click.UsageError("--packages is for --repos")
    if options["sandbox"] is not None and not options["rebuild"]:
        raise click.UsageError("--sandbox is for --rebuild: nothing else runs code here")


def _rebuilt(files: Sequence[str], options: Options, name: str, arguments: Mapping[str, Any]) -> SampleSet:
    """Make a set whose completions are judged by the tests of rebuilt projects."""
    from ctxbench.bench import formats
    from ctxbench.bench.codereval.rebuild import rebuild
    from ctxbench.bench.formats.importing import read_tasks
    from ctxbench.sandbox import wheels
    from ctxbench.sandbox.registry import open_sandbox

    read = read_tasks("codereval", files, options=options, report=say)
    home = arguments["home"]

    def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
        return wheels.lock(requirements, project, home.cache / "sandbox", say)

    sandbox = open_sandbox(arguments["sandbox"], home.cache / "sandbox")
    say(f"tests run in {sandbox.name}")
    return rebuild(
        read.tasks,
        home,
        name,
        sandbox=sandbox,
        lock=lock,
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
@click.option("--format", "shape", type=_SHAPES, required=True, help="Shape of the file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@home_option
def export(name: str, shape: str, out: Path, home: Home) -> None:
    """Write the set NAME, answers included, as one file: JSON Lines, or one JSON object where the benchmark has that.

    `ctxbench` puts each sample's reference under the key `reference`. A shape that has no place for a
    sample refuses it.
    """
    from ctxbench.bench import formats
    from ctxbench.bench import samples as sets
    from ctxbench.bench.files import write_atomic, write_jsonl
    from ctxbench.harness.cells.process import check_unseen

    sample_set = sets.load(home, name)
    check_unseen(out)

    form = formats.samples(shape)
    rows = form.records(sample_set.samples, sample_set.references)
    if not form.document:
        write_jsonl(out, rows)
    else:
        write_atomic(out, json.dumps({form.document: list(rows)}, ensure_ascii=False, indent=1) + "\n")
    click.echo(f"{out}: {len(sample_set.samples)} samples")

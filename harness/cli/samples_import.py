"""``ctxbench samples import`` and ``export``: sets in the shapes of other benchmarks, in and out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ctxbench.bench import formats
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import home_option
from ctxbench.harness.cli.samples_functions import sandbox_option

if TYPE_CHECKING:
    from ctxbench.bench.formats.types import Options, Task
    from ctxbench.bench.samples import SampleSet

_SHAPES = click.Choice(formats.NAMES)


def _say(text: str) -> None:
    click.echo(text, err=True)


class _WithShapes(click.Command):
    """A command whose help ends with the fields of every shape, read from the shapes' own modules."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of shapes."""
        with formatter.section("Shapes"):
            formatter.write_dl([(name, formats.named(name).SHAPE) for name in formats.NAMES])


@click.command("import", cls=_WithShapes)
@click.argument("files", nargs=-1, required=True)
@click.option("--format", "shape", type=_SHAPES, required=True, help="Shape of the files.")
@click.option("--name", required=True, help="Name of the new set.")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=None,
    help="A folder that holds each repository in a folder of its name, or is the only one.",
)
@click.option("--language", type=click.Choice(["python", "java"]), default=None, help="Refuse files in another one.")
@click.option("--revision", metavar="COMMIT", default=None, help="The commit of a hub's data set, all 40 digits.")
@click.option("--split", default=None, help="The split of a hub's data set.")
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
@click.option("--rebuild", is_flag=True, help="CoderEval: judge by tests of rebuilt projects; needs a sandbox.")
@click.option("--image", metavar="IMAGE", default=None, help="CoderEval: judge by the official harness's image.")
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
def import_files(files: tuple[str, ...], shape: str, name: str, **chosen: Any) -> None:
    """Make a sample set of other benchmarks' FILES.

    FILES are JSON Lines, JSON documents (.json), both also gzipped (.gz), Parquet files, or data sets of
    a hub as hub:OWNER/NAME or hub:OWNER/NAME/CONFIG with --revision. With --repos, prompts are made anew
    from the repositories, which strategies can then search; without, only what the files store is there.
    What cannot be used is told, counted and kept in the set's manifest.
    """
    _check(shape, chosen)
    from ctxbench.bench import samples as sets
    from ctxbench.bench.formats.types import Options
    from ctxbench.bench.types import Language

    sets.folder(chosen["home"], name)
    options = Options(
        language=Language(chosen["language"]) if chosen["language"] else None,
        docstring=chosen["docstring"] or "raw",
        revision=chosen["revision"],
        split=chosen["split"],
    )
    if chosen["rebuild"] or chosen["image"] is not None:
        made = _executable(files, options, name, chosen)
    else:
        from ctxbench.bench.formats.importing import import_set

        made = import_set(
            shape,
            files,
            chosen["home"],
            name,
            repos=chosen["repos"],
            options=options,
            hygiene=chosen["hygiene"] == "on",
            force=chosen["force"],
            report=_say,
        )
    from ctxbench.bench.formats.left_out import listed

    about = made.manifest
    prompts = f", {about['prompts']} prompts" if "prompts" in about else ""
    left_out = listed(about.get("unusable", {}))
    click.echo(
        f"{name}: {len(made.samples)} samples ({shape}{prompts})"
        + (f", left out: {left_out}" if left_out else "")
        + f", digest {made.digest}"
    )


def _check(shape: str, chosen: Mapping[str, Any]) -> None:
    """Refuse options that would change nothing."""
    executed = chosen["rebuild"] or chosen["image"] is not None
    for name, given in (("rebuild", chosen["rebuild"]), ("image", chosen["image"]), ("docstring", chosen["docstring"])):
        if given and shape != "codereval":
            raise click.UsageError(f"--{name} is for --format codereval")
    if chosen["rebuild"] and chosen["image"] is not None:
        raise click.UsageError("choose one of --rebuild and --image")
    if executed and chosen["repos"] is not None:
        raise click.UsageError("--repos is for sets whose tests are not run: leave it out")
    if executed and chosen["hygiene"] == "off":
        raise click.UsageError("--hygiene off is for --repos")
    if chosen["sandbox"] is not None and not chosen["rebuild"]:
        raise click.UsageError("--sandbox is for --rebuild: nothing else runs code here")


def _executable(files: Sequence[str], options: Options, name: str, chosen: Mapping[str, Any]) -> SampleSet:
    """Make a set whose completions are judged by execution."""
    from ctxbench.bench.formats.importing import read_tasks
    from ctxbench.bench.formats.types import Remarking

    read = read_tasks("codereval", files, options=options, report=_say)
    home, force = chosen["home"], chosen["force"]
    form = formats.named("codereval")
    about = {
        "imported_from": "codereval",
        "sources": list(read.sources),
        "unusable": dict(read.unusable),
        "remarks": list(form.remarks(read.tasks)) if isinstance(form, Remarking) else [],
    }
    if chosen["image"] is not None:
        from ctxbench.bench.codereval.image import import_image

        return import_image(read.tasks, home, name, image=chosen["image"], report=_say, force=force, about=about)
    return _rebuilt(read.tasks, home, name, about, chosen)


def _rebuilt(
    tasks: Sequence[Task], home: Home, name: str, about: Mapping[str, Any], chosen: Mapping[str, Any]
) -> SampleSet:
    from ctxbench.bench.codereval.rebuild import rebuild
    from ctxbench.sandbox import wheels
    from ctxbench.sandbox.registry import open_sandbox

    def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
        return wheels.lock(requirements, project, home.cache / "sandbox", _say)

    sandbox = open_sandbox(chosen["sandbox"], home.cache / "sandbox")
    _say(f"tests run in {sandbox.name}")
    return rebuild(
        tasks,
        home,
        name,
        sandbox=sandbox,
        lock=lock,
        workers=chosen["workers"],
        report=_say,
        force=chosen["force"],
        about=about,
    )


@click.command()
@click.argument("name")
@click.option("--format", "shape", type=_SHAPES, required=True, help="Shape of the file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The file to write.")
@home_option
def export(name: str, shape: str, out: Path, home: Home) -> None:
    """Write the set NAME, answers included, as one file: JSON Lines, or for codereval one JSON object.

    `ctxbench` puts each sample's reference under the key `reference`. A shape that has no place for a
    sample refuses it.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.files import write_atomic, write_jsonl

    made = sets.load(home, name)
    rows = formats.named(shape).records(made.samples, made.references)
    key = formats.DOCUMENTS.get(shape)
    if key is None:
        write_jsonl(out, rows)
    else:
        write_atomic(out, json.dumps({key: list(rows)}, ensure_ascii=False, indent=1) + "\n")
    click.echo(f"{out}: {len(made.samples)} samples")

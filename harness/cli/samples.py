"""``ctxbench samples``: build, show, list, import and export sample sets."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.errors import InputFault
from bench.home import Home
from harness.cli.options import home_option

if TYPE_CHECKING:
    from bench.samples import SampleSet
    from bench.types import Reference, Sample

_SHOWN_LINES = 12
_LANGUAGES = click.Choice(["python", "java"])


def _say(text: str) -> None:
    click.echo(text, err=True)


@click.group()
def samples() -> None:
    """Build, show, import and export sample sets."""


@samples.command("list")
@home_option
def list_sets(home: Home) -> None:
    """List the sample sets in the home folder."""
    from bench import samples as sets

    found = sets.names(home)
    if not found:
        _say("no sample sets yet; build one with `ctxbench samples build NAME --repo R`")
    for name in found:
        try:
            made = sets.load(home, name)
        except InputFault as fault:
            click.echo(f"{name}  cannot be read: {fault}")
            continue
        repositories = ", ".join(made.manifest["repositories"])
        click.echo(f"{name}  {len(made.samples)} samples  {made.digest[:12]}  {repositories}")


@samples.command()
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["line", "function"]), default="line", show_default=True, help="What to complete."
)
@click.option(
    "--repo",
    "repos",
    multiple=True,
    required=True,
    metavar="R",
    help="A built-in repository or a manifest's path; repeatable.",
)
@click.option("--language", type=_LANGUAGES, default=None, help="Use only the repositories in this language.")
@click.option(
    "--per-repo", type=click.IntRange(1), default=50, show_default=True, metavar="N", help="Most samples a repository."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random choice.")
@click.option(
    "--workers", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="all cores", help="Processes to use."
)
@click.option("--force", is_flag=True, help="Replace another set of that name.")
@home_option
def build(
    *,
    name: str,
    kind: str,
    repos: tuple[str, ...],
    language: str | None,
    per_repo: int,
    seed: int,
    workers: int,
    force: bool,
    home: Home,
) -> None:
    """Build the sample set NAME from real repositories.

    Lines that use what the repository's own files import from each other become samples, as in
    ProjBench. The same seed gives the same bytes.
    """
    if kind == "function":
        raise InputFault("function samples are not built yet", cure="use --kind line")
    from bench import manifest
    from bench import samples as sets
    from bench.projbench.build import build as build_set

    sets.folder(home, name)
    manifests = [manifest.load(repo) for repo in repos]
    if language is not None:
        manifests = [each for each in manifests if each.language.value == language]
        if not manifests:
            raise InputFault(f"none of the repositories is in {language}", cure="leave --language out")
    made = build_set(manifests, home, name, per_repo=per_repo, seed=seed, workers=workers, report=_say, force=force)
    click.echo(f"{name}: {len(made.samples)} samples, digest {made.digest}")


@samples.command()
@click.argument("name")
@click.argument("sample_id", metavar="[ID]", required=False)
@click.option("--reference", is_flag=True, help="Show the answer too.")
@click.option("--ids", is_flag=True, help="List the ids, one a line.")
@home_option
def show(name: str, sample_id: str | None, reference: bool, ids: bool, home: Home) -> None:
    """Show what the set NAME holds and dropped, or the sample ID as a person wants to read it."""
    from bench import samples as sets

    made = sets.load(home, name)
    if ids:
        click.echo("\n".join(sample.id for sample in made.samples))
        return
    if sample_id is None:
        _show_set(made)
        return
    known = {sample.id: sample for sample in made.samples}
    if sample_id not in known:
        near = difflib.get_close_matches(sample_id, known, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputFault(
            f"no sample of {name!r} is called {sample_id!r}",
            cure=f"{hint}(list them with `ctxbench samples show {name} --ids`)",
        )
    _show_sample(known[sample_id], made.references[sample_id] if reference else None)


def _show_set(made: SampleSet) -> None:
    about = made.manifest
    click.echo(f"{made.name}: {len(made.samples)} {about.get('kind', '')} samples, digest {made.digest}")
    made_by = ", ".join(
        f"{key} {about[key]}" for key in ("ctxbench", "imported_from", "prompts", "seed", "per_repo") if key in about
    )
    click.echo(made_by)
    for repo, entry in about["repositories"].items():
        mine = [sample for sample in made.samples if sample.repo == repo]
        kinds = sorted({sample.subkind for sample in mine})
        parts = ", ".join(f"{sum(sample.subkind == kind for sample in mine)} {kind}" for kind in kinds)
        click.echo(f"\n{repo} ({entry['language']}): {len(mine)} samples ({parts})")
        for label, key in (("files", "files"), ("lines", "lines"), ("candidates", "candidates"), ("usable", "usable")):
            if key in entry:
                click.echo(f"  {label:12} {entry[key]}")
        click.echo(f"  {'masked':12} {sum(bool(sample.masked) for sample in mine)}")
        for label, key in (("left out", "left_out"), ("no targets", "skipped_as_targets"), ("dropped", "drops")):
            if entry.get(key):
                click.echo(f"  {label:12} " + ", ".join(f"{reason} {count}" for reason, count in entry[key].items()))
    if made.samples:
        click.echo(f"\nsee one with `ctxbench samples show {made.name} '{made.samples[0].id}'`")


def _show_sample(sample: Sample, reference: Reference | None) -> None:
    click.echo(f"{sample.id}  {sample.language} {sample.subkind}")
    click.echo("uses    " + ", ".join(f"{use.name} ({use.kind} of {use.module or 'unknown'})" for use in sample.uses))
    if sample.masked:
        click.echo("masked  lines " + ", ".join(f"{start + 1} to {end}" for start, end in sample.masked))
    click.echo()
    lines = sample.prefix.split("\n")
    first = max(0, len(lines) - _SHOWN_LINES)
    for number, line in enumerate(lines[first:], sample.context_start + first + 1):
        cursor = "▏" if number == sample.context_start + len(lines) else ""
        click.echo(f"{number:6}  {line}{cursor}")
    if reference is not None:
        click.echo(f"\nreference\n        {reference.target}")
        if reference.original_import:
            click.echo("masked import")
            for line in reference.original_import.split("\n"):
                click.echo(f"        {line}")


@samples.command()
@click.argument("name")
@click.option(
    "--format", "shape", type=click.Choice(["projbench", "ctxbench"]), required=True, help="Shape of the file."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The JSON Lines file to write."
)
@home_option
def export(name: str, shape: str, out: Path, home: Home) -> None:
    """Write the set NAME, answers included, as one JSON Lines file.

    `ctxbench` puts each sample's reference under the key `reference`.
    """
    from bench import records
    from bench import samples as sets
    from bench.files import write_jsonl
    from bench.formats import projbench

    made = sets.load(home, name)
    rows: list[dict[str, Any]]
    if shape == "projbench":
        rows = list(projbench.records(made.samples, made.references))
    else:
        rows = [
            {**records.from_sample(sample), "reference": records.from_reference(made.references[sample.id])}
            for sample in made.samples
        ]
    write_jsonl(out, rows)
    click.echo(f"{out}: {len(rows)} samples")


@samples.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "shape", type=click.Choice(["projbench"]), required=True, help="Shape of the files.")
@click.option("--name", required=True, help="Name of the new set.")
@click.option(
    "--repos",
    type=click.Path(path_type=Path),
    default=None,
    help="A folder that holds each repository in a folder of its name.",
)
@click.option("--language", type=_LANGUAGES, default=None, help="Refuse files in another language.")
@click.option("--force", is_flag=True, help="Replace another set of that name.")
@home_option
def import_files(
    files: tuple[Path, ...], shape: str, name: str, repos: Path | None, language: str | None, force: bool, home: Home
) -> None:
    """Make a sample set of other benchmarks' FILES.

    ProjBench: one JSON object a line, `prompt` and `metadata` with `task_id`, `ground_truth`,
    `fpath_tuple`, `line_no`, `col` or `col_no`, and optionally `context_start_lineno`, `import_no`,
    `dep`, `task_type`. With --repos, prompts are rebuilt from the repositories, which strategies can
    then search; without, only the stored prompts are there.
    """
    from bench.formats.importing import import_projbench
    from bench.types import Language

    chosen = Language(language) if language is not None else None
    made = import_projbench(files, home, name, repos=repos, language=chosen, force=force, report=_say)
    click.echo(
        f"{name}: {len(made.samples)} samples ({shape}, {made.manifest['prompts']} prompts), digest {made.digest}"
    )

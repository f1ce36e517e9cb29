"""``ctxbench samples``: build, show, list, import and export sample sets."""

from __future__ import annotations

import difflib
import os

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import home_option
from ctxbench.harness.cli.progress import say
from ctxbench.harness.cli.samples_functions import build_functions, sandbox_option, verify
from ctxbench.harness.cli.samples_import import export, import_files
from ctxbench.harness.cli.samples_show import show_sample, show_set

_LANGUAGES = click.Choice(["python", "java"])


@click.group()
def samples() -> None:
    """Build, show, import and export sample sets."""


for _command in (verify, import_files, export):
    samples.add_command(_command)


@samples.command("list")
@home_option
def list_sets(home: Home) -> None:
    """List the sample sets in the home folder."""
    from ctxbench.bench import samples as sets

    names = sets.names(home)
    if not names:
        say("no sample sets yet; build one with `ctxbench samples build NAME --repo R`")
    for name in names:
        try:
            sample_set = sets.load(home, name)
        except InputFault as fault:
            click.echo(f"{name}  cannot be read: {fault}")
            continue
        repositories = ", ".join(sample_set.manifest["repositories"])
        click.echo(f"{name}  {len(sample_set.samples)} samples  {sample_set.digest[:12]}  {repositories}")


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
@click.option("--again", is_flag=True, help="Functions: try those that an earlier build dropped, too.")
@sandbox_option
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
    again: bool,
    sandbox: str | None,
    home: Home,
) -> None:
    """Build the sample set NAME from real repositories.

    Lines that use what the repository's own files import from each other become samples, as in
    ProjBench. With --kind function, documented functions do that the repository's own tests cover:
    each is run in the sandbox, where its reference must pass and an empty body fail. The same seed
    gives the same bytes.
    """
    if kind == "line" and again:
        raise click.UsageError("--again is for --kind function: lines are not run")
    if kind == "line" and sandbox is not None:
        raise click.UsageError("--sandbox is for --kind function: lines are not run")
    from ctxbench.bench import manifest
    from ctxbench.bench import samples as sets
    from ctxbench.bench.projbench.build import build as build_set

    sets.folder(home, name)
    manifests = [manifest.load(repo) for repo in repos]
    if language is not None:
        manifests = [repo_manifest for repo_manifest in manifests if repo_manifest.language == language]
        if not manifests:
            raise InputFault(f"none of the repositories is in {language}", cure="leave --language out")
    if kind == "function":
        build_functions(
            manifests,
            home,
            name,
            sandbox=sandbox,
            per_repo=per_repo,
            seed=seed,
            workers=workers,
            again=again,
            force=force,
        )
        return
    sample_set = build_set(
        manifests, home, name, per_repo=per_repo, seed=seed, workers=workers, report=say, force=force
    )
    click.echo(f"{name}: {len(sample_set.samples)} samples, digest {sample_set.digest}")


@samples.command()
@click.argument("name")
@click.argument("sample_id", metavar="[ID]", required=False)
@click.option("--reference", is_flag=True, help="Show the answer too.")
@click.option("--ids", is_flag=True, help="List the ids, one a line.")
@home_option
def show(name: str, sample_id: str | None, reference: bool, ids: bool, home: Home) -> None:
    """Show what the set NAME holds and dropped, or the sample ID as a person wants to read it."""
    from ctxbench.bench import samples as sets

    sample_set = sets.load(home, name)
    if ids:
        click.echo("\n".join(sample.id for sample in sample_set.samples))
        return
    if sample_id is None:
        show_set(sample_set)
        return
    samples_by_id = {sample.id: sample for sample in sample_set.samples}
    if sample_id not in samples_by_id:
        near = difflib.get_close_matches(sample_id, samples_by_id, n=2, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputFault(
            f"no sample of {name!r} is called {sample_id!r}",
            cure=f"{hint}(list them with `ctxbench samples show {name} --ids`)",
        )
    show_sample(samples_by_id[sample_id], sample_set.references[sample_id] if reference else None)

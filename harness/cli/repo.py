"""`ctxbench repo`: list, add, check and fetch the repositories that samples are built from."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.bench.errors import CtxbenchError, InputFault
from ctxbench.bench.escaping import visible
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import columns, home_option, opened_sandbox, sandbox_option
from ctxbench.harness.cli.terminal import say

if TYPE_CHECKING:
    from ctxbench.bench.adoption.trial import AdoptionTools
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.sandbox.types import Sandbox

_SAMPLE = Path(__file__).with_name("manifest.toml")


@click.group()
def repo() -> None:
    """List, add, check and fetch benchmark repositories."""


@repo.command("list")
@click.option("--set", "set_name", metavar="NAME", help="List only the repositories of this set.")
@home_option
def list_(set_name: str | None, home: Home) -> None:
    """List the shipped repositories: name, version, release day, language, licence, whether fetched, sets."""
    from ctxbench.bench import standard
    from ctxbench.bench.repositories import checkout, manifest

    standard_sets = [standard.load(name) for name in standard.names()]
    manifests = (
        standard.repositories(set_name) if set_name else [manifest.load(name) for name in manifest.builtin_names()]
    )
    rows = [("NAME", "VERSION", "RELEASED", "LANGUAGE", "LICENCE", "FETCHED", "SETS")]
    for source in manifests:
        fetched = "yes" if checkout.find(source, home) else "no"
        version = (source.name, source.version, str(source.released or "-"))
        sets = (*source.sets, *(members.name for members in standard_sets if source.name in members.domains))
        rows.append((*version, str(source.language), source.license, fetched, ", ".join(sets)))
    click.echo("\n".join(columns(rows)))


@repo.command()
def sample() -> None:
    """Print a commented manifest to start from."""
    click.echo(_SAMPLE.read_text(encoding="utf-8"), nl=False)


@repo.command()
@click.argument("refs", metavar="FILE|NAME...", nargs=-1, required=True)
def check(refs: tuple[str, ...]) -> None:
    """Check manifests and print every fault, one per line."""
    from ctxbench.bench.repositories.manifest import ManifestFault, load

    faults = wrong = 0
    for ref in refs:
        try:
            load(ref)
        except CtxbenchError as error:
            lines = list(map(str, error.faults)) if isinstance(error, ManifestFault) else [str(error)]
            click.echo("\n".join(lines), err=True)
            faults, wrong = faults + len(lines), wrong + 1
        else:
            click.echo(f"{ref}: ok")
    if faults:
        raise InputFault(
            f"{_count(faults, 'fault')} in {_count(wrong, 'manifest')}",
            cure="correct the faults above; `ctxbench repo sample` prints a valid manifest",
        )


@repo.command()
@click.argument("refs", metavar="[NAME|FILE]...", nargs=-1)
@click.option("--set", "set_name", metavar="NAME", help="Fetch all repositories of this set.")
@home_option
def fetch(refs: tuple[str, ...], set_name: str | None, home: Home) -> None:
    """Fetch repositories into the home folder; print each name and folder."""
    from ctxbench.bench.repositories import checkout

    failed: list[CtxbenchError] = []
    manifests = _manifests(refs, set_name)
    for repo_manifest in manifests:
        try:
            source_tree = checkout.fetch(repo_manifest, home, report=say)
        except CtxbenchError as error:
            failed.append(error)
            continue
        click.echo(f"{repo_manifest.name}\t{source_tree.root}")
    if len(failed) == 1:
        raise failed[0]
    if failed:
        # Continue after an unreachable server. All reasons are printed, then their number.
        click.echo("\n".join(str(error) for error in failed), err=True)
        raise InputFault(
            f"{len(failed)} of {len(manifests)} repositories could not be fetched",
            cure="correct the faults above, then run the same command again",
        )


@repo.command()
@click.argument("ref", metavar="SOURCE")
@click.option("--name", metavar="NAME", help="Name of the repository and its manifest; default: the source's name.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the manifest NAME.toml; default: manifests in the home folder.",
)
@click.option("--no-tests", is_flag=True, help="Skip the repository's tests; only line samples can then be built.")
@click.option("--force", is_flag=True, help="Replace an existing manifest of this name.")
@sandbox_option
@home_option
def add(
    *,
    ref: str,
    name: str | None,
    folder: Path | None,
    no_tests: bool,
    force: bool,
    sandbox: str | None,
    home: Home,
) -> int:
    """Add the repository SOURCE: fetch it, guess how to run its tests, run them, and write a manifest.

    SOURCE is pypi:NAME==VERSION, debian:NAME[=VERSION], git+URL@COMMIT, or the path of a folder or an archive. Comments
    in the manifest list what was found and what you should check. Tests run in the sandbox; requirements they lack are
    guessed from their error messages. If there are tests and none passes, the manifest is for lines only, and the exit
    code is 1.
    """
    if no_tests and sandbox is not None:
        raise click.UsageError("--no-tests runs no tests; leave out --sandbox")
    from ctxbench.bench.adoption.adopt import adopt

    adoption = adopt(
        ref,
        home,
        folder or home.root / "manifests",
        None if no_tests else workbench(sandbox, home),
        name=name or "",
        force=force,
        report=say,
    )
    for doubt in adoption.doubts:
        say(f"{adoption.manifest.name}: please check: {visible(' '.join(doubt.split()))}")
    click.echo(f"{adoption.path}: {' '.join(adoption.remarks[1:])}")
    trial = adoption.trial
    if trial is not None and not trial.passed:
        raise InputFault(
            f"no test of the repository ran: {trial.fault}"
            if trial.search is None
            else "no test of the repository passed",
            where=str(adoption.path),
            cure="correct and uncomment `# [tests]` in the manifest, then run "
            f"`ctxbench samples build trial --kind function --repo {adoption.path}`",
        )
    return 0


def workbench(sandbox: str | None, home: Home) -> AdoptionTools:
    """Return the tools for a new repository's tests: one or two sandbox back ends, and a resolver of requirements."""
    from ctxbench.bench.adoption.trial import AdoptionTools
    from ctxbench.sandbox import wheels

    return AdoptionTools(
        sandbox=functools.partial(opened_sandbox, sandbox, home),
        lock=functools.partial(wheels.lock, cache=home.cache / "sandbox", report=say),
        beside=functools.partial(_beside, sandbox, home),
    )


def _beside(sandbox: str | None, home: Home) -> Sandbox | None:
    """Return bubblewrap as a second back end if Docker works too and the user chose no back end."""
    from ctxbench.sandbox.registry import bubblewrap_fault, docker_fault

    is_one = sandbox or docker_fault() or bubblewrap_fault(home.cache / "sandbox")
    return None if is_one else opened_sandbox("bubblewrap", home)


def _manifests(refs: tuple[str, ...], set_name: str | None) -> list[RepoManifest]:
    from ctxbench.bench import standard
    from ctxbench.bench.repositories.manifest import load

    if not refs and not set_name:
        raise click.UsageError("No repository is named; give names or manifest files of repositories, or --set NAME.")
    manifests = [load(ref) for ref in refs] + list(standard.repositories(set_name) if set_name else ())
    return list({manifest.name: manifest for manifest in manifests}.values())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"

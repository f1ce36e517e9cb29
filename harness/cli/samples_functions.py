"""The parts of ``ctxbench samples`` that run tests: building function samples, and ``verify``."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench.home import Home
from harness.cli.options import home_option
from harness.cli.progress import progress
from sandbox.registry import NAMES

if TYPE_CHECKING:
    from bench.manifest_types import RepoManifest
    from sandbox.types import Sandbox

F = TypeVar("F", bound=Callable[..., Any])


def sandbox_option(function: F) -> F:
    """Add ``--sandbox``; the command receives a back end's name, or None for the best that is here."""
    return click.option(
        "--sandbox",
        type=click.Choice(NAMES),
        default=None,
        help="Where tests run; default: docker where an engine answers, else bubblewrap.",
    )(function)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _open(name: str | None, home: Home) -> Sandbox:
    from sandbox.registry import open_sandbox

    found = open_sandbox(name, home.cache / "sandbox")
    _say(f"tests run in {found.name}")
    return found


def build_functions(
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    *,
    sandbox: str | None,
    per_repo: int,
    seed: int,
    workers: int,
    force: bool,
) -> None:
    """Build a set of function samples and say what came of it."""
    from bench.functions.build import build, check
    from sandbox import wheels

    check(manifests, per_repo)

    def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
        return wheels.lock(requirements, project, home.cache / "sandbox", _say)

    made = build(
        manifests,
        home,
        name,
        sandbox=_open(sandbox, home),
        lock=lock,
        per_repo=per_repo,
        seed=seed,
        workers=workers,
        report=_say,
        force=force,
    )
    click.echo(f"{name}: {len(made.samples)} samples, digest {made.digest}")


@click.command()
@click.argument("name")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="How many samples to judge at once.",
)
@sandbox_option
@home_option
def verify(name: str, workers: int, sandbox: str | None, home: Home) -> int:
    """Run the reference and an empty body of every function sample of the set NAME.

    Every reference must pass and every empty body fail: exit 1 otherwise.
    """
    from bench import samples as sets
    from bench.functions.verify import verify as verify_set

    made = sets.load(home, name)
    run = functools.partial(verify_set, home, made, _open(sandbox, home), workers=workers, report=_say)
    with progress("verified", len(made.samples)) as tick:
        found = run(tick=tick)
    count = len(found.checked)
    click.echo(
        f"{name}: reference {_share(found.references_passed, count)}, blank {_share(found.blanks_passed, count)}"
    )
    return 1 if found.faults else 0


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}% ({part} of {whole})"

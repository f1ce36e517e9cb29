"""The parts of ``ctxbench samples`` that run tests: building function samples, and ``verify``."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option, sandbox_name
from ctxbench.harness.cli.progress import progress, say

if TYPE_CHECKING:
    from ctxbench.bench.functions.verify import Verification
    from ctxbench.bench.repositories.manifest import RepoManifest
    from ctxbench.sandbox.types import Sandbox

F = TypeVar("F", bound=Callable[..., Any])


def sandbox_option(function: F) -> F:
    """Add ``--sandbox``; the command receives a back end's name, or None for the best that is here."""
    return click.option(
        "--sandbox",
        metavar="[docker|bubblewrap]",
        callback=sandbox_name(),
        default=None,
        help="Where tests run; default: docker where an engine answers, else bubblewrap.",
    )(function)


def _open(name: str | None, home: Home) -> Sandbox:
    from ctxbench.sandbox.registry import open_sandbox

    back_end = open_sandbox(name, home.cache / "sandbox")
    say(f"tests run in {back_end.name}")
    return back_end


def build_functions(
    manifests: Sequence[RepoManifest],
    home: Home,
    name: str,
    *,
    sandbox: str | None,
    per_repo: int,
    seed: int,
    workers: int,
    again: bool,
    force: bool,
) -> None:
    """Build a set of function samples and print its size and digest."""
    from ctxbench.bench.functions.build import build, check
    from ctxbench.sandbox import wheels

    check(manifests, per_repo)

    def lock(requirements: Sequence[str], project: str) -> tuple[str, ...]:
        return wheels.lock(requirements, project, home.cache / "sandbox", say)

    sample_set = build(
        manifests,
        home,
        name,
        sandbox=_open(sandbox, home),
        lock=lock,
        per_repo=per_repo,
        seed=seed,
        workers=workers,
        report=say,
        again=again,
        force=force,
    )
    click.echo(f"{name}: {len(sample_set.samples)} samples, digest {sample_set.digest}")


@click.command()
@click.argument("name")
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=os.cpu_count() or 1,
    show_default="all cores",
    help="How many samples to judge at once.",
)
@click.option(
    "--mark",
    is_flag=True,
    help="Store what is not so in the database: such samples are left out of leaderboards and comparisons.",
)
@click.option("--again", is_flag=True, help="Run everything anew, also what an earlier verification found.")
@sandbox_option
@home_option
@db_option
def verify(name: str, workers: int, mark: bool, again: bool, sandbox: str | None, home: Home, db: str | None) -> int:
    """Run the reference and an empty body of every function sample of the set NAME.

    Every reference must pass and every empty body fail: exit 1 otherwise. With --mark the samples of which that is
    not so are marked, as broken or vacuous, and exit 1 is for faults of the machine alone. Marks stay. What an earlier
    verification found, or one that was interrupted, is taken up.
    """
    from ctxbench.bench import samples as sets
    from ctxbench.bench.functions.verify import verify as verify_set

    sample_set = sets.load(home, name)
    run = functools.partial(
        verify_set, home, sample_set, _open(sandbox, home), workers=workers, report=say, again=again
    )
    with progress("verified", len(sample_set.samples)) as tick:
        verification = run(tick=tick)
    if verification.from_earlier:
        say(f"{verification.from_earlier} of them found by an earlier verification; --again runs them anew")
    count = len(verification.checked)
    reference, blank = (_share(part, count) for part in (verification.references_passed, verification.blanks_passed))
    click.echo(f"{name}: reference {reference}, blank {blank}")
    if mark:
        click.echo(_marked(verification, sample_set.digest, db or home.database))
        return 1 if verification.machine_faults else 0
    return 1 if verification.faults else 0


def _marked(verification: Verification, digest: str, url: str) -> str:
    from ctxbench.harness.store import open_store
    from ctxbench.harness.store.notes import add_marks
    from ctxbench.harness.store.records import Mark

    marks = [
        Mark(sample_id=check.id, mark=mark, reason=reason, image=check.image)
        for check in verification.checked
        for mark, reason in check.marks()
    ]
    with open_store(url) as store:
        new = add_marks(store, digest, marks)
    counts = Counter(check.mark for check in marks)
    summary = ", ".join(f"{count} {mark}" for mark, count in sorted(counts.items()))
    return f"marked: {summary} ({new} new)" if marks else "marked: none"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}% ({part} of {whole})"

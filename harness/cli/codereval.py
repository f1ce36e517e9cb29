"""``ctxbench codereval``: the benchmark's official image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctxbench.bench.errors import InputFault
from ctxbench.harness.cli.progress import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxbench.bench.formats.types import Task


@click.group()
def codereval() -> None:
    """Look at CoderEval's official image."""


@codereval.group()
def image() -> None:
    """Check the image that CoderEval's authors publish, or one laid out like it."""


@image.command()
@click.argument("name", metavar="IMAGE")
@click.option(
    "--tasks",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A task file, such as CoderEval4Python.json: say which tasks have no test in the image; repeatable.",
)
def check(name: str, tasks: tuple[Path, ...]) -> None:
    """Say what the local Docker image IMAGE has for the official protocol, and what it lacks.

    Projects, test files, interpreters, compiled classes and jars are looked for in containers without a
    network, as the user and under the limits that completions are run with. Exits with 1 if something is
    missing.
    """
    from ctxbench.bench.codereval.image import check as checked

    checks = checked(name, _tasks(tasks), report=say)
    for line in checks.present:
        click.echo(line)
    for line in checks.missing:
        click.echo(f"missing: {line}")
    if checks.missing:
        raise InputFault(
            f"{len(checks.missing)} things are missing in the image",
            where=name,
            cure="tasks without a test are left out of a set; docs/codereval-image.md says what the rest is for",
        )


def _tasks(files: Sequence[Path]) -> Sequence[Task]:
    from ctxbench.bench.formats.importing import read_tasks

    if not files:
        return ()
    return read_tasks("codereval", [str(file) for file in files], report=say).tasks

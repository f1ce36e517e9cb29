"""Options that many commands share, and the only place that reads environment variables for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bench.home import Home

F = TypeVar("F", bound=Callable[..., Any])


def _home(_: click.Context, __: click.Parameter, value: str) -> Home:
    return Home(Path(value).expanduser().absolute())


def home_option(function: F) -> F:
    """Add ``--home``; the command receives a `Home`."""
    return click.option(
        "--home",
        envvar="CTXBENCH_HOME",
        default=".ctxbench",
        show_default=True,
        callback=_home,
        metavar="FOLDER",
        help="Where repositories, samples and results are kept (CTXBENCH_HOME).",
    )(function)


def db_option(function: F) -> F:
    """Add ``--db``; the command receives a SQLAlchemy URL, or None for the home's own database."""
    return click.option(
        "--db",
        envvar="CTXBENCH_DB",
        default=None,
        metavar="URL",
        help="SQLAlchemy URL of the results (CTXBENCH_DB); default: results.db in the home folder.",
    )(function)


def base_image_option(function: F) -> F:
    """Add ``--base-image``; the command receives its name."""
    return click.option(
        "--base-image",
        envvar="CTXBENCH_BASE_IMAGE",
        default="python:3.11-slim-bookworm",
        show_default=True,
        metavar="IMAGE",
        help="The Docker image that the sandbox's images are built on (CTXBENCH_BASE_IMAGE).",
    )(function)

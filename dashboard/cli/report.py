"""`ctxbench report`: the leaderboard as one file."""

from __future__ import annotations

from pathlib import Path

import click

from bench.home import Home
from harness.cli.options import db_option, home_option


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE", help="The file to write.")
@home_option
@db_option
def report(*, out: Path, home: Home, db: str | None) -> None:
    """Write the leaderboard as one self-contained file."""

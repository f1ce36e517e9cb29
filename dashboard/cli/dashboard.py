"""`ctxbench dashboard`: the stored runs as web pages."""

from __future__ import annotations

import click

from bench.home import Home
from harness.cli.options import db_option, home_option


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=8501, show_default=True, help="Where to listen.")
@home_option
@db_option
def dashboard(*, port: int, home: Home, db: str | None) -> None:
    """Show the stored runs as web pages, on this machine; end it with Ctrl-C. Nothing is written."""

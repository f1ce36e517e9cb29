"""``ctxbench codereval``: the benchmark's official image."""

from __future__ import annotations

import click


@click.group()
def codereval() -> None:
    """Look at CoderEval's official image."""

"""``ctxbench results``: predictions and verdicts that were made elsewhere, in and out."""

from __future__ import annotations

import click


@click.group()
def results() -> None:
    """Bring recorded predictions and verdicts in and out."""

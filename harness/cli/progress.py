"""Progress of long work on stderr: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import click

_EVERY_SECONDS = 5.0

Tick = Callable[[int], None]


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Tick]:
    """Show how much of `total` is done; call the yielded function with each step's size."""
    if sys.stderr.isatty():
        with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True) as bar:
            yield bar.update
        return
    done, said = 0, time.monotonic()

    def tick(step: int) -> None:
        nonlocal done, said
        done += step
        if time.monotonic() - said >= _EVERY_SECONDS:
            said = time.monotonic()
            click.echo(f"{label}: {done} of {total}", err=True)

    yield tick
    click.echo(f"{label}: {done} of {total}", err=True)

"""Progress of long work on stderr: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator

import click

_EVERY_SECONDS = 5.0
_REMARKS = (
    "ctxbench.bench.retrieval",
    "ctxbench.harness.attempt",
    "ctxbench.harness.cells",
    "ctxbench.harness.generators",
    "ctxbench.harness.portion",
)
"""The loggers of what else may take long while a run goes on, or a model is asked."""
_CLEAR = "\r\x1b[2K"
"""Takes a bar's line off a terminal; the bar is drawn anew below."""

Tick = Callable[[int], None]


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Tick]:
    """Show how much of `total` is done; call the yielded function with each step's size."""
    with remarks():
        if sys.stderr.isatty():
            with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True) as bar:
                yield bar.update
            return
        yield from _lines(label, total)


def _lines(label: str, total: int) -> Iterator[Tick]:
    done, said = 0, time.monotonic()

    def tick(step: int) -> None:
        nonlocal done, said
        done += step
        if time.monotonic() - said >= _EVERY_SECONDS:
            said = time.monotonic()
            click.echo(f"{label}: {done} of {total}", err=True)

    yield tick
    click.echo(f"{label}: {done} of {total}", err=True)


class _Echo(logging.Handler):
    """Writes a remark as a line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it."""
        click.echo(f"{_CLEAR if sys.stderr.isatty() else ''}{record.getMessage()}", err=True)


@contextlib.contextmanager
def remarks() -> Iterator[None]:
    """Show what is said of whatever takes long meanwhile."""
    loggers, handler = [logging.getLogger(name) for name in _REMARKS], _Echo(logging.INFO)
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)

"""Progress of long work: a bar on a terminal and in a notebook, a line on stderr every few seconds elsewhere."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator

import click

_EVERY_SECONDS = 5.0
_REMARKS = (
    "ctxbench.bench.retrieval",
    "ctxbench.harness.run.attempt",
    "ctxbench.harness.run.machinery",
    "ctxbench.harness.cells",
    "ctxbench.harness.generators",
    "ctxbench.harness.run.scheduling",
)
"""Loggers of other work that may take long during a run or while a model answers."""
_CLEAR = "\r\x1b[2K"
"""Takes a bar's line off a terminal; the bar is drawn anew below."""

Tick = Callable[[int], None]
say: Callable[[str], None] = functools.partial(click.echo, err=True)
"""Print a line on stderr."""


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Tick]:
    """Show how much of `total` is done; call the yielded function with each step's size."""
    with remarks():
        bar_of_notebook = _notebook_bar(label, total)
        if bar_of_notebook is not None:
            yield bar_of_notebook
            return
        if sys.stderr.isatty():
            with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True) as bar:
                yield bar.update
            return
        yield from _lines(label, total)


def _notebook_bar(label: str, total: int) -> Tick | None:
    """Return what moves a bar below the notebook's cell; None outside a notebook."""
    if "ipykernel" not in sys.modules or not total:
        return None
    bar = importlib.import_module("IPython.display").ProgressBar(total)
    click.echo(label)
    bar.display()

    def tick(step: int) -> None:
        bar.progress += step

    return tick


def _lines(label: str, total: int) -> Iterator[Tick]:
    steps, last_line = 0, time.monotonic()

    def tick(step: int) -> None:
        nonlocal steps, last_line
        steps += step
        if time.monotonic() - last_line >= _EVERY_SECONDS:
            last_line = time.monotonic()
            click.echo(f"{label}: {steps} of {total}", err=True)

    yield tick
    click.echo(f"{label}: {steps} of {total}", err=True)


class _Echo(logging.Handler):
    """Writes a remark as a line on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write it."""
        click.echo(f"{_CLEAR if sys.stderr.isatty() else ''}{record.getMessage()}", err=True)


@contextlib.contextmanager
def remarks() -> Iterator[None]:
    """Show log messages about other work that takes long meanwhile."""
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

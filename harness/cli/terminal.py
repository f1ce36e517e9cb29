"""Handles Ctrl-C, and shows the progress of long work on a terminal, in a notebook or in a log."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

from ctxbench.bench.errors import CtxbenchError

SECONDS = 1.5
"""Seconds that a command has to end cleanly after the first interrupt."""
INTERRUPT_CODE = 130
INTERRUPTED = "ctxbench: interrupted; run the same command again to continue"
_QUIET = "ignore:resource_tracker:UserWarning"
"""Warning filter for the helper process of `multiprocessing`, which cleans up after an interrupt."""
_came, _ending = threading.Event(), threading.Lock()


def watch_interrupts() -> None:
    """Start watching for Ctrl-C, unless SIGINT is ignored or has its own handler. Call once, from the main thread."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _QUIET]))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _raise)
    sys.unraisablehook = _unless_interrupted
    threading.Thread(target=_watch, args=(reader,), name="interrupts", daemon=True).start()


def interrupted() -> bool:
    """Return whether the user has interrupted the command."""
    return _came.is_set()


def end_interrupted() -> NoReturn:
    """Print the interrupt message, and end the process and its children."""
    # The watching thread may already be printing the line and ending the process.
    if _ending.acquire(timeout=0.5):
        with contextlib.suppress(OSError, ValueError):
            click.echo(INTERRUPTED, err=True)
            sys.stdout.flush()
    _end_children()
    os._exit(INTERRUPT_CODE)


def _raise(_: int, __: FrameType | None) -> None:
    """Interrupt the main thread once. A second interrupt would disturb its cleanup."""
    if not _came.is_set():
        _came.set()
        raise KeyboardInterrupt


def _unless_interrupted(unraisable: Any) -> None:
    """Hide errors that an interrupt causes where Python cannot raise them. The watching thread ends the command."""
    if not _came.is_set() and not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _watch(reader: int) -> None:
    while signal.SIGINT not in os.read(reader, 1):
        pass
    if signal.getsignal(signal.SIGINT) is not _raise:
        # The server of the pages has its own handlers and ends by itself.
        return
    select.select([reader], [], [], SECONDS)
    end_interrupted()


def _end_children() -> None:
    """End child processes that would continue, such as downloads. Workers ignore interrupts but not SIGTERM."""
    for pid in _below(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def _below(pid: int) -> list[int]:
    descendants: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text(encoding="ascii").split()):
                descendants += [child, *_below(child)]
    return descendants


class _TimeUp(KeyboardInterrupt):
    pass


EndAt = Callable[[float, Callable[[float], CtxbenchError]], None]
"""Function (limit, fault_at) that sets a limit in `time.monotonic` seconds. `fault_at(now)` returns the fault."""


@contextlib.contextmanager
def time_limit() -> Iterator[EndAt]:
    """Yield a function that sets or changes the time limit of the block. Call this from the main thread only.

    At the limit, the block is interrupted as by Ctrl-C and raises the limit's fault. If it still runs `SECONDS` later,
    the process ends with the same message.
    """
    timer, ended, faults = threading.Timer(0.0, lambda: None), threading.Event(), list[CtxbenchError]()

    def up(fault_at: Callable[[float], CtxbenchError]) -> None:
        faults.append(fault_at(time.monotonic()))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
        if not ended.wait(SECONDS):
            click.echo(f"ctxbench: {faults[0]}", err=True)
            _end_children()
            os._exit(1)

    def interrupt(_: int, __: FrameType | None) -> None:
        raise _TimeUp

    def end_at(when: float, fault_at: Callable[[float], CtxbenchError]) -> None:
        nonlocal timer
        timer.cancel()
        timer = threading.Timer(max(0.0, when - time.monotonic()), up, [fault_at])
        timer.daemon = True
        timer.start()

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield end_at
    except BaseException:
        # Interrupted work fails in many ways.
        if faults:
            raise faults[0] from None
        raise
    finally:
        timer.cancel()
        ended.set()
        signal.signal(signal.SIGALRM, before)


_EVERY_SECONDS = 5.0
_MINUTES = 120.0
"""Seconds above which times are printed in minutes."""
_REMARKS = (
    "ctxbench.bench.retrieval",
    "ctxbench.harness.run.attempt",
    "ctxbench.harness.run.resources",
    "ctxbench.harness.run.runner",
    "ctxbench.harness.cells",
    "ctxbench.harness.generators",
    "ctxbench.harness.run.scheduling",
)
"""Loggers that report slow work during a run or an answer of a model."""
_CLEAR = "\r\x1b[2K"
"""Escape sequence that clears a progress bar's line; the bar is redrawn below."""

Tick = Callable[..., None]
"""Function that reports a step, given its size and how much of it failed. Only the rest counts as done."""
say: Callable[[str], None] = functools.partial(click.echo, err=True)


@contextlib.contextmanager
def progress(label: str, total: int) -> Iterator[Tick]:
    """Show the progress towards `total` under a label. Call the yielded `Tick` after each step of the work."""
    with remarks():
        bar_of_notebook = _notebook_bar(label, total)
        if bar_of_notebook is not None:
            yield bar_of_notebook
            return
        if sys.stderr.isatty():
            with click.progressbar(length=total, label=label, file=sys.stderr, show_pos=True) as bar:
                yield _bar_tick(bar, label)
            return
        yield from _lines(label, total)


def _bar_tick(bar: Any, label: str) -> Tick:
    lost = 0

    def tick(step: int, missing: int = 0) -> None:
        nonlocal lost
        lost += missing
        bar.label = f"{label}, {lost} missing" if lost else label
        bar.update(step - missing)
        bar.render_progress()

    return tick


def _notebook_bar(label: str, total: int) -> Tick | None:
    if "ipykernel" not in sys.modules or not total:
        return None
    bar = importlib.import_module("IPython.display").ProgressBar(total)
    click.echo(label)
    bar.display()

    def tick(step: int, missing: int = 0) -> None:
        bar.progress += step - missing

    return tick


def _lines(label: str, total: int) -> Iterator[Tick]:
    steps, lost, began = 0, 0, time.monotonic()
    last_line = began

    def done() -> str:
        return f"{label}: {steps - lost} of {total}{f', {lost} missing' if lost else ''}"

    def tick(step: int, missing: int = 0) -> None:
        nonlocal steps, lost, last_line
        steps, lost = steps + step, lost + missing
        now = time.monotonic()
        if now - last_line >= _EVERY_SECONDS and steps:
            last_line = now
            seconds = (now - began) / steps * (total - steps)
            left = f"{seconds:.0f} s" if seconds < _MINUTES else f"{seconds / 60:.0f} min"
            click.echo(f"{done()}, about {left} left", err=True)

    yield tick
    click.echo(done(), err=True)


class _Echo(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"{_CLEAR if sys.stderr.isatty() else ''}{record.getMessage()}", err=True)


@contextlib.contextmanager
def remarks() -> Iterator[None]:
    """Show log messages about slow work inside the block; nested blocks do not repeat them."""
    handler = _Echo(logging.INFO)
    loggers = [
        logger
        for logger in map(logging.getLogger, _REMARKS)
        if not any(isinstance(other, _Echo) for other in logger.handlers)
    ]
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

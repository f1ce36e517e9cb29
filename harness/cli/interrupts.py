"""Ctrl-C: a command ends tidily if that takes but a moment, else at once; a second Ctrl-C always ends it at once.

Python raises an interrupt in the main thread alone, and only between two steps of Python code: not while it waits for
a database or computes in C. So a thread of its own watches for interrupts. Ending the process is as safe as a kill:
a finished sample is a transaction, and boxes and cells end with this process.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click

SECONDS = 2.0
"""The time that a command has to end tidily after the first interrupt."""
CODE = 130
LINE = "ctxbench: interrupted; run the same command again to go on"
_QUIET = "ignore:resource_tracker:UserWarning"
"""`multiprocessing` has a helper process that tidies up what is left, and would warn about it."""
_came, _ending = threading.Event(), threading.Lock()


def watch() -> None:
    """Begin to watch; called once, by the main thread. Ignored interrupts stay ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _QUIET]))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, _raise)
    sys.unraisablehook = _unless_interrupted
    threading.Thread(target=_watch, args=(reader,), name="interrupts", daemon=True).start()


def came() -> bool:
    """Return whether there was an interrupt."""
    return _came.is_set()


def end() -> NoReturn:
    """Print one line on the interrupt, and end the process with its children."""
    # The other thread may be printing the line and ending the process already.
    if _ending.acquire(timeout=0.5):
        with contextlib.suppress(OSError, ValueError):
            click.echo(LINE, err=True)
            sys.stdout.flush()
    _end_children()
    os._exit(CODE)


def _raise(_: int, __: FrameType | None) -> None:
    """Interrupt the main thread, once: a second interrupt would meet it while it tidies up."""
    if not _came.is_set():
        _came.set()
        raise KeyboardInterrupt


def _unless_interrupted(unraisable: Any) -> None:
    """Hide errors that an interrupt causes where nothing can be raised: the watching thread ends the command."""
    if not _came.is_set() and not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _watch(reader: int) -> None:
    while signal.SIGINT not in os.read(reader, 1):
        pass
    if signal.getsignal(signal.SIGINT) is not _raise:
        # A server of pages has handlers of its own, and ends by itself.
        return
    select.select([reader], [], [], SECONDS)
    end()


def _end_children() -> None:
    """End processes that would go on, such as a download; workers ignore interrupts, but not this signal."""
    for pid in _below(os.getpid()):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def _below(pid: int) -> list[int]:
    """Return the descendants of a process; none if the system does not list them."""
    descendants: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text(encoding="ascii").split()):
                descendants += [child, *_below(child)]
    return descendants

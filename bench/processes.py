"""Worker processes: how many there are, and Ctrl-C, on which only their parent acts."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker


def cores() -> int:
    """Return how many processes can work at once on this machine, at least 1."""
    return os.cpu_count() or 1


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold interrupts back from this thread, and for good from processes that are started in it meanwhile.

    A worker that a terminal interrupts while it starts dies with a traceback, and may die holding the lock of a queue
    that its parent waits for. The mask of the thread that starts it is inherited, from its first instruction on; an
    interrupt of this very thread comes when this ends.
    """
    # It begins with the first pool, and whoever starts it then lets interrupts through to all that follows.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

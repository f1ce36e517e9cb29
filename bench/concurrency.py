"""What threads and processes share: processors, a cache, one lock of the interpreter, and who acts on an interrupt."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from importlib.machinery import ModuleSpec
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Tick = Callable[..., Any]
"""Takes how many were tried, and how many of them ended as missing."""
Progress = Callable[[str, int], AbstractContextManager[Tick]]
"""Label and total -> a context that yields what tells of each step."""


@contextlib.contextmanager
def silent(_: str, __: int) -> Iterator[Tick]:
    """Show no progress."""
    yield lambda *_: None


# CPython 3.11 counts the depth of a tree that it builds in one place for all threads, and ends in a SystemError if
# another builds one meanwhile (gh-106905). Filters of warnings belong to the whole process, too.
TREE_LOCK = threading.Lock()
"""Held while a syntax tree of Python is built; to be held by whoever imports, beside other threads, a library that
builds some."""


def cores() -> int:
    """Return how many processes can work at once on this machine, at least 1."""
    return os.cpu_count() or 1


_NO_SCRIPT = ModuleSpec("ctxbench.__main__", None)
"""What `multiprocessing` takes for a package that is run: it leaves the main modules of those alone."""
_MAIN_LOCK = threading.Lock()
_MAIN_SPECS: list[ModuleSpec | None] = []
"""The main module's own spec, and another for each further block of `without_main` that is at work."""


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """Keep processes that are spawned meanwhile, by any thread, from running the caller's script as they begin.

    A script that calls us needs no ``if __name__ == "__main__":`` then: each worker would run it again, and begin the
    work that its parent waits for.
    """
    with _MAIN_LOCK:
        main = sys.modules["__main__"]
        _MAIN_SPECS.append(main.__spec__)
        main.__spec__ = _NO_SCRIPT
    try:
        yield
    finally:
        with _MAIN_LOCK:
            spec = _MAIN_SPECS.pop()
            if not _MAIN_SPECS:
                main.__spec__ = spec


@contextlib.contextmanager
def starting_workers() -> Iterator[None]:
    """Start worker processes: they run no script of the caller's, and no interrupt meets them while they start."""
    with without_main(), uninterrupted():
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold interrupts back from this thread, and for good from processes that are started in it meanwhile.

    A worker that a terminal interrupts while it starts dies with a traceback, and may die holding the lock of a queue
    that its parent waits for. The mask of the thread that starts it is inherited, from its first instruction on; an
    interrupt of this very thread comes when this ends.
    """
    from multiprocessing import resource_tracker  # noqa: PLC0415 - cells need the rest of this module only

    # It begins with the first pool, and whoever starts it then lets interrupts through to all that follows.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class SharedCache(Generic[T]):
    """A bounded table; while an entry is made, only those who want the same one wait."""

    def __init__(self, most: int, *, weigh: Callable[[T], int] = lambda _: 0, heaviest: int = 0) -> None:
        """Keep at most `most` entries, and beside the latest one no more than weigh `heaviest` together."""
        self._most, self._weigh, self._heaviest = most, weigh, heaviest
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[threading.Lock, list[T]]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the entry of that key; if `make` raises, the next caller tries again."""
        with self._lock:
            lock, cached = self._entries.setdefault(key, (threading.Lock(), []))
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with lock:
            if cached:
                return cached[0]
            cached.append(make())
        with self._lock:
            self._lighten()
        return cached[0]

    def _lighten(self) -> None:
        """Drop the entries that were asked for the longest ago while all of them weigh too much."""
        weights = {key: self._weigh(made[0]) for key, (_, made) in self._entries.items() if made}
        total = sum(weights.values())
        for key in list(weights)[:-1]:
            if total <= self._heaviest:
                return
            del self._entries[key]
            total -= weights[key]

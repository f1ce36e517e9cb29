"""Resources that threads and processes share: processors, caches, the syntax-tree lock, interrupts."""

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
"""A progress callback. Arguments: the size of a step, and how much of the step failed (default 0)."""
Progress = Callable[[str, int], AbstractContextManager[Tick]]
"""Opens a progress display: label, total -> context with a `Tick`."""


@contextlib.contextmanager
def silent(_: str, __: int) -> Iterator[Tick]:
    """Open a progress display that shows nothing."""
    yield lambda *_: None


# CPython 3.11 counts the depth of a syntax tree in one place for all threads and raises SystemError if two threads
# build trees at once (gh-106905). Warning filters are shared by the whole process, too.
TREE_LOCK = threading.Lock()
"""Lock for building Python syntax trees, and for importing libraries that build some."""


def cores() -> int:
    """Return the number of processors, at least 1."""
    return os.cpu_count() or 1


_NO_SCRIPT = ModuleSpec("ctxbench.__main__", None)
"""A module spec that keeps `multiprocessing` workers from running the caller's script."""
_MAIN_LOCK = threading.Lock()
_MAIN_SPECS: list[ModuleSpec | None] = []
"""The main module's spec, then one entry for each nested or concurrent `without_main`."""


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """In this context, keep spawned processes from running the caller's script again, even without a main guard."""
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
    """In this context, keep new worker processes from running the caller's script, and block their interrupts."""
    with without_main(), uninterrupted():
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Block interrupts in this thread and, permanently, in processes that the thread starts in this context.

    An interrupted worker could die while it holds a lock that its parent needs. This thread receives a pending
    interrupt at the end.
    """
    from multiprocessing import resource_tracker  # noqa: PLC0415 - cells need the rest of this module only

    # The tracker starts with the first pool, and starting it unblocks interrupts for everything started afterwards.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class SharedCache(Generic[T]):
    """A bounded, thread-safe cache. While an entry is created, only callers of that entry wait."""

    def __init__(self, most: int, *, weigh: Callable[[T], int] = lambda _: 0, heaviest: int = 0) -> None:
        """Keep up to `most` entries. Drop older entries while the total weight exceeds `heaviest`."""
        self._most, self._weigh, self._heaviest = most, weigh, heaviest
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[threading.Lock, list[T]]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return a key's entry, created by `make` if missing. If `make` raises, the next caller tries again."""
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
        weights = {key: self._weigh(made[0]) for key, (_, made) in self._entries.items() if made}
        total = sum(weights.values())
        for key in list(weights)[:-1]:
            if total <= self._heaviest:
                return
            del self._entries[key]
            total -= weights[key]

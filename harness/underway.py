"""`UnderWay`: work given to threads, and taken back some at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")
_MOMENT = 0.05
"""Seconds that what is done waits for more: to store fifty samples takes hardly longer than to store one."""


class UnderWay(Generic[K, R]):
    """Work that is not taken back yet, of one thread that gives and takes."""

    def __init__(self, threads: Executor, work: Callable[[K], R]) -> None:
        """Do this work in these threads."""
        self._threads, self._work = threads, work
        self._begun: dict[Future[R], K] = {}
        self._back: SimpleQueue[Future[R]] = SimpleQueue()

    def __len__(self) -> int:
        """Return how much is not taken back."""
        return len(self._begun)

    def begin(self, what: K) -> None:
        """Have it done as soon as a thread is free."""
        future = self._threads.submit(self._work, what)
        self._begun[future] = what
        future.add_done_callback(self._back.put)

    def drop(self) -> list[K]:
        """Forget what no thread has begun; return it."""
        dropped = [future for future in self._begun if future.cancel()]
        return [self._begun.pop(future) for future in dropped]

    def take(self) -> list[tuple[K, Future[R]]]:
        """Wait until something is done, and a moment for more; return it in the order in which it was begun."""
        done = {self._next(None)}
        until = time.monotonic() + _MOMENT
        with contextlib.suppress(Empty):
            while len(done) < len(self._begun):
                done.add(self._next(max(0.0, until - time.monotonic())))
        return [(self._begun.pop(future), future) for future in list(self._begun) if future in done]

    def _next(self, seconds: float | None) -> Future[R]:
        while True:
            future = self._back.get(timeout=seconds)
            if future in self._begun:
                return future

"""`UnderWay`: pieces of work in threads, whose results are taken several at a time."""

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
"""Seconds that a finished piece waits for more: storing fifty samples takes hardly longer than storing one."""


class UnderWay(Generic[K, R]):
    """Work whose results are not taken yet; used by a single thread."""

    def __init__(self, threads: Executor, work: Callable[[K], R]) -> None:
        """Do this work in these threads."""
        self._threads, self._work = threads, work
        self._begun: dict[Future[R], K] = {}
        self._back: SimpleQueue[Future[R]] = SimpleQueue()

    def __len__(self) -> int:
        """Return the number of pieces whose results are not taken yet."""
        return len(self._begun)

    def begin(self, piece: K) -> None:
        """Submit a piece, which begins as soon as a thread is free."""
        future = self._threads.submit(self._work, piece)
        self._begun[future] = piece
        future.add_done_callback(self._back.put)

    def drop(self) -> list[K]:
        """Drop and return the pieces that no thread has begun."""
        dropped = [future for future in self._begun if future.cancel()]
        return [self._begun.pop(future) for future in dropped]

    def take(self) -> list[tuple[K, Future[R]]]:
        """Wait for a finished piece, and a moment for more; return them in the order in which they were submitted."""
        finished = {self._next(None)}
        until = time.monotonic() + _MOMENT
        with contextlib.suppress(Empty):
            while len(finished) < len(self._begun):
                finished.add(self._next(max(0.0, until - time.monotonic())))
        return [(self._begun.pop(future), future) for future in list(self._begun) if future in finished]

    def _next(self, seconds: float | None) -> Future[R]:
        while True:
            future = self._back.get(timeout=seconds)
            if future in self._begun:
                return future

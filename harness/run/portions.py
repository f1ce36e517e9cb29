"""Work in parts: what is `UnderWay` in threads, its `WorkPace`, and `apart`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Generic, TypeVar

from ctxbench.bench.errors import MachineFault

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
_MOMENT = 0.05
"""Seconds that a finished piece waits for more: storing fifty samples takes hardly longer than storing one."""
_SECONDS = 0.5
"""The time that a part should take."""


class UnderWay(Generic[K, R]):
    """Work whose results are not taken yet; used by a single thread."""

    def __init__(self, threads: Executor, work: Callable[[K], R]) -> None:
        """Do this work in these threads."""
        self._threads, self._work = threads, work
        self._begun: dict[Future[R], K] = {}

    def __len__(self) -> int:
        """Return the number of pieces whose results are not taken yet."""
        return len(self._begun)

    def begin(self, piece: K) -> None:
        """Submit a piece, which begins as soon as a thread is free."""
        self._begun[self._threads.submit(self._work, piece)] = piece

    def drop(self) -> list[K]:
        """Drop and return the pieces that no thread has begun."""
        dropped = [future for future in self._begun if future.cancel()]
        return [self._begun.pop(future) for future in dropped]

    def take(self) -> list[tuple[K, Future[R]]]:
        """Wait for a finished piece, and a moment for more; return them in the order in which they were submitted."""
        wait(self._begun, return_when=FIRST_COMPLETED)
        finished = wait(self._begun, timeout=_MOMENT).done
        return [(self._begun.pop(future), future) for future in list(self._begun) if future in finished]


class WorkPace:
    """The size of the next part of some work, so that results are stored soon and a kill loses little.

    The first part is small, the next ones as large as the time of the last suggests, at most doubled.
    """

    def __init__(self, first: int) -> None:
        """Begin with parts of `first` pieces."""
        self.size = max(1, first)

    def parts(self, pieces: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the pieces, part after part; each part is timed until the next is taken."""
        at = 0
        while at < len(pieces):
            part = pieces[at : at + self.size]
            began = time.monotonic()
            yield part
            self.took(len(part), time.monotonic() - began)
            at += len(part)

    def took(self, pieces: int, seconds: float) -> None:
        """Note how long a part took; a short last part does not make the next ones smaller."""
        fits = int(pieces * _SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(2 * self.size, fits if seconds > _SECONDS else max(self.size, fits)))


class NothingWorks(MachineFault):
    """The fault of pieces that were not tried alone, because no piece at all can be done now."""


def apart(
    work: Callable[[Sequence[T]], R], part: Sequence[T], works: Callable[[MachineFault], bool]
) -> Iterator[tuple[Sequence[T], R | MachineFault]]:
    """Do some work on a part; where that fails on each piece alone, so that nobody has the fault of a neighbour.

    Args:
        work: raises a fault if one of its pieces cannot be done.
        part: the pieces.
        works: whether other pieces can be done after a fault; where none can, trying each would take long.

    Yields:
        Pieces with their result or fault, each piece once; `NothingWorks` for all that are left.
    """
    remaining, size = part, max(1, len(part))
    while remaining:
        pieces = remaining[:size]
        outcome: R | MachineFault
        try:
            outcome = work(pieces)
        except MachineFault as fault:
            if not works(fault):
                pieces, outcome = remaining, NothingWorks(fault.what, where=fault.where, cure=fault.cure)
            elif size > 1:
                size = 1
                continue
            else:
                outcome = fault
        remaining = remaining[len(pieces) :]
        yield pieces, outcome

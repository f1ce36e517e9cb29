"""`InFlight`: requests without an answer yet, their waiters, and the state of each request.

A request is first *asked* (to be looked up), then *pending* (to be sent), under way, and *answered* (to be stored);
then it is settled. All of this changes under one lock; there is no I/O here.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxbench.bench.errors import MachineFault
from ctxbench.harness.generators.base import Request, Response, TooLong

LINGER = 0.5
"""Seconds without a new request after which a batch goes out though members are still at work."""
FIRST = 8
"""Requests of the first batch at most; each of the next ones has twice as many, up to a full one. The first answers
come soon and are kept, whatever happens to a run in its first seconds."""
GIVE_UP = 3
"""Batches in a row without a single answer after which the generator counts as lost."""

_MOMENT = 0.05
"""Seconds that look-ups and answers to store wait for more: many cost a database about as much as one."""

Outcome = Response | MachineFault
"""The generator's answer to one request."""


class Waiter:
    """One call that waits for some requests."""

    def __init__(self, missing: int) -> None:
        """Wait for `missing` slots."""
        self.missing, self.done = missing, threading.Event()


@dataclass(slots=True, eq=False)
class Slot:
    """One distinct request in flight."""

    id: str
    request: Request
    waiters: list[Waiter] = field(default_factory=list)
    result: Response | BaseException | None = None


class InFlight:
    """The requests of one batcher. Safe to use from many threads."""

    def __init__(self, size: int, lanes: int) -> None:
        """Begin with none.

        Args:
            size: requests of a full batch.
            lanes: batches that are under way at once.
        """
        self._full, self._lanes = size, lanes
        self._size = min(FIRST, size)  # of the next batch
        self._lock = threading.RLock()
        self._books, self._work = threading.Condition(self._lock), threading.Condition(self._lock)
        self._slots: dict[str, Slot] = {}  # all that is not settled
        self._asked: list[Slot] = []
        self._pending: list[Slot] = []
        self._answered: list[tuple[Slot, Outcome]] = []
        self._unknown = self._under_way = 0  # requests that are not looked up yet; batches
        self._members = self._waiting = self._failures = 0
        self._newest, self._gathers = 0.0, False
        self._fatal: BaseException | None = None
        self._gone: MachineFault | None = None

    @property
    def fault(self) -> BaseException | None:
        """The fault that a request gets now: that which ended everything, or the last one of a lost generator."""
        return self._fatal or self._gone

    def __len__(self) -> int:
        """Return how many requests are not settled."""
        return len(self._slots)

    @contextlib.contextmanager
    def member(self) -> Iterator[None]:
        """Count the calling thread among those that may still ask."""
        with self._lock:
            self._members += 1
        try:
            yield
        finally:
            with self._lock:
                self._members -= 1
                self._tell_books()
                self._work.notify()

    def add(self, requests: Mapping[str, Request]) -> tuple[Waiter, dict[str, Slot]]:
        """Enter requests by their keys, equal ones once; the waiter is done when all are settled.

        Raises:
            BaseException: `fault`, if there is one.
        """
        waiter = Waiter(len(requests))
        with self._lock:
            if (fault := self.fault) is not None:
                raise fault
            slots = {id_: self._slot(id_, request) for id_, request in requests.items()}
            for slot in slots.values():
                slot.waiters.append(waiter)
            self._waiting += 1
            self._newest = time.monotonic()
            self._tell_books()
            self._work.notify()
        return waiter, slots

    def _slot(self, id_: str, request: Request) -> Slot:
        slot = self._slots.get(id_)
        if slot is None:
            slot = self._slots[id_] = Slot(id_, request)
            self._asked.append(slot)
            self._unknown += 1
        return slot

    def fail(self, error: BaseException) -> None:
        """Answer every waiting and every later request with `error`; the first error counts."""
        with self._lock:
            self._fatal = self._fatal or error
            self._settle(dict.fromkeys(self._slots.values(), self._fatal))
            self._pending.clear()
            self._books.notify_all()
            self._work.notify_all()

    def _settle(self, results: Mapping[Slot, Response | BaseException]) -> None:
        """Answer the waiters of slots, each once. Called with the lock held."""
        for slot, result in results.items():
            if self._slots.pop(slot.id, None) is None:
                continue
            slot.result = result
            for waiter in slot.waiters:
                waiter.missing -= 1
                if not waiter.missing:
                    # Counted here and not by the woken thread, or a half-filled batch would go out before it runs.
                    self._waiting -= 1
                    waiter.done.set()

    def to_book(self) -> tuple[list[Slot], list[tuple[Slot, Outcome]]] | None:
        """Wait for requests to look up and answers to store, and return what has come; None means the end."""
        with self._lock:
            while not self._asked and not self._answered:
                # What is under way at the end is stored as well.
                if self._fatal is not None and not self._under_way:
                    return None
                self._books.wait()
            self._gathers = True
            self._books.wait_for(self._all_there, timeout=_MOMENT)
            self._gathers = False
            work = self._asked, self._answered
            self._asked, self._answered = [], []
            return work

    def _all_there(self) -> bool:
        """Return whether nothing more can come before this is stored."""
        return self._fatal is not None or (self._waiting >= self._members and not self._under_way)

    def _tell_books(self) -> None:
        """Wake the thread that keeps the books, unless it gathers and more may come. Called with the lock held."""
        if not self._gathers or self._all_there():
            self._books.notify()

    def looked_up(self, slots: Sequence[Slot], answers: Mapping[str, Response]) -> None:
        """Settle requests that have a stored answer; the others become pending."""
        with self._lock:
            self._unknown -= len(slots)
            self._settle({slot: answers[slot.id] for slot in slots if slot.id in answers})
            # Requests that a general fault has settled are no longer there.
            self._pending += [slot for slot in slots if slot.id in self._slots]
            if not self._under_way:
                self._drop_pending()
            self._work.notify(max(1, len(self._pending)))

    def stored(self, answered: Sequence[tuple[Slot, Outcome]]) -> None:
        """Settle requests whose answers are stored; with a lost generator, the pending ones too."""
        with self._lock:
            self._settle(dict(answered))
            self._drop_pending()

    def _drop_pending(self) -> None:
        """With a lost generator, settle what would only wait to fail as well. Called with the lock held."""
        if self._gone is not None:
            self._settle(dict.fromkeys(self._pending, self._gone))
            self._pending.clear()

    def next_batch(self) -> list[Slot]:
        """Wait until a batch is due, and return it; an empty one means the end."""
        with self._lock:
            while self._fatal is None:
                seconds = self._newest + LINGER - time.monotonic()
                all_wait = self._waiting >= self._members and not self._unknown
                due = len(self._pending) >= self._size or all_wait or seconds <= 0
                if self._pending and due and self._gone is None:
                    batch, self._pending = self._pending[: self._size], self._pending[self._size :]
                    self._size = min(2 * self._size, self._full)
                    self._under_way += 1
                    return batch
                self._work.wait(seconds if self._pending and seconds > 0 else None)
        return []

    def came_back(self, answered: Sequence[tuple[Slot, Outcome]]) -> None:
        """Take in the outcomes of a batch, none if its lane ends, and note whether the generator is alive."""
        faults = [outcome for _, outcome in answered if isinstance(outcome, MachineFault)]
        with self._lock:
            self._under_way -= 1
            self._answered += answered
            if len(faults) < len(answered):
                self._failures = 0
                if self._gone is not None:
                    # Lanes that stood still for a lost generator go on.
                    self._gone = None
                    self._work.notify_all()
            elif failures := [fault for fault in faults if not isinstance(fault, TooLong)]:
                self._failures += 1
                # As many calls side by side as there are lanes fail together, and are one failure.
                if self._failures >= GIVE_UP * self._lanes:
                    self._gone = failures[-1]
            self._tell_books()

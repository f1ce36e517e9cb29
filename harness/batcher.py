"""`Batcher`: gathers requests from many threads into batches, answers equal ones once, keeps every answer.

A thread enters with `member` and asks with `ask`, which waits. One thread of the batcher's own takes
what is pending as soon as a batch is full, every member waits, or nothing new came for `LINGER` seconds;
it looks the requests up in the store, sends the rest to the generator and stores the answers.
For a generator that is called side by side (``concurrent``) there are `batch_size` such threads, and each takes
one request as soon as it is free: none waits for a batch to fill, or for the slowest of a batch to end.
Whatever happens, every asker is answered or gets the fault; the faults of some requests of a batch are theirs alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from bench.errors import MachineFault
from bench.files import sha256
from harness.generators.base import Generator, Request, Response, TooLong
from harness.prices import Prices
from harness.runspec import sampling_key
from harness.slots import Slot, Waiter, stored
from harness.store.records import StoredGeneration
from harness.store.rows import clean

LINGER = 0.5
"""Seconds without a new request after which a batch goes out though members are still at work."""
GIVE_UP = 3
"""Batches in a row without a single answer after which the generator counts as lost."""
_CLOSE_SECONDS = 10.0


class AnswerStore(Protocol):
    """Where answers are kept."""

    def generations(self, ids: Sequence[str]) -> dict[str, Response]:
        """Return the stored answers among `ids`."""
        ...

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        """Keep answers."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A response and the key under which it is stored."""

    id: str
    response: Response


class Stopped(MachineFault):
    """Raised in a thread that asks after the run was interrupted."""


class Batcher:
    """A generator, shared by threads."""

    def __init__(self, generator: Generator, spec: str, store: AnswerStore, prices: Prices | None = None) -> None:
        """Prepare; threads start with the first request.

        Args:
            generator: who answers; called by one thread at a time, unless it is ``concurrent``.
            spec: its canonical spec, which together with its version says whose answers these are.
            store: where answers are looked up and kept.
            prices: what models cost; the price of an answer is kept with it.
        """
        self.generator, self._spec, self._store = generator, spec, store
        self.rate = (prices or Prices()).rate(spec)  # what it costs; None if nobody knows
        self._changed = threading.Condition()
        self._slots: dict[str, Slot] = {}
        self._pending: list[Slot] = []
        self._members = self._waiting = self._failures = 0
        self._newest = 0.0
        self._fatal: BaseException | None = None
        self._gone: MachineFault | None = None
        batch = max(1, generator.batch_size)
        self._lanes, self._size = (batch, 1) if getattr(generator, "concurrent", False) else (1, batch)
        self._threads: list[threading.Thread] = []

    @property
    def lost(self) -> bool:
        """Whether asking on is of no use: the generator failed often in a row, or the batcher has ended."""
        return self._gone is not None or self._fatal is not None

    @property
    def served(self) -> tuple[str, ...]:
        """Who answered so far, as a service itself says; empty for generators that are no service."""
        return tuple(getattr(self.generator, "served", ()))

    @contextlib.contextmanager
    def member(self) -> Iterator[None]:
        """Count the calling thread among those that may still ask."""
        with self._changed:
            self._members += 1
        try:
            yield
        finally:
            with self._changed:
                self._members -= 1
                self._changed.notify_all()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Wait for the answers to `requests`, in order.

        Raises:
            MachineFault: what became of one of them; a lost generator's last fault; `Stopped` after `close`.
        """
        ids = [self.id_of(request) for request in requests]
        with self._changed:
            if (fault := self._fatal or self._gone) is not None:
                raise fault
            slots = {id_: self._slot(id_, request) for id_, request in zip(ids, requests, strict=True)}
            waiter = Waiter(len(slots))
            for slot in slots.values():
                slot.waiters.append(waiter)
            if slots:
                self._waiting += 1
                self._newest = time.monotonic()
                self._start()
                self._changed.notify_all()
        if slots:
            waiter.done.wait()
        for slot in slots.values():
            if isinstance(slot.result, BaseException):
                raise slot.result
        return [Answer(id_, result) for id_ in ids if isinstance(result := slots[id_].result, Response)]

    def id_of(self, request: Request) -> str:
        """Return the key of everything that decides an answer: whose, to what, how, which of n."""
        parts = [
            self._spec,
            self.generator.version,
            request.prompt.digest,
            request.language,
            request.kind,
            sampling_key(request.sampling),
            request.index,
            *(["one line"] if request.one_line else []),
        ]
        return sha256("\n".join(map(str, parts)))

    def close(self) -> None:
        """Stop: every waiting thread gets `Stopped`, and so does whoever asks later.

        Answers that are on their way are given some seconds to come and be stored.
        """
        self._fail(Stopped("the run was stopped", cure="run the same command again to go on"))
        until = time.monotonic() + _CLOSE_SECONDS
        while self._threads:
            self._threads.pop().join(max(0.0, until - time.monotonic()))

    def _start(self) -> None:
        """See that there are threads for what is asked. Called with the condition held."""
        for number in range(len(self._threads), min(self._lanes, len(self._slots))):
            self._threads.append(threading.Thread(target=self._loop, name=f"batcher-{number}", daemon=True))
            self._threads[-1].start()

    def _slot(self, id_: str, request: Request) -> Slot:
        slot = self._slots.get(id_)
        if slot is None:
            slot = self._slots[id_] = Slot(id_, request)
            self._pending.append(slot)
        return slot

    def _fail(self, error: BaseException) -> None:
        """Answer everyone who waits, and everyone who will ask, with `error`."""
        with self._changed:
            self._fatal = self._fatal or error
            for slot in list(self._slots.values()):
                self._settle(slot, self._fatal)
            self._pending.clear()
            self._changed.notify_all()

    def _settle(self, slot: Slot, result: Response | BaseException) -> None:
        """Answer a slot's waiters, once. Called with the condition held."""
        if self._slots.pop(slot.id, None) is None:
            return
        slot.result = result
        for waiter in slot.waiters:
            waiter.missing -= 1
            if not waiter.missing:
                # Counted here and not by the woken thread, or a half-filled batch would go out before it runs.
                self._waiting -= 1
                waiter.done.set()

    def _loop(self) -> None:
        try:
            while batch := self._next():
                self._answer(batch)
        except BaseException as error:  # noqa: BLE001 - a thread's end must reach those who wait for it
            self._fail(error)

    def _next(self) -> list[Slot]:
        """Wait for a batch; an empty one means the end."""
        with self._changed:
            while self._fatal is None:
                left = self._newest + LINGER - time.monotonic()
                full = len(self._pending) >= self._size
                if self._pending and (full or self._waiting >= self._members or left <= 0):
                    batch, self._pending = self._pending[: self._size], self._pending[self._size :]
                    return batch
                self._changed.wait(left if self._pending else None)
        return []

    def _answer(self, batch: Sequence[Slot]) -> None:
        found: dict[str, Response | MachineFault] = {**self._store.generations([slot.id for slot in batch])}
        asked = [slot for slot in batch if slot.id not in found]
        if asked:
            outcomes = self._ask(asked)
            made = {
                slot.id: dataclasses.replace(outcome, text=clean(outcome.text))
                for slot, outcome in zip(asked, outcomes, strict=True)
                if isinstance(outcome, Response)
            }
            if made:
                row = functools.partial(stored, spec=self._spec, version=self.generator.version, rate=self.rate)
                self._store.add_generations([row(slot, made[slot.id]) for slot in asked if slot.id in made])
            found |= {slot.id: outcome for slot, outcome in zip(asked, outcomes, strict=True)} | made
        with self._changed:
            for slot in batch:
                self._settle(slot, found[slot.id])
            if self._gone is not None:
                # What is pending would only wait to fail as well.
                for slot in self._pending:
                    self._settle(slot, self._gone)
                self._pending.clear()

    def _ask(self, slots: Sequence[Slot]) -> Sequence[Response | MachineFault]:
        """Ask the generator, and note whether it is alive."""
        outcomes: Sequence[Response | MachineFault]
        try:
            outcomes = self.generator.generate([slot.request for slot in slots])
        except MachineFault as error:
            outcomes = [error] * len(slots)
        with self._changed:
            if any(isinstance(outcome, Response) for outcome in outcomes):
                self._failures, self._gone = 0, None
            elif faults := [one for one in outcomes if isinstance(one, MachineFault) and not isinstance(one, TooLong)]:
                self._failures += 1
                # As many calls side by side as there are lanes fail together, and are one failure.
                if self._failures >= GIVE_UP * self._lanes:
                    self._gone = faults[-1]
        return outcomes

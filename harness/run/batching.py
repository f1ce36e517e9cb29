"""`Batcher`: batches the requests of many threads, sends equal requests once, and stores every answer.

One thread reads and writes the store; others send batches to the generator. A request is *asked* (to be looked up),
*pending* (to be sent), under way, *answered* (to be stored), and then settled. One lock protects these states.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.harness.generators.base import Generator, Request, Response, TooLong, accounted
from ctxbench.harness.prices import Prices
from ctxbench.harness.run.spec import sampling_key
from ctxbench.harness.store.write import StoredGeneration, clean

LINGER = 0.5
"""Seconds without a new request after which a batch is sent even if it is not full."""
FIRST = 8
"""Maximum number of requests in the first batch. Each later batch may have twice as many as the batch before. So the
first answers arrive early, and are stored even if the run stops in its first seconds."""
GIVE_UP = 3
"""Number of consecutive failed batches, per parallel call, after which the generator counts as lost."""
_MOMENT = 0.05
"""Seconds to collect further lookups and answers before using the database, which handles many as fast as one."""

_CLOSE_SECONDS = 10.0
Outcome = Response | MachineFault


class AnswerStore(Protocol):
    """The storage of answers that a batcher needs."""

    def generations(self, ids: Sequence[str]) -> dict[str, Response]:
        """Return the stored answers with these ids, by id. Unknown ids are left out."""

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        """Store answers."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's response and the key under which it is stored."""

    id: str
    response: Response


class Stopped(MachineFault):
    """Raised in threads that wait for the model or the tests of a run that was stopped."""


@dataclass(slots=True, eq=False)
class _Waiter:
    missing: int
    done: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True, eq=False)
class _Slot:
    id: str
    request: Request
    waiters: list[_Waiter] = field(default_factory=list)
    result: Response | BaseException | None = None


class Batcher:
    """A queue that sends the requests of many threads to one generator in batches."""

    def __init__(
        self,
        generator: Generator,
        spec: str,
        store: AnswerStore,
        prices: Prices | None = None,
    ) -> None:
        """Prepare to send requests. The batcher's threads start with the first request.

        `spec` is the generator's canonical spec, which is part of each answer's key.
        """
        self.generator, self.spec, self._store = generator, spec, store
        self.spent = 0.0
        """US dollars for new answers whose price is known. Stored answers cost nothing."""
        self.rate = (prices or Prices()).rate(spec)  # None if the price is unknown
        able = generator.capabilities
        self.requests = max(1, able.batch_size)  # maximum number of requests sent at once
        self.lanes, self._full = (self.requests, 1) if able.concurrent else (1, self.requests)
        self._size = min(FIRST, self._full)  # maximum size of the next batch
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._lock = threading.RLock()
        self._books, self._work = threading.Condition(self._lock), threading.Condition(self._lock)
        self._slots: dict[str, _Slot] = {}  # requests that are not settled yet
        self._asked: list[_Slot] = []
        self._pending: list[_Slot] = []
        self._answered: list[tuple[_Slot, Outcome]] = []
        self._unknown = self._under_way = 0  # number of requests to look up; number of batches being answered
        self._members = self._waiting = self._failures = 0
        self._newest, self._gathers = 0.0, False
        self._fatal: BaseException | None = None
        self._gone: MachineFault | None = None

    @property
    def lost(self) -> bool:
        """Whether further requests would fail: the generator failed repeatedly, or the batcher failed or was closed."""
        return (self._fatal or self._gone) is not None

    @contextlib.contextmanager
    def member(self) -> Iterator[None]:
        """Make batches wait briefly for requests of the calling thread while it is inside the context."""
        with self._lock:
            self._members += 1
        try:
            yield
        finally:
            with self._lock:
                self._members -= 1
                self._tell_books()
                self._work.notify()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Wait for the answers to `requests`, and return them in the same order.

        Raises:
            MachineFault: if a request failed or the generator is lost; `Stopped` after `close`.
            InputFault: if the user must correct something first, such as a missing key.
        """
        if not requests:
            return []
        ids = [self.id_of(request) for request in requests]
        waiter, slots = self._enter(dict(zip(ids, requests, strict=True)))
        self._start()
        waiter.done.wait()
        for slot in slots.values():
            if isinstance(slot.result, BaseException):
                raise slot.result
        return [
            # The stored answer may belong to an equal request that measured another reference.
            Answer(id_, result if slots[id_].request.reference == reference else dataclasses.replace(result, bits=None))
            for id_, reference in zip(ids, (request.reference for request in requests), strict=True)
            if isinstance(result := slots[id_].result, Response)
        ]

    def id_of(self, request: Request) -> str:
        """Return the key of a request's answer: a digest of all that affects the answer, such as the prompt."""
        parts = [
            self.spec,
            self.generator.version,
            request.prompt.digest,
            request.language,
            request.kind,
            sampling_key(request.sampling),
            request.index,
            *([f"system {request.system}"] if request.system else []),
            *(["one line"] if request.one_line else []),
            *([f"chat {request.chat.digest}"] if request.chat is not None else []),
        ]
        return sha256("\n".join(map(str, parts)))

    def price(self, response: Response) -> float | None:
        """Return the price of an answer in US dollars; None if the model's rate is unknown."""
        if self.rate is None:
            return None
        return self.rate.price(
            tokens_in=response.tokens_in,
            tokens_out=response.tokens_out,
            cached=response.cached,
            seconds=response.seconds,
        )

    def without_answer(self, requests: Sequence[Request]) -> list[Request]:
        """Return the distinct requests whose answers are not stored."""
        by_id = {self.id_of(request): request for request in requests}
        stored = self._store.generations(list(by_id))
        return [request for id_, request in by_id.items() if id_ not in stored]

    def close(self) -> None:
        """Stop: waiting and later calls of `ask` raise `Stopped`. Answers under way get a few seconds to arrive."""
        self._fail(Stopped("the run was stopped", cure="run the same command again to continue"))
        until = time.monotonic() + _CLOSE_SECONDS
        while self._threads:
            self._threads.pop().join(max(0.0, until - time.monotonic()))

    def _enter(self, requests: Mapping[str, Request]) -> tuple[_Waiter, dict[str, _Slot]]:
        waiter = _Waiter(len(requests))
        with self._lock:
            if (fault := self._fatal or self._gone) is not None:
                raise fault
            slots = {id_: self._slot(id_, request) for id_, request in requests.items()}
            for slot in slots.values():
                slot.waiters.append(waiter)
            self._waiting += 1
            self._newest = time.monotonic()
            self._tell_books()
            self._work.notify()
        return waiter, slots

    def _slot(self, id_: str, request: Request) -> _Slot:
        slot = self._slots.get(id_)
        if slot is None:
            slot = self._slots[id_] = _Slot(id_, request)
            self._asked.append(slot)
            self._unknown += 1
        return slot

    def _start(self) -> None:
        with self._starting:
            for number in range(len(self._threads), 1 + min(self.lanes, len(self._slots))):
                work, name = (self._lane, f"lane-{number}") if number else (self._keep_books, "books")
                self._threads.append(threading.Thread(target=self._or_fail, args=(work,), name=name, daemon=True))
                self._threads[-1].start()

    def _or_fail(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the end of a thread must reach the waiting callers
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._fatal = self._fatal or error
            self._settle(dict.fromkeys(self._slots.values(), self._fatal))
            self._pending.clear()
            self._books.notify_all()
            self._work.notify_all()

    def _settle(self, results: Mapping[_Slot, Response | BaseException]) -> None:
        """Settle requests and wake their waiting threads. Call with the lock held."""
        for slot, result in results.items():
            if self._slots.pop(slot.id, None) is None:
                continue
            slot.result = result
            for waiter in slot.waiters:
                waiter.missing -= 1
                if not waiter.missing:
                    # Count here, not in the woken thread. A half-filled batch could be sent before that thread runs.
                    self._waiting -= 1
                    waiter.done.set()

    def _keep_books(self) -> None:
        while (work := self._to_book()) is not None:
            new_slots, answered = work
            if new_slots:
                self._look_up(new_slots)
            if answered:
                kept = self._keep(answered)
                with self._lock:
                    self._settle(dict(kept))
                    self._drop_pending()

    def _to_book(self) -> tuple[list[_Slot], list[tuple[_Slot, Outcome]]] | None:
        with self._lock:
            while not self._asked and not self._answered:
                # Before the thread ends, answers under way are stored too.
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
        """Return whether no more work can arrive until the current work is stored."""
        return self._fatal is not None or (self._waiting >= self._members and not self._under_way)

    def _tell_books(self) -> None:
        """Wake the thread that uses the store, unless more work may arrive soon. Call with the lock held."""
        if not self._gathers or self._all_there():
            self._books.notify()

    def _look_up(self, slots: Sequence[_Slot]) -> None:
        answers = self._store.generations([slot.id for slot in slots])
        with self._lock:
            self._unknown -= len(slots)
            self._settle({slot: answers[slot.id] for slot in slots if slot.id in answers})
            # Skip requests that a fault of the whole batcher has settled.
            self._pending += [slot for slot in slots if slot.id in self._slots]
            if not self._under_way:
                self._drop_pending()
            self._work.notify(max(1, len(self._pending)))

    def _keep(self, answered: Sequence[tuple[_Slot, Outcome]]) -> list[tuple[_Slot, Outcome]]:
        """Store answers, and return the stored answers. An equal request of another run may have stored one first."""
        generations = [self._row(slot, answer) for slot, answer in answered if isinstance(answer, Response)]
        if not generations:
            return list(answered)
        self.spent += sum(generation.price or 0.0 for generation in generations)
        self._store.add_generations(generations)
        stored = self._store.generations([generation.id for generation in generations])
        return [
            (slot, dataclasses.replace(stored.get(slot.id, outcome), bits=outcome.bits))
            if isinstance(outcome, Response)
            else (slot, outcome)
            for slot, outcome in answered
        ]

    def _row(self, slot: _Slot, response: Response) -> StoredGeneration:
        request = slot.request
        return StoredGeneration(
            id=slot.id,
            generator=self.spec,
            version=self.generator.version,
            prompt_digest=request.prompt.digest,
            prompt=request.prompt.text,
            sampling=sampling_key(request.sampling),
            idx=request.index,
            text=response.text,
            finish=response.finish,
            tokens_in=response.tokens_in,
            tokens_out=response.tokens_out,
            seconds=response.seconds,
            cached=response.cached,
            price=self.price(response),
        )

    def _drop_pending(self) -> None:
        """Settle pending requests of a lost generator, because they would fail. Call with the lock held."""
        if self._gone is not None:
            self._settle(dict.fromkeys(self._pending, self._gone))
            self._pending.clear()

    def _lane(self) -> None:
        while batch := self._next_batch():
            answered: list[tuple[_Slot, Outcome]] = []
            try:
                answered = list(zip(batch, self._ask(batch), strict=True))
            finally:
                self._came_back(answered)

    def _next_batch(self) -> list[_Slot]:
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

    def _ask(self, slots: Sequence[_Slot]) -> list[Outcome]:
        try:
            outcomes = self.generator.generate([slot.request for slot in slots])
        except MachineFault as error:
            return [error] * len(slots)
        return [self._storable(outcome) if isinstance(outcome, Response) else outcome for outcome in outcomes]

    def _storable(self, response: Response) -> Outcome:
        if accounted(response):
            return dataclasses.replace(response, text=clean(response.text))
        what = "an answer reports an invalid finish reason, token count or time"
        return MachineFault(what, where=self.spec, cure="check the generator with `ctxbench generator check`")

    def _came_back(self, answered: Sequence[tuple[_Slot, Outcome]]) -> None:
        faults = [outcome for _, outcome in answered if isinstance(outcome, MachineFault)]
        with self._lock:
            self._under_way -= 1
            self._answered += answered
            if len(faults) < len(answered):
                self._failures = 0
                if self._gone is not None:
                    # Wake lanes that stopped because the generator was lost.
                    self._gone = None
                    self._work.notify_all()
            elif failures := [fault for fault in faults if not isinstance(fault, TooLong)]:
                self._failures += 1
                # With several lanes, concurrent calls fail together, so one failure per lane counts as one batch.
                if self._failures >= GIVE_UP * self.lanes:
                    self._gone = failures[-1]
            self._tell_books()

"""`Batcher`: gathers requests from many threads into batches, answers equal ones once, keeps every answer.

A thread enters with `member` and asks with `ask`, which waits. One thread of the batcher's own takes
what is pending as soon as a batch is full, every member waits, or nothing new came for `LINGER` seconds;
it looks the requests up in the store, sends the rest to the generator and stores the answers.
Whatever happens, every asker is answered or gets the fault.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.errors import MachineFault
from bench.files import sha256
from harness.generators.base import Generator, Request, Response
from harness.runspec import sampling_key
from harness.store.records import StoredGeneration
from harness.store.rows import clean

LINGER = 0.5
"""Seconds without a new request after which a batch goes out though members are still at work."""
GIVE_UP = 3
"""Failed calls in a row after which the generator counts as lost."""
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


class _Waiter:
    """One call of `ask`."""

    def __init__(self, missing: int) -> None:
        self.missing, self.done = missing, threading.Event()


@dataclass(slots=True)
class _Slot:
    """One distinct request in flight."""

    id: str
    request: Request
    waiters: list[_Waiter] = field(default_factory=list)
    result: Response | BaseException | None = None


class Batcher:
    """A generator, shared by threads."""

    def __init__(self, generator: Generator, spec: str, store: AnswerStore) -> None:
        """Start the batcher's thread.

        Args:
            generator: who answers; called by one thread at a time.
            spec: its canonical spec, which together with its version says whose answers these are.
            store: where answers are looked up and kept.
        """
        self._generator, self._spec, self._store = generator, spec, store
        self._changed = threading.Condition()
        self._slots: dict[str, _Slot] = {}
        self._pending: list[_Slot] = []
        self._members = self._waiting = self._failures = 0
        self._newest = 0.0
        self._fatal: BaseException | None = None
        self._thread = threading.Thread(target=self._loop, name="batcher", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Whether asking on is of no use: the generator failed often in a row, or the batcher has ended."""
        return self._failures >= GIVE_UP or self._fatal is not None

    @property
    def instructs(self) -> bool:
        """Whether the model follows instructions."""
        return self._generator.instructs

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
            MachineFault: what the generator raised for one of them; `Stopped` after `close`.
        """
        ids = [self.id_of(request) for request in requests]
        with self._changed:
            self._check()
            slots = {id_: self._slot(id_, request) for id_, request in zip(ids, requests, strict=True)}
            waiter = _Waiter(len(slots))
            for slot in slots.values():
                slot.waiters.append(waiter)
            if slots:
                self._waiting += 1
                self._newest = time.monotonic()
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
            self._generator.version,
            request.prompt.digest,
            request.language,
            request.kind,
            sampling_key(request.sampling),
            request.index,
        ]
        return sha256("\n".join(map(str, parts)))

    def close(self) -> None:
        """Stop: every waiting thread gets `Stopped`, and so does whoever asks later."""
        self._fail(Stopped("the run was stopped", cure="run the same command again to go on"))
        self._thread.join(_CLOSE_SECONDS)

    def _slot(self, id_: str, request: Request) -> _Slot:
        slot = self._slots.get(id_)
        if slot is None:
            slot = self._slots[id_] = _Slot(id_, request)
            self._pending.append(slot)
        return slot

    def _check(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _fail(self, error: BaseException) -> None:
        """Answer everyone who waits, and everyone who will ask, with `error`."""
        with self._changed:
            self._fatal = self._fatal or error
            for slot in list(self._slots.values()):
                self._settle(slot, self._fatal)
            self._pending.clear()
            self._changed.notify_all()

    def _settle(self, slot: _Slot, result: Response | BaseException) -> None:
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

    def _next(self) -> list[_Slot]:
        """Wait for a batch; an empty one means the end."""
        size = max(1, self._generator.batch_size)
        with self._changed:
            while self._fatal is None:
                left = self._newest + LINGER - time.monotonic()
                if self._pending and (len(self._pending) >= size or self._waiting >= self._members or left <= 0):
                    batch, self._pending = self._pending[:size], self._pending[size:]
                    return batch
                self._changed.wait(left if self._pending else None)
        return []

    def _answer(self, batch: Sequence[_Slot]) -> None:
        found: dict[str, Response] = self._store.generations([slot.id for slot in batch])
        asked = [slot for slot in batch if slot.id not in found]
        fault: MachineFault | None = None
        if asked:
            try:
                responses = self._generator.generate([slot.request for slot in asked])
                self._failures = 0
            except MachineFault as error:
                fault = error
                self._failures += 1
            else:
                made = {
                    slot.id: dataclasses.replace(response, text=clean(response.text))
                    for slot, response in zip(asked, responses, strict=True)
                }
                self._store.add_generations([self._row(slot, made[slot.id]) for slot in asked])
                found |= made
        with self._changed:
            for slot in batch:
                answer = found.get(slot.id) or fault
                if answer is not None:
                    self._settle(slot, answer)

    def _row(self, slot: _Slot, response: Response) -> StoredGeneration:
        request = slot.request
        return StoredGeneration(
            id=slot.id,
            generator=self._spec,
            version=self._generator.version,
            prompt_digest=request.prompt.digest,
            prompt=request.prompt.text,
            sampling=sampling_key(request.sampling),
            idx=request.index,
            text=response.text,
            finish=response.finish,
            tokens_in=response.tokens_in,
            tokens_out=response.tokens_out,
            seconds=response.seconds,
        )

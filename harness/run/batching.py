"""`Batcher`: gathers requests from many threads into batches, answers equal ones once, keeps every answer.

A thread enters with `member` and asks with `ask`, which waits. Two kinds of threads are the batcher's own:

- one keeps the books: it looks requests up in the store and stores answers, each time all that have come meanwhile,
  so that no model waits for a disk;
- one, a lane, takes what is not in the store as soon as a batch is full, every member waits, or nothing new came for
  half a second, and sends it to the generator. A generator that is called side by side (``concurrent``) has
  `batch_size` lanes, and each takes one request as soon as it is free: none waits for a batch to fill, or for the
  slowest of a batch to end.

Whatever happens, every caller gets its answers or the fault; a request's fault does not touch the rest of its batch.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.harness.generators.base import Generator, Request, Response, accounted
from ctxbench.harness.prices import Prices, Rate
from ctxbench.harness.run.inflight import InFlight, Outcome, Slot
from ctxbench.harness.run.spec import sampling_key
from ctxbench.harness.store.loading import clean
from ctxbench.harness.store.write import StoredGeneration

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

    def __init__(
        self,
        generator: Generator,
        spec: str,
        store: AnswerStore,
        prices: Prices | None = None,
    ) -> None:
        """Prepare; threads start with the first request.

        Args:
            generator: the model; called by one thread at a time, unless it is ``concurrent``.
            spec: its canonical spec, which with its version identifies its answers.
            store: where answers are looked up and kept.
            prices: what models cost; the price of an answer is kept with it.
        """
        self.generator, self.spec, self._store = generator, spec, store
        self.spent = 0.0
        """US dollars of the answers that came so far, as far as their prices are known; stored ones cost nothing."""
        self.rate = (prices or Prices()).rate(spec)  # None if unknown
        able = generator.capabilities
        self.requests = max(1, able.batch_size)  # at most as many are sent at once
        self._lanes, size = (self.requests, 1) if able.concurrent else (1, self.requests)
        self._in_flight = InFlight(size, self._lanes)
        self._starting = threading.Lock()
        self._threads: list[threading.Thread] = []

    @property
    def lost(self) -> bool:
        """Whether further requests are useless: the generator failed often in a row, or the batcher has ended."""
        return self._in_flight.fault is not None

    @property
    def served(self) -> tuple[str, ...]:
        """The services that answered so far, by their own names; empty for generators that are no service."""
        return self.generator.served

    def member(self) -> AbstractContextManager[None]:
        """Count the calling thread among those that may still ask."""
        return self._in_flight.member()

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Wait for the answers to `requests`, in order.

        Raises:
            MachineFault: the fault of one of them; a lost generator's last fault; `Stopped` after `close`.
        """
        if not requests:
            return []
        ids = [self.id_of(request) for request in requests]
        waiter, slots = self._in_flight.add(dict(zip(ids, requests, strict=True)))
        self._start()
        waiter.done.wait()
        for slot in slots.values():
            if isinstance(slot.result, BaseException):
                raise slot.result
        return [Answer(id_, result) for id_ in ids if isinstance(result := slots[id_].result, Response)]

    def id_of(self, request: Request) -> str:
        """Return the key of everything that decides an answer: model, prompt, decoding, and which of n."""
        parts = [
            self.spec,
            self.generator.version,
            request.prompt.digest,
            request.language,
            request.kind,
            sampling_key(request.sampling),
            request.index,
            *(["one line"] if request.one_line else []),
            *([f"chat {request.chat.digest}"] if request.chat is not None else []),
        ]
        return sha256("\n".join(map(str, parts)))

    def without_answer(self, requests: Sequence[Request]) -> list[Request]:
        """Return the distinct requests among these whose answers are not stored yet."""
        by_id = {self.id_of(request): request for request in requests}
        stored = self._store.generations(list(by_id))
        return [request for id_, request in by_id.items() if id_ not in stored]

    def close(self) -> None:
        """Stop: every waiting and every later call raises `Stopped`.

        Answers that are on their way get some seconds to arrive and be stored.
        """
        self._in_flight.fail(Stopped("the run was stopped", cure="run the same command again to go on"))
        until = time.monotonic() + _CLOSE_SECONDS
        while self._threads:
            self._threads.pop().join(max(0.0, until - time.monotonic()))

    def _start(self) -> None:
        """Start the threads that the requests in flight need."""
        with self._starting:
            for number in range(len(self._threads), 1 + min(self._lanes, len(self._in_flight))):
                work, name = (self._lane, f"lane-{number}") if number else (self._keep_books, "books")
                self._threads.append(threading.Thread(target=self._or_fail, args=(work,), name=name, daemon=True))
                self._threads[-1].start()

    def _or_fail(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - a thread's end must reach those who wait for it
            self._in_flight.fail(error)

    def _keep_books(self) -> None:
        while (work := self._in_flight.to_book()) is not None:
            new_slots, answered = work
            if new_slots:
                self._look_up(new_slots)
            if answered:
                self._in_flight.stored(self._keep(answered))

    def _look_up(self, slots: Sequence[Slot]) -> None:
        self._in_flight.looked_up(slots, self._store.generations([slot.id for slot in slots]))

    def _keep(self, answered: Sequence[tuple[Slot, Outcome]]) -> list[tuple[Slot, Outcome]]:
        """Store answers; return those that are stored, which another run may have asked for and stored first."""
        generations = [self._row(slot, answer) for slot, answer in answered if isinstance(answer, Response)]
        if not generations:
            return list(answered)
        self.spent += sum(generation.price or 0.0 for generation in generations)
        self._store.add_generations(generations)
        stored = self._store.generations([generation.id for generation in generations])
        return [(slot, stored.get(slot.id, outcome)) for slot, outcome in answered]

    def _row(self, slot: Slot, response: Response) -> StoredGeneration:
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
            price=price(response, self.rate),
        )

    def _lane(self) -> None:
        while batch := self._in_flight.next_batch():
            answered: list[tuple[Slot, Outcome]] = []
            try:
                answered = list(zip(batch, self._ask(batch), strict=True))
            finally:
                self._in_flight.came_back(answered)

    def _ask(self, slots: Sequence[Slot]) -> list[Outcome]:
        try:
            outcomes = self.generator.generate([slot.request for slot in slots])
        except MachineFault as error:
            return [error] * len(slots)
        return [self._storable(outcome) if isinstance(outcome, Response) else outcome for outcome in outcomes]

    def _storable(self, response: Response) -> Outcome:
        if accounted(response):
            return dataclasses.replace(response, text=clean(response.text))
        what = "an answer reports an impossible end, number of tokens or number of seconds"
        return MachineFault(what, where=self.spec, cure="see that the generator is well: `ctxbench generator check`")


def price(response: Response, rate: Rate | None) -> float | None:
    """Return what an answer costs in US dollars; None if the rate is unknown."""
    if rate is None:
        return None
    return rate.price(
        tokens_in=response.tokens_in,
        tokens_out=response.tokens_out,
        cached=response.cached,
        seconds=response.seconds,
    )

"""What the batcher keeps of requests in flight: who waits for which, and the row that an answer becomes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from harness.generators.base import Request, Response
from harness.prices import Rate
from harness.runspec import sampling_key
from harness.store.records import StoredGeneration


class Waiter:
    """One call of `Batcher.ask`."""

    def __init__(self, missing: int) -> None:
        """Wait for `missing` slots."""
        self.missing, self.done = missing, threading.Event()


@dataclass(slots=True)
class Slot:
    """One distinct request in flight."""

    id: str
    request: Request
    waiters: list[Waiter] = field(default_factory=list)
    result: Response | BaseException | None = None


def price(response: Response, rate: Rate | None) -> float | None:
    """Return what an answer costs in US dollars; None if nobody knows the rate."""
    if rate is None:
        return None
    return rate.price(
        tokens_in=response.tokens_in,
        tokens_out=response.tokens_out,
        cached=response.cached,
        seconds=response.seconds,
    )


def stored(slot: Slot, response: Response, *, spec: str, version: str, rate: Rate | None) -> StoredGeneration:
    """Return the row of an answer of the generator with that spec, version and rate."""
    request = slot.request
    return StoredGeneration(
        id=slot.id,
        generator=spec,
        version=version,
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
        price=price(response, rate),
    )

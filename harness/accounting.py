"""Prices of answers, and the rows in which answers are stored."""

from __future__ import annotations

from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.prices import Rate
from ctxbench.harness.runspec import sampling_key
from ctxbench.harness.store.write import StoredGeneration


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


def stored(
    id_: str, request: Request, response: Response, *, spec: str, version: str, rate: Rate | None
) -> StoredGeneration:
    """Return the row of an answer of the generator with that spec, version and rate."""
    return StoredGeneration(
        id=id_,
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

"""Choose the next token: the likeliest, or one drawn with random numbers that belong to the row alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ctxbench.harness.generators.base import Request

Choose = Callable[[Any], int]
"""A row's logits (a tensor of shape (vocabulary,)) -> the token chosen."""


def chooser(request: Request) -> Choose | None:
    """Return the function that draws a request's tokens; None for the likeliest each time.

    The random numbers follow from the request alone (seed, index, prompt), never from other rows of its batch.
    """
    how = request.sampling
    if how.temperature <= 0:
        return None
    numbers = random.Random(f"{how.seed} {request.index} {request.prompt.digest}")  # noqa: S311 - no secret

    def choose(logits: Any) -> int:
        return draw(logits, how.temperature, how.top_p, numbers.random())

    return choose


def draw(logits: Any, temperature: float, top_p: float, number: float) -> int:
    """Return the token at `number` of the distribution's mass, likeliest tokens first.

    Args:
        logits: shape (vocabulary,).
        temperature: above 0; below 1 sharpens.
        top_p: only the likeliest tokens that together have this much of the mass; at least one.
        number: from [0, 1).
    """
    likely, tokens = (logits.double() / temperature).softmax(0).sort(descending=True, stable=True)
    mass = likely.cumsum(0)
    candidates = max(1, int((mass - likely < top_p).sum()))
    at = int((mass[:candidates] <= number * mass[candidates - 1]).sum())
    return int(tokens[min(at, candidates - 1)])

"""Abilities and speed of a generator, for `ctxbench generator check`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.base import Coder, Generator, Request, Response, Sampling
from ctxbench.harness.generators.fim import Infilling
from ctxbench.harness.generators.fitting import Windowed
from ctxbench.harness.generators.openai.spread import spread
from ctxbench.strategies.api import Block, BlockKind, Prompt

_MOST = 16
"""Requests of the timed batch, if as many go out at once."""
_TOKENS = 64
"""Tokens of an answer of the timed batch at most."""
_PROMPT = "def area_{number}(width, height):\n    return width * height\n\n\n" * 16 + "def volume_{number}("


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSpeed:
    """Tokens and seconds of one short batch."""

    requests: int
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall time of all of them."""

    def __str__(self) -> str:
        """Return tokens a second."""
        into, out = (_rounded(tokens / self.seconds) for tokens in (self.tokens_in, self.tokens_out))
        return f"{into:,} tokens in and {out:,} out a second ({self.requests} requests in {self.seconds:.2g} s)"


def abilities(generator: Generator) -> Iterator[tuple[str, str]]:
    """Yield a generator's abilities as (name, words); the model is not asked.

    Raises:
        InputFault: if its files cannot be read.
    """
    yield "instructions", "follows them" if generator.instructs else "goes on with text; is asked for no plans"
    coder = isinstance(generator, Coder)
    yield "context gain", "prices texts itself" if coder else "measured by the built-in copy model"
    window = generator.window if isinstance(generator, Windowed) else 0
    yield "window", f"{window:,} tokens; prompts are cut to it" if window else "not known; prompts are sent as they are"
    yield "--fim", _middle(generator)
    width = generator.batch_size
    beside = getattr(generator, "concurrent", False)
    yield "at once", f"{width} requests, each answered by itself" if beside else f"{width} requests in a batch"


def served(generator: Generator) -> str:
    """Return the services that answered so far, by their own names; empty if they name no more than the spec."""
    return ", ".join(getattr(generator, "served", ()))


def speed(generator: Generator) -> GeneratorSpeed:
    """Time one batch of short answers; the generator has answered before, and is warm.

    Raises:
        MachineFault: if one of them failed.
    """
    requests = [_request(number) for number in range(min(generator.batch_size, _MOST))]
    begin = time.perf_counter()
    if getattr(generator, "concurrent", False):
        batches = spread(lambda request: generator.generate([request]), requests, len(requests))
        answers = [answer for batch in batches for answer in batch]
    else:
        answers = list(generator.generate(requests))
    seconds = max(time.perf_counter() - begin, 1e-9)
    for answer in answers:
        if isinstance(answer, MachineFault):
            raise answer
    responses = [answer for answer in answers if isinstance(answer, Response)]
    return GeneratorSpeed(
        requests=len(responses),
        tokens_in=sum(answer.tokens_in for answer in responses),
        tokens_out=sum(answer.tokens_out for answer in responses),
        seconds=seconds,
    )


def _rounded(rate: float) -> int:
    """Return a number to two digits: one batch measures no more."""
    return int(float(f"{rate:.2g}"))


def _middle(generator: Generator) -> str:
    if not isinstance(generator, Infilling):
        return "cannot fill in the middle"
    try:
        return f"fills in the middle, marks of {generator.infilling().name}"
    except InputFault as fault:
        return f"no: {fault.what}"


def _request(number: int) -> Request:
    prompt = Prompt(blocks=(Block(kind=BlockKind.INFILE, text=_PROMPT.format(number=number)),))
    return Request(prompt=prompt, language=PYTHON, sampling=Sampling(max_tokens=_TOKENS))

"""The contract of generators: requests in, responses out. Frozen data and protocols, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.types import Kind, Language
from ctxbench.strategies.api import Prompt

MOST_TOKENS = 100_000_000
"""Tokens of a prompt or an answer: no model takes a tenth of it, and sums of what is stored stay whole numbers."""
_LONGEST = 1e8
"""Seconds of an answer: three years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to decode; greedy by default, as both papers do."""

    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    fim: bool = False
    """Whether the model is shown what follows the cursor, and fills in the middle; see `harness.generators.fim`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answer wanted."""

    prompt: Prompt
    language: Language
    kind: Kind = Kind.LINE
    sampling: Sampling = field(default_factory=Sampling)
    index: int = 0
    """Which of n samples this is."""
    one_line: bool = False
    """Whether only the answer's first line that is not blank counts: a generator may end it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer given."""

    text: str
    finish: str
    """``stop`` (ended by itself or at a stop text) or ``length`` (cut at max_tokens)."""
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall time of this answer; a batch's time is shared out evenly."""
    cached: int = 0
    """How many of `tokens_in` the service had at hand from earlier requests, as it says."""


def accounted(response: Response) -> bool:
    """Return whether what a response says of itself can be: how it ended, its tokens, its seconds."""
    return (
        response.finish in ("stop", "length")
        and all(type(tokens) is int for tokens in (response.tokens_in, response.tokens_out, response.cached))
        and 0 <= response.cached <= response.tokens_in <= MOST_TOKENS
        and 0 <= response.tokens_out <= MOST_TOKENS
        and type(response.seconds) in (int, float)
        and 0 <= response.seconds <= _LONGEST
    )


class TooLong(MachineFault):
    """Raised for a request that is too long for the model; says nothing against the generator's health."""


class Generator(Protocol):
    """A model behind a spec. A call that fails is a `MachineFault`; it never returns a made-up text.

    One thread at a time calls `generate`, unless the generator has an attribute ``concurrent`` that is true: then up
    to `batch_size` threads do, each with one request, so that no request waits for a slower one.
    """

    @property
    def version(self) -> str:
        """What besides the spec decides the output: weights' digest, revision. Part of the cache key."""
        ...

    @property
    def instructs(self) -> bool:
        """Whether it follows instructions; one that only continues text can neither plan nor summarise."""
        ...

    @property
    def batch_size(self) -> int:
        """The most requests that are worth sending at once: in one call, or in calls side by side."""
        ...

    def generate(self, requests: Sequence[Request]) -> Sequence[Response | MachineFault]:
        """Answer every request, in order; one that failed alone has its fault in its place.

        Raises:
            MachineFault: if all of them failed.
            InputFault: if no request can be answered before the user mends something; ends the run.
        """
        ...

    def close(self) -> None:
        """Let go of processes, connections and memory."""
        ...


@runtime_checkable
class Coder(Protocol):
    """A generator that can say how many bits a given text costs after a prompt.

    One thread may be in `bits` while another is in `generate`, so that one's work fills the other's
    pauses; a model that cannot do both at once takes a lock of its own.
    """

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> Sequence[float]:
        """Return, for each pair, minus log2 of the probability of the text (line end included) after the prompt."""
        ...


@runtime_checkable
class Waking(Protocol):
    """A generator that takes a while to start, and can do so before it is needed."""

    def wake(self, language: Language) -> None:
        """Start what a language's requests need, and return when it is there.

        Raises:
            MachineFault: if it was lost.
        """
        ...

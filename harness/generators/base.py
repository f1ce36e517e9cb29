"""The contract of generators: requests in, responses out. Frozen data and protocols, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Kind
from ctxbench.strategies.api import Prompt

MOST_TOKENS = 100_000_000
"""Limit of tokens of a prompt or an answer: no model takes a tenth of it, and stored sums stay whole numbers."""
_LONGEST = 1e8
"""Limit of an answer's seconds: three years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Parameters of decoding; greedy by default, as in both papers."""

    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    fim: bool = False
    """Whether the model sees the text after the cursor and fills in the middle; see `harness.generators.fim`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for one answer."""

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
    """One answer."""

    text: str
    finish: str
    """``stop`` (ended by itself or at a stop text) or ``length`` (cut at max_tokens)."""
    tokens_in: int
    tokens_out: int
    seconds: float
    """Wall time of this answer; a batch's time is shared out evenly."""
    cached: int = 0
    """How many of `tokens_in` the service had cached from earlier requests, by its own account."""


def accounted(response: Response) -> bool:
    """Return whether a response's account of itself is possible: its end, its tokens, its seconds."""
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
        """Everything besides the spec that decides the output: weights' digest, revision. Part of the cache key."""
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
            InputFault: if no request can be answered until the user mends something; ends the run.
        """
        ...

    def close(self) -> None:
        """Release processes, connections and memory."""
        ...


@runtime_checkable
class Coder(Protocol):
    """A generator that can say how many bits a given text costs after a prompt.

    One thread may be in `bits` while another is in `generate`, so that one works in the other's pauses; a model that
    cannot do both at once takes a lock of its own.
    """

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> Sequence[float]:
        """Return, for each pair, minus log2 of the probability of the text (line end included) after the prompt."""
        ...


@runtime_checkable
class Learnt(Protocol):
    """A coder that has learnt some languages only; references in others have no costs."""

    def knows(self, language: Language) -> bool:
        """Say whether it has learnt a language."""
        ...


@runtime_checkable
class Waking(Protocol):
    """A generator that takes a while to start, and can do so before it is needed."""

    def wake(self, language: Language) -> None:
        """Start everything that a language's requests need, and return when it is ready.

        Raises:
            MachineFault: if it was lost.
        """
        ...

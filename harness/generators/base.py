"""The contract of generators: requests in, responses out, and what each can do. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Kind
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.chat import Chat

if TYPE_CHECKING:
    from ctxbench.harness.generators.fim import Template

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

    def __post_init__(self) -> None:
        """Bring numbers to their types: ids of runs and keys of answers are their spelling, and 0 equals 0.0."""
        for name, kind in (("max_tokens", int), ("temperature", float), ("top_p", float), ("seed", int), ("fim", bool)):
            object.__setattr__(self, name, kind(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for one answer."""

    prompt: Prompt
    language: Language
    kind: Kind = Kind.LINE
    sampling: Sampling = field(default_factory=Sampling)
    index: int = 0
    """Which of n samples this is."""
    chat: Chat | None = None
    """What `prompt` is the text of, for a generator that calls `tools` itself; its answer is that text's protocol."""
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
    counted: bool = True
    """Whether the model's own tokens were counted; else those of ctxbench stand in."""


def sample_seed(base: int, index: int) -> int:
    """Return the seed of the sample with that index: 31 bits, the same everywhere, no two alike for long."""
    return int(sha256(f"{base} {index}")[:8], 16) & 0x7FFFFFFF


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


class CutShort(MachineFault):
    """Raised for an answer to a prompt that the service silently cut.

    Counts against its health, as `TooLong` does not: a run in which nothing else comes back is given up.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a generator can do; `harness.generators.conformance` tries each that is declared."""

    batch_size: int = 1
    """The most requests that are worth sending at once: in one call, or in calls side by side."""
    concurrent: bool = False
    """Whether as many threads as `batch_size` may call `generate`, each with one request: none waits for a slower one.
    Else one thread at a time does."""
    instructs: bool = False
    """Whether it follows instructions; one that only continues text can neither plan nor summarise."""
    prices: bool = False
    """Whether it gives log-probabilities, by `bits`."""
    fills: bool = False
    """Whether its model may have been trained to fill in the middle, see `infilling`."""
    counts: bool = False
    """Whether it counts tokens as its model does, by `count`, so that prompts are cut to `window`."""
    thinking: int = 0
    """Tokens that it may write beside those of the answer."""
    tools: bool = False
    """Whether it takes chats with tools as such, in `Request.chat`; others read and write them as text."""
    weights: bool = False
    """Whether it loads a model's weights into the process that asks it."""
    service: bool = False
    """Whether others run the model: it names who answered in `served`, and is tried with a long prompt."""


class Generator(ABC):
    """A model behind a spec. A call that fails is a `MachineFault`; it never returns a made-up text."""

    version: str = ""
    """Everything besides the spec that decides the output: weights' digest, revision. Part of the cache key."""
    capabilities: Capabilities = Capabilities()
    window: int = 0
    """Tokens of prompt and answer, where it `counts`; 0 if unknown."""

    @abstractmethod
    def generate(self, requests: Sequence[Request]) -> Sequence[Response | MachineFault]:
        """Answer every request, in order; one that failed alone has its fault in its place.

        Raises:
            MachineFault: if all of them failed.
            InputFault: if no request can be answered until the user mends something; ends the run.
        """

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> Sequence[float]:
        """Return, for each pair, minus log2 of the probability of the text (line end included) after the prompt.

        One thread may be here while another is in `generate`, so that one works in the other's pauses; a model that
        cannot do both at once takes a lock of its own.
        """
        raise self._undefined("prices", "bits")

    def knows(self, language: Language) -> bool:
        """Say whether it has learnt a language; references in others have no costs."""
        return True

    def infilling(self) -> Template:
        """Return the template for text after the cursor.

        Raises:
            InputFault: if the model was not trained for that, judging by its vocabulary or name.
        """
        raise self._undefined("fills", "infilling")

    def count(self, request: Request) -> int:
        """Return how many tokens a request's prompt has for the model, with everything put around it."""
        raise self._undefined("counts", "count")

    @property
    def served(self) -> tuple[str, ...]:
        """The models that answered so far, by their service's own account; empty if it names no more than the spec."""
        return ()

    def wake(self, language: Language) -> None:  # noqa: B027 - most need nothing
        """Start everything that a language's requests need, and return when it is ready.

        Raises:
            MachineFault: if it was lost.
        """

    def close(self) -> None:  # noqa: B027 - as above
        """Release processes, connections and memory; threads that wait in a call get its fault at once."""

    def _undefined(self, capability: str, method: str) -> MachineFault:
        where, cure = f"generator {type(self).__name__}", f"define {method}, or leave {capability} out of Capabilities"
        return MachineFault(f"it declares {capability} and has no {method}", where=where, cure=cure)

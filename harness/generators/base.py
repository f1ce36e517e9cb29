"""What a generator is: requests in, responses out. Frozen data and protocols, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bench.types import Kind, Language
from strategies.api import Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to decode; greedy by default, as both papers do."""

    max_tokens: int = 128
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One answer wanted."""

    prompt: Prompt
    language: Language
    kind: Kind = Kind.LINE
    sampling: Sampling = field(default_factory=Sampling)
    index: int = 0
    """Which of n samples this is."""


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


class Generator(Protocol):
    """A model behind a spec. A call that fails raises `MachineFault`; it never returns a made-up text."""

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
        """The most requests that are worth sending at once."""
        ...

    def generate(self, requests: Sequence[Request]) -> Sequence[Response]:
        """Answer every request, in order."""
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

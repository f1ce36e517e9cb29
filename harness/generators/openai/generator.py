"""The generator and, where asked for, the coder behind a spec of `openai`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from bench.errors import MachineFault
from bench.types import Language
from harness.generators.base import Request, Response
from harness.generators.openai import pricing, wire
from harness.generators.openai.client import Client
from harness.generators.openai.settings import Settings
from harness.generators.openai.spread import spread
from strategies.api import Prompt

PROTOCOL = "1"
"""Counts up when the same request would be asked in other words."""


class OpenAI:
    """A model behind an OpenAI-compatible server. Its `generate` may be called by many threads at once."""

    concurrent = True

    def __init__(self, settings: Settings, *, revision: str = "") -> None:
        """Prepare; the server is not spoken to before the first request.

        Args:
            settings: the model, its server, and how to ask.
            revision: what the user knows of the served weights, one word.
        """
        self._settings = settings
        self._client = Client(settings)
        self._lock = threading.Lock()
        self._served: dict[wire.Served, None] = {}
        self.version = f"{PROTOCOL}-{revision}" if revision else PROTOCOL
        self.instructs = settings.chat
        self.batch_size = settings.concurrency

    @property
    def served(self) -> tuple[str, ...]:
        """Who answered so far, where the server says more than the spec: model, fingerprint of its configuration."""
        with self._lock:
            return tuple(sorted(map(str, self._served)))

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order; one that failed has its fault in its place.

        Raises:
            InputFault: if the key, the model or the address is wrong.
        """
        return spread(self._answer, requests, self._settings.concurrency)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, request: Request) -> Response | MachineFault:
        def read(reply: Any, seconds: float) -> Response:
            answered = wire.response(reply, request, self._settings, seconds)
            who = wire.served(reply, self._settings)
            if str(who) != self._settings.model:
                with self._lock:
                    self._served[who] = None
            return answered

        try:
            return self._client.post(wire.path(self._settings), wire.body(request, self._settings), read)
        except MachineFault as fault:
            return fault


class PricingOpenAI(OpenAI):
    """One whose server also says what a given text costs (``echo`` with ``logprobs``)."""

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `pricing`.

        Raises:
            InputFault: if the server gives no such thing.
            MachineFault: if it failed.
        """
        pairs = list(zip((prompt.text for prompt in prompts), texts, strict=True))
        return spread(self._price, pairs, self._settings.concurrency)

    def _price(self, pair: tuple[str, str]) -> float:
        prompt, text = pricing.ends(*pair)

        def read(reply: Any, _: float) -> float:
            return pricing.bits(reply, text, self._settings)

        return self._client.post("/completions", pricing.body(prompt, text, self._settings), read)

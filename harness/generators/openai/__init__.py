"""`openai`: a model behind any server that speaks OpenAI's protocol: vLLM, llama.cpp, SGLang, OpenAI itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from ctxbench.bench import code_tokens
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response
from ctxbench.harness.generators.openai import counting, wire
from ctxbench.harness.generators.openai import settings as options
from ctxbench.harness.generators.openai.client import Client
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.harness.generators.registry import generator

PROTOCOL = "3"
"""Incremented when the same request is sent in other words, or its answer read in another way."""
_MOST_SERVED = 20
"""The most names of answering models that are kept."""
# A model, and where it is served; a model's own name may hold an @.
_SHORT = Shorthand("MODEL@URL", r"(?P<model>[^@]+|[^@]+@(?!https?://).+?)(?:@(?P<url>https?://.+))?")
_MACHINE = ("concurrency", "timeout", "retries", "backoff", "key_env", "insecure")


@generator("openai", machine=_MACHINE, shorthand=_SHORT)
def openai(  # noqa: PLR0913 - what a user may decide about a server
    *,
    model: str,
    url: str = options.OFFICIAL,
    endpoint: str = options.AUTO,
    revision: str = "",
    window: int = 0,
    tokenizer: str = "",
    fim: str = options.AUTO,
    tools: bool = False,
    extra: str = "",
    thinking: int = 0,
    whole: bool = True,
    headers: str = "",
    concurrency: int = 16,
    timeout: float = 300.0,
    retries: int = 8,
    backoff: float = 0.5,
    key_env: str = "",
    insecure: bool = False,
) -> OpenAI:
    """Ask a model behind an OpenAI-compatible server; short: openai:MODEL@URL.

    `OpenAISettings` says what most parameters are, and ``docs/generators.md`` all of them. `tokenizer` is a folder with
    the model's ``tokenizer.json``, by which prompts are cut to `window`; `revision` is part of the key of every answer.
    With `tools` the server is sent the tools of a strategy's chats as such.
    """
    address = options.base_url(url)
    settings = OpenAISettings(
        model=options.name_of(model, address),
        url=address,
        chat=options.is_chat(endpoint, model),
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        backoff=backoff,
        window=window,
        fim=fim,
        key_env=options.key_variable(key_env),
        extra=options.extra_fields(extra),
        thinking=thinking,
        whole=whole,
        headers=options.header_fields(headers),
        tools=tools,
    )
    if not insecure:
        options.see_private(settings)
    counter = counting.Counter(tokenizer, settings) if tokenizer else None
    return OpenAI(settings, revision=revision and options.word("revision", revision), counter=counter)


class OpenAI(Generator):
    """A model behind an OpenAI-compatible server. Its `generate` may be called by many threads at once."""

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        revision: str = "",
        counter: counting.Counter | None = None,
    ) -> None:
        """Prepare; the server is not contacted before the first request.

        Args:
            settings: the model, its server, and how to ask.
            revision: what the user knows of the served weights, one word.
            counter: the model's tokenizer; None if it is not at hand, and prompts are sent as they are.
        """
        self._settings = settings
        self._client = Client(settings)
        self._lock = threading.Lock()
        self._served: dict[wire.Served, None] = {}
        self._others = False
        self._counter = counter
        parts = (PROTOCOL, revision, f"tokenizer.{counter.digest}" if counter is not None else "")
        self.version = "-".join(filter(None, parts))
        # Without the model's tokenizer prompts are not cut.
        self.window = settings.window if counter is not None else 0
        self.capabilities = Capabilities(
            batch_size=settings.concurrency,
            concurrent=True,
            instructs=settings.chat,
            fills=True,
            counts=counter is not None,
            thinking=settings.thinking,
            tools=settings.tools,
            service=True,
        )

    def count(self, request: Request) -> int:
        """Return how many tokens a request's prompt has for the model; without its tokenizer, of ctxbench's own.

        What the model may think counts as well, because it needs room in the same window.
        """
        counted = code_tokens.count(request.prompt.text) if self._counter is None else self._counter.count(request)
        return counted + self._settings.thinking

    def infilling(self) -> fim.Template:
        """Return the template for the text after the cursor; servers' own ``suffix`` is not used.

        Raises:
            InputFault: if it is asked as a chat model, or its name says no family and the spec none either.
        """
        settings = self._settings
        return fim.of_name(settings.model, family_name=settings.fim, chat=settings.chat, where=settings.where)

    @property
    def served(self) -> tuple[str, ...]:
        """The models that answered so far, where the server names more than the spec: model, fingerprint."""
        with self._lock:
            return (*sorted(map(str, self._served)), *(["others, too many to name"] if self._others else []))

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order; one that failed has its fault in its place.

        Raises:
            InputFault: if the key, the model or the address is wrong.
        """
        if len(requests) == 1:
            return [self._answer(requests[0])]
        threads = ThreadPoolExecutor(self._settings.concurrency)
        try:
            return list(threads.map(self._answer, requests))
        finally:
            # Not waited for: an interrupt goes on to `close`, which ends them.
            threads.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, request: Request) -> Response | MachineFault:
        room = self.window - self.count(request) if self.window else 0
        if 0 < room < request.sampling.max_tokens:
            # A server whose own window is larger would write on, and an answer that ends outside the window is none.
            request = replace(request, sampling=replace(request.sampling, max_tokens=room))
        line = wire.ends_with_line(request, self._settings)
        try:
            response = self._ask(request, line=line)
            if line and response.finish == "stop" and not response.text.strip():
                # A blank line came first, or nothing at all: the reply is the same.
                response = _both(response, self._ask(request, line=False))
        except MachineFault as fault:
            return fault
        return response

    def _ask(self, request: Request, *, line: bool) -> Response:
        least = self._least(wire.sent(request, self._settings))

        def read(reply: Any, seconds: float) -> Response:
            answered = wire.response(reply, request, self._settings, seconds, least=least)
            text = self._client.scrub(answered.text)
            self._note(replace(wire.served(reply, self._settings), repeats=text != answered.text))
            return replace(answered, text=text)

        return self._client.post(wire.path(self._settings), wire.body(request, self._settings, line=line), read)

    def _note(self, who: wire.Served) -> None:
        """Keep the names of models that answered, if they say more than the spec; only the first if they change."""
        scrub = self._client.scrub
        who = replace(who, model=scrub(who.model), fingerprint=scrub(who.fingerprint), provider=scrub(who.provider))
        if str(who) == self._settings.model:
            return
        with self._lock:
            if who in self._served or len(self._served) < _MOST_SERVED:
                self._served[who] = None
            else:
                self._others = True

    def _least(self, text: str) -> int:
        """Return the least number of tokens of a text that the server must have read; 0 if it is not trusted."""
        if not self._settings.whole:
            return 0
        return counting.least(text) if self._counter is None else self._counter.least(text)


def _both(first: Response, second: Response) -> Response:
    """Return the second of two answers with the tokens and seconds of both."""
    return replace(
        second,
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_out=first.tokens_out + second.tokens_out,
        seconds=first.seconds + second.seconds,
        cached=first.cached + second.cached,
    )

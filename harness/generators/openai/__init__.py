"""`openai`: a model behind any server with OpenAI's protocol, such as vLLM, llama.cpp, SGLang or OpenAI itself."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from ctxbench.bench import code_tokens
from ctxbench.bench.elementary import running_sum
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast, AtMost
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, generator
from ctxbench.harness.generators.openai import likelihood, wire
from ctxbench.harness.generators.openai import settings as options
from ctxbench.harness.generators.openai.client import LARGEST, Client
from ctxbench.harness.generators.openai.settings import OpenAISettings
from ctxbench.strategies.api import Prompt

PROTOCOL = "3"
"""Version of the protocol, incremented if requests are sent differently or answers are read differently."""
_MOST_SERVED = 20
_A_CHARACTER = 512
"""Maximum bytes, per character sent, of a reply with log-probabilities. A character may be three tokens."""
# A model and its server's address. The model's name may contain an @.
_SHORT = Shorthand("MODEL@URL", r"(?P<model>[^@]+|[^@]+@(?!https?://).+?)(?:@(?P<url>https?://.+))?")
_Count = Annotated[int, AtLeast(0)]
_DAY = 86_400
_MACHINE = ("concurrency", "timeout", "retries", "backoff", "key_env", "insecure")


@generator("openai", machine=_MACHINE, shorthand=_SHORT)
def openai(  # noqa: PLR0913 - what a user may decide about a server
    *,
    model: str,
    url: str = options.OFFICIAL,
    endpoint: Literal["auto", "chat", "completions"] = "auto",
    revision: str = "",
    bits: bool = False,
    window: _Count = 0,
    tokenizer: str = "",
    fim: str = options.AUTO,
    tools: bool = False,
    extra: str = "",
    thinking: _Count = 0,
    whole: bool = True,
    headers: str = "",
    concurrency: Annotated[int, AtLeast(1)] = 16,
    timeout: Annotated[float, AtLeast(0.01), AtMost(_DAY)] = 300.0,
    retries: _Count = 8,
    backoff: Annotated[float, AtLeast(0), AtMost(_DAY)] = 0.5,
    key_env: str = "",
    insecure: bool = False,
) -> OpenAI:
    """Ask a model behind an OpenAI-compatible server; short: openai:MODEL@URL.

    See ``docs/generator.md`` for all parameters. With `bits`, the generator measures context gain, which needs a server
    that returns ``echo`` with ``logprobs``. `tokenizer` is the model's ``tokenizer.json`` or its folder. It is used to
    truncate prompts to `window`. `revision` is part of every cache key. With `tools`, requests contain the tools of a
    strategy's chats as fields, not as text.
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
    counter = likelihood.Counter(tokenizer, settings) if tokenizer else None
    revision = revision and options.word("revision", revision)
    return OpenAI(settings, log_likelihoods=bits, revision=revision, counter=counter)


class OpenAI(Generator):
    """A model behind an OpenAI-compatible server. `generate` is thread-safe."""

    def __init__(
        self,
        settings: OpenAISettings,
        *,
        revision: str = "",
        log_likelihoods: bool = False,
        counter: likelihood.Counter | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Store the settings. The first request contacts the server.

        `revision` is the user's name for the served weights. With `log_likelihoods`, the server measures
        texts. Without a `counter`, prompts stay whole. Secrets are read from `environment`; None means the process's.
        """
        self._settings = settings
        self._client = Client(settings, environment)
        self._lock = threading.Lock()
        self._served: dict[wire.Served, None] = {}
        self._others = False
        self._counter = counter
        parts = (PROTOCOL, revision, f"tokenizer.{counter.digest}" if counter is not None else "")
        self.version = "-".join(filter(None, parts))
        # Prompts can only be truncated with the model's tokenizer.
        self.window = settings.window if counter is not None else 0
        self.capabilities = Capabilities(
            batch_size=settings.concurrency,
            concurrent=True,
            instructs=settings.chat,
            log_likelihoods=log_likelihoods,
            fills=True,
            counts=counter is not None,
            thinking=settings.thinking,
            tools=settings.tools,
            service=True,
        )

    def count(self, request: Request) -> int:
        """Return the number of the model's tokens in a request's prompt, or of ctxbench's tokens without a tokenizer.

        The number includes reserved thinking tokens, because they use the same window.
        """
        counted = code_tokens.count(request.prompt.text) if self._counter is None else self._counter.count(request)
        return counted + self._settings.thinking

    def infilling(self) -> fim.Template:
        """Return the fill-in-the-middle template. The servers' own ``suffix`` parameter is not used.

        Raises:
            InputFault: if the model is used as a chat model, or neither its name nor the spec names a family.
        """
        settings = self._settings
        return fim.of_name(settings.model, family_name=settings.fim, chat=settings.chat, where=settings.where)

    @property
    def served(self) -> tuple[str, ...]:
        """Names of the models that answered, with fingerprints; empty if the server's names add nothing to the spec."""
        with self._lock:
            return (*sorted(map(str, self._served)), *(["others, too many to name"] if self._others else []))

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order. A failed request gets a fault instead of a response.

        Raises:
            InputFault: if the key, the model, the address or a setting is wrong.
        """
        return spread(self._answer, requests, self._settings.concurrency)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a newline after its prompt; see `likelihood`.

        With the model's tokenizer, the prompt loses its beginning if prompt and text exceed the window.

        Raises:
            InputFault: if the server returns no log-probabilities, or the key, the model or the address is wrong.
            MachineFault: if measuring a text failed.
        """
        pairs = list(zip((prompt.text for prompt in prompts), texts, strict=True))
        return spread(self._bits, pairs, self._settings.concurrency)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, request: Request) -> Response | MachineFault:
        # Measure before asking: vLLM must read a prompt to measure it, and can then answer from its cache.
        bits = self._reference_bits(request)
        room = self.window - self.count(request) if self.window else 0
        if 0 < room < request.sampling.max_tokens:
            # A server with a larger window would continue beyond the user's window.
            request = replace(request, sampling=replace(request.sampling, max_tokens=room))
        line = wire.ends_with_line(request, self._settings)
        try:
            response = self._ask(request, line=line)
            if line and response.finish == "stop" and not response.text.strip():
                # The reply does not show whether the model wrote a blank line or nothing.
                response = _both(response, self._ask(request, line=False))
        except MachineFault as fault:
            return fault
        return replace(response, bits=bits)

    def _reference_bits(self, request: Request) -> float | None:
        if self.capabilities.log_likelihoods and request.reference is not None:
            with contextlib.suppress(MachineFault):
                return self._bits((fim.strategy_prompt(request.prompt).text, request.reference))
        return None

    def _ask(self, request: Request, *, line: bool) -> Response:
        least = self._least(wire.sent(request, self._settings))

        def read(reply: Any, seconds: float) -> Response:
            answered = wire.response(reply, request, self._settings, seconds, least=least)
            text = self._client.scrub(answered.text)
            self._note(replace(wire.served(reply, self._settings), repeats=text != answered.text))
            return replace(answered, text=text)

        return self._client.post(wire.path(self._settings), wire.body(request, self._settings, line=line), read)

    def _note(self, who: wire.Served) -> None:
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
        if not self._settings.whole:
            return 0
        return likelihood.least_tokens(text) if self._counter is None else self._counter.least(text)

    def _bits(self, pair: tuple[str, str]) -> float:
        ends = likelihood.ends(*pair)
        windows = [ends] if self._counter is None else self._counter.windows(*ends)
        return running_sum(self._window_bits(*window) for window in windows)

    def _window_bits(self, prompt: str, text: str) -> float:
        least = self._least(prompt + text)

        def read(reply: Any, _: float) -> float | None:
            return likelihood.bits(reply, text, self._settings, least=least)

        # A reply repeats every token that was sent, with its log-probability.
        largest = LARGEST + _A_CHARACTER * (len(prompt) + len(text))
        for ahead in ("", likelihood.LINE_AHEAD):
            body = likelihood.body(ahead + prompt, text, self._settings)
            cost = self._client.post("/completions", body, read, largest=largest)
            if cost is not None:
                return cost
        raise MachineFault(
            "the first token, which has no probability, contains part of the text to measure",
            where=self._settings.where,
            cure="leave bits=true out, or use a server that adds a start token",
        )


def _both(first: Response, second: Response) -> Response:
    return replace(
        second,
        tokens_in=first.tokens_in + second.tokens_in,
        tokens_out=first.tokens_out + second.tokens_out,
        seconds=first.seconds + second.seconds,
        cached=first.cached + second.cached,
    )


T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], items: Sequence[T], width: int) -> list[R]:
    """Run `work` on every item in at most `width` threads; return the results in order.

    The threads are daemons, because at exit Python would wait for the threads of a standard pool.

    Raises:
        BaseException: the first exception of `work`. The remaining items are skipped.
    """
    if len(items) < 2 or width < 2:
        return [work(item) for item in items]
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    waiting = iter(enumerate(items))
    lock = threading.Lock()

    def worker() -> None:
        while not errors:
            with lock:
                number, item = next(waiting, (-1, items[0]))
            if number < 0:
                return
            try:
                results[number] = work(item)
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                errors.append(error)

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(min(width, len(items)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]

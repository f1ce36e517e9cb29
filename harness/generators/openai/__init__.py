"""`openai`: a model behind any server that speaks OpenAI's protocol: vLLM, llama.cpp, SGLang, OpenAI itself."""

from __future__ import annotations

from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.openai import settings as options
from ctxbench.harness.generators.openai.counting import Counter
from ctxbench.harness.generators.openai.generator import OpenAI
from ctxbench.harness.generators.registry import generator

# A model, and where it is served; a model's own name may hold an @.
_SHORT = Shorthand("MODEL@URL", r"(?P<model>[^@]+|[^@]+@(?!https?://).+?)(?:@(?P<url>https?://.+))?")
_MACHINE = ("concurrency", "timeout", "retries", "backoff", "key_env", "key_header", "insecure")


@generator("openai", machine=_MACHINE, shorthand=_SHORT)
def openai(  # noqa: PLR0913 - what a user may decide about a server
    *,
    model: str,
    url: str = options.OFFICIAL,
    endpoint: str = options.AUTO,
    revision: str = "",
    bits: bool = False,
    lines: str = options.INSTRUCTED,
    window: int = 0,
    tokenizer: str = "",
    fim: str = options.AUTO,
    extra: str = "",
    thinking: int = 0,
    whole: bool = True,
    headers: str = "",
    query: str = "",
    concurrency: int = 16,
    timeout: float = 300.0,
    retries: int = 8,
    backoff: float = 0.5,
    key_env: str = "",
    key_header: str = options.BEARER,
    insecure: bool = False,
) -> OpenAI:
    """Ask a model behind an OpenAI-compatible server; short: openai:MODEL@URL.

    `OpenAISettings` says what most parameters are, and ``docs/generators.md`` all of them. With `bits` it measures
    context gain itself, which takes a server that gives ``echo`` with ``logprobs``; `tokenizer` is a folder with the
    model's ``tokenizer.json``, by which prompts are cut to `window`; `revision` is part of the key of every answer.
    """
    settings = options.OpenAISettings(
        model=options.name_of(model, url),
        url=options.base_url(url),
        chat=options.is_chat(endpoint, model),
        instructed=options.is_instructed(lines),
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
        key_header=options.key_header(key_header),
        headers=options.header_fields(headers),
        query=options.query_text(query),
    )
    if not insecure:
        options.see_private(settings)
    counter = Counter(tokenizer, settings) if tokenizer else None
    return OpenAI(settings, prices=bits, revision=revision and options.word("revision", revision), counter=counter)

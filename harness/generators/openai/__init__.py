"""`openai`: a model behind any server that speaks OpenAI's protocol: vLLM, llama.cpp, SGLang, OpenAI itself."""

from __future__ import annotations

from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.fim import family
from ctxbench.harness.generators.openai import settings as options
from ctxbench.harness.generators.openai.counting import Counter
from ctxbench.harness.generators.openai.generator import OpenAI, PricingOpenAI
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

    Args:
        model: its name, as the server lists it.
        url: the server's address, without user, password and query; ``/v1`` is added where there is no path.
        endpoint: ``chat`` (follows instructions), ``completions`` (goes on with text), or ``auto``: chat if the
            model's name says so (``…-Instruct``, ``…-chat``, ``gpt-…``).
        revision: what you know of the served weights, one word; part of the key of every kept answer.
        bits: whether it also measures context gain; needs a server that gives ``echo`` with ``logprobs``.
        lines: ``asked`` to tell a chat model to go on with the code of a line's prompt, ``raw`` to send the code alone.
        window: tokens of prompt and answer that the model takes; 0 if the server refuses what is too long.
        tokenizer: folder with the model's ``tokenizer.json``: prompts are cut to `window` by it.
        fim: family of the model's marks for ``run --fim``, or ``auto``: by its name.
        extra: JSON object of more fields of every request; null takes a field out, ``$NAME`` stands for a secret.
        thinking: tokens that the model may think, asked for beside those of the answer.
        whole: whether an answer counts only if the server's count of tokens says that the whole prompt was read.
        headers: JSON object of more headers of every request; ``$NAME`` stands for the secret in that variable.
        query: what stands behind the address after a question mark, ``api-version=2024-10-21``, no key in it.
        concurrency: requests at once.
        timeout: seconds that one try may take.
        retries: tries after the first.
        backoff: seconds before the second try; doubles with every further one.
        key_env: the environment variable that holds the key; ``OPENAI_API_KEY`` goes to OpenAI's own service alone.
        key_header: the header that it is sent in; ``Authorization`` has the word Bearer before it.
        insecure: whether secrets may go over plain http to another machine.
    """
    for name, number, least in (
        ("window", window, 0),
        ("thinking", thinking, 0),
        ("concurrency", concurrency, 1),
        ("timeout", timeout, 0.01),
        ("retries", retries, 0),
        ("backoff", backoff, 0),
    ):
        options.at_least(name, number, least)
    if lines not in (options.INSTRUCTED, options.RAW):
        raise InputFault(f"lines={lines} is unknown", where="openai", cure="give asked or raw")
    if fim != options.AUTO:
        family(fim, where="openai")
    settings = options.OpenAISettings(
        model=options.name_of(model, url),
        url=options.base_url(url),
        chat=options.is_chat(endpoint, model),
        instructed=lines == options.INSTRUCTED,
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
    if tokenizer and not window:
        raise InputFault("tokenizer= counts for a window that is not given", where="openai", cure="give window=TOKENS")
    generator_class = PricingOpenAI if bits else OpenAI
    return generator_class(
        settings,
        revision=options.word("revision", revision) if revision else "",
        counter=Counter(tokenizer, settings) if tokenizer else None,
    )

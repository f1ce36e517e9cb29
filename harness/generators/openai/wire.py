"""Requests as JSON bodies. Pure."""

from __future__ import annotations

from typing import Any

from ctxbench.bench.files import sha256
from ctxbench.harness.generators.base import Request
from ctxbench.harness.generators.openai import lines
from ctxbench.harness.generators.openai.settings import OpenAISettings

Body = dict[str, Any]
SHORT, LONG = "max_tokens", "max_completion_tokens"
"""Names of the limit of tokens."""


def path(settings: OpenAISettings) -> str:
    """Return the path of requests below the server's address."""
    return "/chat/completions" if settings.chat else "/completions"


def ends_with_line(request: Request, settings: OpenAISettings) -> bool:
    """Return whether the server is asked to end the answer at a line's end.

    Where one line counts, the rest of an answer is paid for in vain. Not where a model is drawn from: an answer that
    begins with a blank line is asked for again, and drawing again is another distribution. Not of a chat model, whose
    code stands between marks.
    """
    return request.one_line and not settings.chat and request.sampling.temperature == 0 and "stop" not in settings.extra


def body(request: Request, settings: OpenAISettings, *, line: bool = False) -> Body:
    """Return the body of a request for one answer.

    Greedy requests have temperature 0 and neither seed nor top_p, which some servers refuse. Of n samples each is a
    request of its own whose seed follows from the run's seed and its index, because many servers ignore ``n``.

    Args:
        request: the request.
        settings: of the server.
        line: whether the answer is to end at its first line's end, see `ends_with_line`.
    """
    how = request.sampling
    fields: Body = {"model": settings.model}
    text = message(request, settings)
    fields |= {"messages": [{"role": "user", "content": text}]} if settings.chat else {"prompt": text}
    # OpenAI's newer models know only the long name, all other servers know the short one. Thoughts count as well.
    fields[LONG if settings.chat and settings.official else SHORT] = how.max_tokens + settings.thinking
    fields["temperature"] = how.temperature
    if how.temperature > 0:
        fields["seed"] = seed(how.seed, request.index)
        if how.top_p < 1:
            fields["top_p"] = how.top_p
    if stops := [*how.stop, *([lines.END] if line else [])]:
        fields["stop"] = stops
    return with_extra(fields, settings)


def message(request: Request, settings: OpenAISettings) -> str:
    """Return the text that is sent: a chat model's message, else the prompt."""
    return lines.message(request, settings.instructed) if settings.chat else request.prompt.text


def renamed(fields: Body) -> Body:
    """Return a body whose limit of tokens has its long name; the same body if it has no limit by the short name."""
    return {LONG if key == SHORT else key: value for key, value in fields.items()}


def with_extra(fields: Body, settings: OpenAISettings) -> Body:
    """Return a body with the spec's own fields; one that is null takes a field out."""
    return {key: value for key, value in {**fields, **settings.extra}.items() if value is not None}


def seed(base: int, index: int) -> int:
    """Return the seed of the sample with that index: 31 bits, the same everywhere, no two alike for long."""
    return int(sha256(f"{base} {index}")[:8], 16) & 0x7FFFFFFF

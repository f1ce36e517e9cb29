"""Requests as JSON bodies, replies as responses. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench import code_tokens
from bench.errors import MachineFault
from bench.files import sha256
from harness.generators import fim
from harness.generators.base import Request, Response, TooLong
from harness.generators.openai import lines
from harness.generators.openai.settings import Settings

Body = dict[str, Any]
_STOPPED = ("stop", "eos", "eos_token", "stop_sequence", "end_turn")
_CUT = ("length", "max_tokens", "model_length")
_BROKEN = (None, "abort", "error")
"""The server gave up half way: the same request may well be answered the next time."""
SHORTER = "give the strategy a smaller window or limit, or serve the model with a longer context"


class Garbled(Exception):
    """Raised for a reply that is no answer though its status says so: it was cut, or made by something else."""


@dataclass(frozen=True, slots=True)
class Served:
    """Who a server says that answered."""

    model: str
    fingerprint: str

    def __str__(self) -> str:
        """Return the model, and the fingerprint of its configuration if one was given."""
        return f"{self.model} ({self.fingerprint})" if self.fingerprint else self.model


def path(settings: Settings) -> str:
    """Return where answers are asked for, below the server's address."""
    return "/chat/completions" if settings.chat else "/completions"


def ends_with_line(request: Request, settings: Settings) -> bool:
    """Say whether the server is told to end the answer at a line's end.

    Where one line counts, the rest of an answer is paid for in vain. Not where a model is drawn from: an answer that
    begins with a blank line is asked for again, and drawing again is another distribution. Not of a chat model, whose
    code stands between marks.
    """
    return request.one_line and not settings.chat and request.sampling.temperature == 0 and "stop" not in settings.extra


def body(request: Request, settings: Settings, *, line: bool = False) -> Body:
    """Return what asks for one answer.

    Greedy requests have temperature 0 and neither seed nor top_p, which some servers refuse. Of n samples each is a
    request of its own whose seed follows from the run's seed and its index, because many servers ignore ``n``.

    Args:
        request: what is wanted.
        settings: of whom.
        line: whether the answer is to end at its first line's end, see `ends_with_line`.
    """
    how = request.sampling
    made: Body = {"model": settings.model}
    if settings.chat:
        made["messages"] = [{"role": "user", "content": lines.message(request, settings.asked)}]
    else:
        made["prompt"] = request.prompt.text
    # OpenAI's newer models know only the long name, all other servers know the short one.
    made["max_completion_tokens" if settings.chat and settings.official else "max_tokens"] = how.max_tokens
    made["temperature"] = how.temperature
    if how.temperature > 0:
        made["seed"] = seed(how.seed, request.index)
        if how.top_p < 1:
            made["top_p"] = how.top_p
    if stops := [*how.stop, *([lines.END] if line else [])]:
        made["stop"] = stops
    return with_extra(made, settings)


def with_extra(made: Body, settings: Settings) -> Body:
    """Return a body with the spec's own fields; one that is null takes a field out."""
    return {key: value for key, value in {**made, **settings.extra}.items() if value is not None}


def seed(base: int, index: int) -> int:
    """Return the seed of the sample with that index: 31 bits, the same everywhere, no two alike for long."""
    return int(sha256(f"{base} {index}")[:8], 16) & 0x7FFFFFFF


def response(reply: Any, request: Request, settings: Settings, seconds: float) -> Response:
    """Return the answer that a reply holds.

    Raises:
        Garbled: if it holds none.
        MachineFault: if the service kept the answer back, or it is longer than the window allows.
    """
    finish = dig(reply, "choices", 0, "finish_reason")
    if finish in _BROKEN:
        raise Garbled(f"the answer ends without a reason (finish_reason {finish!r})")
    if finish not in (*_STOPPED, *_CUT):
        # A text that a filter kept back is no answer of the model, and is not scored as one.
        raise MachineFault(
            f"the service ended the answer for a reason of its own (finish_reason {finish!r})",
            where=settings.where,
            cure="use a service that lets the model answer; the sample stays missing",
        )
    text = fim.cut(_text(reply, settings)) if request.sampling.fim else _text(reply, settings)
    tokens_in = _count(reply, "prompt_tokens")
    tokens_out = _count(reply, "completion_tokens")
    code = lines.answer(request, text) if settings.chat and settings.asked else text
    end = lines.end(text) if request.one_line and not settings.chat else None
    answered = Response(
        text=code[:end],
        finish="length" if finish in _CUT and end is None else "stop",
        # A server that counts nothing: our own count is the best there is.
        tokens_in=code_tokens.count(request.prompt.text) if tokens_in is None else tokens_in,
        tokens_out=code_tokens.count(text) if tokens_out is None else tokens_out,
        seconds=seconds,
        cached=min(_count(reply, "prompt_tokens_details", "cached_tokens") or 0, tokens_in or 0),
    )
    used = answered.tokens_in + answered.tokens_out
    if settings.window and used > settings.window:
        raise TooLong(
            f"the server took {used} tokens, the window has {settings.window}", where=settings.where, cure=SHORTER
        )
    return answered


def served(reply: Any, settings: Settings) -> Served:
    """Return who answered, as far as the reply says."""
    model, fingerprint = dig(reply, "model"), dig(reply, "system_fingerprint")
    return Served(
        model=model if isinstance(model, str) and model else settings.model,
        fingerprint=fingerprint if isinstance(fingerprint, str) else "",
    )


def dig(value: Any, *keys: str | int) -> Any:
    """Return what stands at a path in JSON data; None where the path ends early."""
    for key in keys:
        if isinstance(key, str) and isinstance(value, dict):
            value = value.get(key)
        elif isinstance(key, int) and isinstance(value, list) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def _text(reply: Any, settings: Settings) -> str:
    """Return the model's words; a model that says nothing, or keeps to its thoughts, says an empty text."""
    choice = dig(reply, "choices", 0)
    if not settings.chat:
        text = dig(choice, "text")
    else:
        message = dig(choice, "message")
        if not isinstance(message, dict):
            raise Garbled("the reply has no message")
        text = message.get("content")
        if text is None:
            text = message.get("refusal") or ""
    if not isinstance(text, str):
        raise Garbled("the reply has no text")
    return text


def _count(reply: Any, *keys: str) -> int | None:
    found = dig(reply, "usage", *keys)
    return found if type(found) is int and found >= 0 else None

"""Read replies that hold no answer: the kind of fault, its cure, and whether to try again. Pure."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.harness.generators.base import TooLong
from ctxbench.harness.generators.openai.settings import OFFICIAL_KEY, OpenAISettings
from ctxbench.harness.generators.openai.wire import LONG, ROOM, SHORT, SHORTER, Body, dig, renamed

_READ = 2000
"""The most characters read of a server's words."""
LONGEST_WAIT = 300.0
"""The most seconds to wait for a server that asks for a pause."""
AGAIN = "see that the server is well, then run the same command again"
_LEAST = 16
"""Tokens; an answer with less room is not worth asking for."""
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|sequence|context|prompt) length"
    r"|longer than the (?:maximum|model)|inputs`? must have less than|max_new_tokens`? must be|too many tokens"
    r"|(?:prompt|input) is too long|input tokens? (?:count )?(?:\(\d+\) )?exceed",
    re.I,
)
_TOO_LONG_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_WINDOW = re.compile(r"(?:context|model|sequence) (?:length|window|size)(?: is| of)?(?: only)?\D{0,3}(\d{1,9})", re.I)
_PROMPT = re.compile(
    r"(\d{1,9}) (?:in (?:the messages|the prompt|your prompt)|of text input|tokens from the input|input tokens)", re.I
)
_FILTER_CODES = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_FILTERED = re.compile(r"content (?:policy|filter|management)|moderation|flagged", re.I)
_NO_CREDIT = ("insufficient_quota",)
_REFUSED = re.compile(
    r"unsupported|not supported|not support|deprecated|unrecogni[sz]ed|not permitted|forbidden"
    r"|unknown (?:field|parameter|argument|name)",
    re.I,
)
"""Words of servers about a field that they do not take."""
_AGAIN = (408, 409, 424, 425, 429)
"""Besides 5xx: out of time, locked, failed behind a gateway (TGI, Azure), too early, too many."""
_ELSEWHERE = (301, 302, 303, 307, 308)
_NO_ROOM = re.compile(r"model output limit was reached", re.I)
_CALL_CODES = ("tool_use_failed",)
"""The model called a tool that there is not, or with arguments that do not fit (Groq)."""
_CODES = (*_TOO_LONG_CODES, *_FILTER_CODES, *_NO_CREDIT, *_CALL_CODES)
_NO_TOOLS = re.compile(r"\btools?\b|tool[_ -](?:choice|call)", re.I)
_OTHER_ENDPOINT = re.compile(r"not a chat model|is a chat model|chat[ _]template|v1/(?:chat/)?completions", re.I)

_RESET, _REMAINING = "ratelimit-reset", "ratelimit-remaining"
_SPANS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9
"""A larger number is a time in seconds since 1970; one that is a thousand times as large is in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The reason why a try gave no answer."""

    fault: CtxbenchError
    again: bool = False
    """Whether the same request may be answered later."""
    wait: float = 0.0
    """Seconds that the server asks to wait."""
    instead: Body | None = None
    """A request that the server would take where it refuses this one."""
    turned_away: bool = False
    """Whether the key, the model, the address or tools are refused, and not this request."""


def refused(status: int, headers: Mapping[str, str], text: str, body: Body, settings: OpenAISettings) -> Problem:
    """Return the problem behind a status other than 200.

    Args:
        status: the HTTP status.
        headers: of the reply, names in lower case.
        text: its body, without secrets.
        body: of the request.
        settings: of the server.
    """
    message, code = _message_and_code(text)
    where = settings.where

    def machine(what: str, cure: str, **more: Any) -> Problem:
        return Problem(fault=MachineFault(f"{what}: {message}", where=where, cure=cure), **more)

    def user(what: str, cure: str) -> Problem:
        return Problem(fault=InputFault(f"{what}: {message}", where=where, cure=cure), turned_away=True)

    if status == 402 or (status == 429 and code in _NO_CREDIT):
        return machine(
            f"the account has no credit left (status {status})", "top it up, then run the same command again"
        )
    if status in _AGAIN or status >= 500:
        seconds = server_pause(headers)
        cure = f"lower concurrency={settings.concurrency}, or wait" if status == 429 else AGAIN
        soon = seconds <= LONGEST_WAIT
        return machine(f"status {status}", cure, again=soon, wait=seconds if soon else 0.0)
    if status in (400, 403) and (code in _FILTER_CODES or _filtered(status, text, message)):
        cure = "use a service that lets the model answer; the sample stays missing"
        return machine(f"a filter in front of the model refuses the prompt (status {status})", cure)
    if status in (401, 403):
        name = settings.key_variable
        cure = f"put a valid one into {name}" if name else f"name the variable with its key, key_env={OFFICIAL_KEY} say"
        return user(f"the key is not accepted (status {status}{'' if name else ', none was sent'})", cure)
    if status in _ELSEWHERE:
        to = headers.get("location", "elsewhere")
        return user(f"status {status}, the server points to {to}", "give that address as url=")
    if status < 400:
        return machine(f"status {status} is no answer", AGAIN, again=True)
    if (fault := _unfit(status, text, body, settings)) is not None:
        return fault
    if _OTHER_ENDPOINT.search(message):
        other = "completions" if settings.chat else "chat"
        return user(f"the model is not served at this endpoint (status {status})", f"give endpoint={other}")
    if status in (404, 405):
        cure = f"give the name as {settings.url}/models lists it, and check the url"
        return user(f"no such model, or no such address (status {status})", cure)
    return machine(f"the request is refused (status {status})", "mend the spec (endpoint=, extra=), then run again")


def _unfit(status: int, text: str, body: Body, settings: OpenAISettings) -> Problem | None:
    """Return the problem of a request that does not fit the model by length, tools or a field; None for others."""
    message, code = _message_and_code(text)
    where = settings.where
    if status == 413 or code in _TOO_LONG_CODES or _TOO_LONG.search(message):
        fault = TooLong(f"the prompt is too long for the model (status {status}): {message}", where=where, cure=SHORTER)
        # Where a model thinks, less room is no shorter answer, but none.
        return Problem(fault=fault, instead=None if settings.thinking else _shorter(message, body))
    if _NO_ROOM.search(message) and not settings.thinking:
        return Problem(fault=InputFault(f"the model had no room for its answer: {message}", where=where, cure=ROOM))
    if "tools" in body and (code in _CALL_CODES or _NO_TOOLS.search(message)):
        return _tools_refused(status, message, code, where)
    if field := _refused_field(text, message, body):
        cure = f"""give extra='{{"{field}": null}}': the server then decides"""
        refused_ = InputFault(f"the model takes no {field}: {message}", where=where, cure=cure)
        # The same limit by its other name asks for the same.
        return Problem(fault=refused_, instead=renamed(body) if field == SHORT else None)
    return None


def _tools_refused(status: int, message: str, code: str, where: str) -> Problem:
    """Return the problem of a server that takes no tools, or not what the model did with them."""
    if code in _CALL_CODES:
        # What the model wrote is held back, and so is not scored; as a text the strategy gets it.
        what = f"the service refuses the model's call of a tool (status {status}): {message}"
        cure = "leave tools=on out: calls are texts then, right or wrong; the sample stays missing"
        return Problem(fault=MachineFault(what, where=where, cure=cure))
    cure = "leave tools=on out: they are sent as text then"
    # A server that has answered others may refuse one for what a model did with its tools, by a code of its own.
    fault = InputFault(f"the server takes no tools: {message}", where=where, cure=cure)
    return Problem(fault=fault, turned_away=True)


def _shorter(message: str, body: Body) -> Body | None:
    """Return the request with a lower limit of tokens, if that may be what the window leaves it.

    The prompt stays whole; the answer may end as ``length`` sooner. The limit is what the server says is left; newer
    vLLM says only that the prompt has "at least" what is too much, and so the limit is halved.
    """
    name = next((name for name in (SHORT, LONG) if name in body), None)
    window, prompt = _WINDOW.search(message), _PROMPT.search(message)
    if name is None or window is None or prompt is None:
        return None
    exact = "at least" not in message
    room = int(window.group(1)) - int(prompt.group(1)) if exact else body[name] // 2
    return {**body, name: room} if (1 if exact else _LEAST) <= room < body[name] else None


def _filtered(status: int, text: str, message: str) -> bool:
    """Return whether this prompt was refused: by a moderator, or by a proxy that takes code for an attack."""
    return bool(_FILTERED.search(message)) or (status == 403 and text.lstrip().startswith("<"))


def _refused_field(text: str, message: str, body: Body) -> str:
    """Return the field of a request that the model does not take, as a server's words name it; empty if none is."""
    data = _json(text)
    fields = [dig(data, "error", "param"), *(dig(data, *at, "detail", 0, "loc", -1) for at in ((), ("message",)))]
    if not _REFUSED.search(f"{message} {dig(data, 'error', 'code')}"):
        return ""
    for field in body:
        named = re.search(rf"['\"`]{re.escape(field)}['\"`]|: {re.escape(field)}\b", message)
        if field not in ("model", "messages", "prompt") and (field in fields or named):
            return field
    return ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _message_and_code(text: str) -> tuple[str, str]:
    """Return a server's words and its code for the fault, whatever shape it gives them; the words in one line."""
    data = _json(text)
    error = dig(data, "error")
    for words in (
        dig(error, "message"),
        error,
        dig(data, "message"),
        dig(data, "detail", 0, "msg"),
        dig(data, "message", "detail", 0, "msg"),
        dig(data, "detail"),
        # A proxy's page is shown without its tags.
        re.sub(r"<[^>]*>", " ", text) if text.lstrip().startswith("<") else text,
    ):
        if isinstance(words, str) and words.strip():
            break
    else:
        words = "no reason given"
    codes = [dig(at, key) for at in (error, dig(error, "innererror"), data) for key in ("code", "type")]
    code = next((candidate for candidate in codes if candidate in _CODES), "")
    return " ".join(words[:_READ].split()), code


def server_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a reply asks to wait; 0 if it does not.

    ``Retry-After`` in seconds or as a date; Azure's ``retry-after-ms``; else the ``x-ratelimit-reset-…`` of what has
    nothing remaining: ``6m0s`` (OpenAI, Groq), seconds (Together), a moment in milliseconds (OpenRouter).

    Args:
        headers: of the reply, names in lower case.
    """
    if (exact := _number(headers.get("retry-after-ms", ""))) is not None:
        return _sound(exact / 1000)
    retry_after = headers.get("retry-after", "").strip()
    if not retry_after:
        return max((_reset(headers[name]) for name in headers if _RESET in name and _spent(headers, name)), default=0.0)
    if (seconds := _number(retry_after)) is not None:
        return _sound(seconds)
    try:
        return _sound(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def _spent(headers: Mapping[str, str], reset: str) -> bool:
    return _number(headers.get(reset.replace(_RESET, _REMAINING), "")) == 0


def _reset(header: str) -> float:
    number = _number(header)
    if number is None:
        spans = _SPANS.findall(header) if _SPANS.sub("", header.strip()) == "" else []
        return _sound(sum(float(amount) * _SECONDS[unit] for amount, unit in spans))
    if number > _EPOCH:
        return _sound((number / 1000 if number > 1000 * _EPOCH else number) - time.time())
    return _sound(number)


def _number(header: str) -> float | None:
    try:
        return float(header)
    except ValueError:
        return None


def _sound(seconds: float) -> float:
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0

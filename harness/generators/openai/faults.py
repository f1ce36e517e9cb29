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
from ctxbench.harness.generators.openai.wire import ROOM, SHORT, SHORTER, Body, dig, renamed

_READ = 2000
"""The most characters read of a server's words."""
LONGEST_WAIT = 300.0
"""The most seconds to wait for a server that asks for a pause."""
AGAIN = "see that the server is well, then run the same command again"
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size|limit)|maximum (?:model|sequence|context|prompt) length"
    r"|longer than the (?:maximum|model)|inputs`? must have less than|max_new_tokens`? must be|too many tokens"
    r"|(?:prompt|input) is too long|input tokens? (?:count )?(?:\(\d+\) )?exceed",
    re.I,
)
_TOO_LONG_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
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
_CODES = (*_TOO_LONG_CODES, *_FILTER_CODES, *_NO_CREDIT)
_OTHER_ENDPOINT = re.compile(r"not a chat model|is a chat model|chat[ _]template|v1/(?:chat/)?completions", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The reason why a try gave no answer."""

    fault: CtxbenchError
    again: bool = False
    """Whether the same request may be answered later."""
    wait: float = 0.0
    """Seconds that the server asks to wait."""
    instead: Body | None = None
    """The same request by another name of its limit, where the server refuses this one."""
    turned_away: bool = False
    """Whether the key, the model or the address is refused, and not this request."""


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
    return machine(
        f"the request is refused (status {status})", "mend the spec (endpoint=, extra=, tools=), then run again"
    )


def _unfit(status: int, text: str, body: Body, settings: OpenAISettings) -> Problem | None:
    """Return the problem of a request that does not fit the model by length or a field; None for others."""
    message, code = _message_and_code(text)
    where = settings.where
    if status == 413 or code in _TOO_LONG_CODES or _TOO_LONG.search(message):
        fault = TooLong(f"the prompt is too long for the model (status {status}): {message}", where=where, cure=SHORTER)
        return Problem(fault=fault)
    if _NO_ROOM.search(message) and not settings.thinking:
        return Problem(fault=InputFault(f"the model had no room for its answer: {message}", where=where, cure=ROOM))
    if field := _refused_field(text, message, body):
        cure = f"""give extra='{{"{field}": null}}': the server then decides"""
        cure = "leave tools=on out: they are sent as text then" if field == "tools" else cure
        refused_ = InputFault(f"the model takes no {field}: {message}", where=where, cure=cure)
        # The same limit by its other name asks for the same.
        return Problem(fault=refused_, instead=renamed(body) if field == SHORT else None)
    return None


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
    """Return the seconds that a reply asks to wait by ``Retry-After``, in seconds or as a date; 0 if it does not.

    Args:
        headers: of the reply, names in lower case.
    """
    words = headers.get("retry-after", "").strip()
    try:
        seconds = float(words)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(words).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0

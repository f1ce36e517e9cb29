"""What a reply that is no answer means: whose fault it is, its cure, and whether to try again. Pure."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.errors import CtxbenchError, InputFault, MachineFault
from harness.generators.base import TooLong
from harness.generators.openai.settings import Settings
from harness.generators.openai.wire import SHORTER, Body, dig

_SHOWN = 240
"""Characters of a server's words that a fault repeats."""
LONGEST_WAIT = 300.0
"""Seconds; a server that asks to wait longer is not waited for."""
AGAIN = "see that the server is well, then run the same command again"
_LIMITS = ("max_tokens", "max_completion_tokens")
_LEAST = 16
"""Tokens; an answer with less room is not worth asking for."""
_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:model|sequence|context) length|longer than the (?:maximum|model)"
    r"|inputs`? must have less than|max_new_tokens`? must be|too many tokens|(?:prompt|input) is too long"
    r"|input tokens? (?:count )?exceed",
    re.I,
)
_TOO_LONG_CODES = ("context_length_exceeded", "exceed_context_size_error", "string_above_max_length")
_WINDOW = re.compile(r"(?:context|model|sequence) (?:length|window|size)(?: is| of)?\D{0,3}(\d+)", re.I)
_PROMPT = re.compile(r"(\d+) (?:in (?:the messages|the prompt|your prompt)|tokens from the input|input tokens)", re.I)
_OTHER_ENDPOINT = re.compile(r"not a chat model|is a chat model|chat[ _]template|v1/(?:chat/)?completions", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why a try gave no answer."""

    fault: CtxbenchError
    again: bool = False
    """Whether the same request may be answered later."""
    wait: float = 0.0
    """Seconds that the server asks to wait."""
    instead: Body | None = None
    """A request that the server would take where it refuses this one."""


def refused(status: int, headers: Mapping[str, str], text: str, body: Body, settings: Settings) -> Problem:
    """Say what a status other than 200 means.

    Args:
        status: the HTTP status.
        headers: of the reply, names in lower case.
        text: its body, without secrets.
        body: what was sent.
        settings: to whom.
    """
    said, code = _said(text)
    where = settings.where

    def machine(what: str, cure: str, **more: Any) -> Problem:
        return Problem(fault=MachineFault(f"{what}: {said}", where=where, cure=cure), **more)

    def user(what: str, cure: str) -> Problem:
        return Problem(fault=InputFault(f"{what}: {said}", where=where, cure=cure))

    if status == 429 and code == "insufficient_quota":
        return machine("the account has no credit left (status 429)", "top it up, then run the same command again")
    if status == 429 or status >= 500:
        wait = _wait(headers)
        cure = f"lower concurrency={settings.concurrency}, or wait" if status == 429 else AGAIN
        return machine(f"status {status}", cure, again=wait <= LONGEST_WAIT, wait=wait)
    if status in (401, 403):
        return user(f"the key is not accepted (status {status})", f"put a valid one into {settings.key_env}")
    if status < 400:
        to = headers.get("location", "elsewhere")
        return user(f"status {status}, the server points to {to[:_SHOWN]}", "give that address as url=")
    if code in _TOO_LONG_CODES or _TOO_LONG.search(said):
        fault = TooLong(f"the prompt is too long for the model (status {status}): {said}", where=where, cure=SHORTER)
        return Problem(fault=fault, instead=_shorter(said, body))
    if _OTHER_ENDPOINT.search(said):
        other = "completions" if settings.chat else "chat"
        return user(f"the model is not served at this endpoint (status {status})", f"give endpoint={other}")
    if status in (404, 405):
        cure = f"give the name as {settings.url}/models lists it, and check the url"
        return user(f"no such model, or no such address (status {status})", cure)
    return machine(f"the request is refused (status {status})", "mend the spec (endpoint=, extra=), then run again")


def _shorter(said: str, body: Body) -> Body | None:
    """Return the request with a lower limit of tokens, if that may be what the window leaves it.

    The prompt stays whole; the answer may end as ``length`` sooner. The limit is what the server says is left; newer
    vLLM says only that the prompt has "at least" what is too much, and so the limit is halved.
    """
    name = next((name for name in _LIMITS if name in body), None)
    window, prompt = _WINDOW.search(said), _PROMPT.search(said)
    if name is None or window is None or prompt is None:
        return None
    exact = "at least" not in said
    room = int(window.group(1)) - int(prompt.group(1)) if exact else body[name] // 2
    return {**body, name: room} if (1 if exact else _LEAST) <= room < body[name] else None


def _said(text: str) -> tuple[str, str]:
    """Return a server's words and its code for the fault, whatever shape it gives them; the words in one line."""
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    error = dig(data, "error")
    for words in (
        dig(error, "message"),
        error,
        dig(data, "message"),
        dig(data, "detail", 0, "msg"),
        dig(data, "detail"),
        text,
    ):
        if isinstance(words, str) and words.strip():
            break
    else:
        words = "no reason given"
    codes = [dig(at, key) for at in (error, data) for key in ("code", "type")]
    code = next((one for one in codes if one in (*_TOO_LONG_CODES, "insufficient_quota")), "")
    line = " ".join(words.split())
    return (line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"), code


def _wait(headers: Mapping[str, str]) -> float:
    """Return the seconds that a reply asks to wait; 0 if it does not."""
    given = headers.get("retry-after", "").strip()
    if not given:
        return 0.0
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (ValueError, TypeError):
            return 0.0
    return seconds if 0 < seconds < float("inf") else 0.0

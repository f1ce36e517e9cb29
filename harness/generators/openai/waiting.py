"""Read how long a server asks clients to wait. Pure."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping

_RESET, _REMAINING = "ratelimit-reset", "ratelimit-remaining"
_SPANS = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9
"""A larger number is a time in seconds since 1970; one that is a thousand times as large is in milliseconds."""


def wait(headers: Mapping[str, str]) -> float:
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

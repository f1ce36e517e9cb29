"""Dates of code: the one spelling in which manifests, samples, commands and tables give a day."""

from __future__ import annotations

import re
from datetime import date

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_date(text: str) -> date:
    """Return the day that is written as ``YYYY-MM-DD``.

    Raises:
        ValueError: if it is written in another way, or there is no such day; the message names the text.
    """
    try:
        # `fromisoformat` alone also reads 20240601 and 2024-W22-6.
        return date.fromisoformat(text if _DAY.fullmatch(text) else "")
    except ValueError:
        raise ValueError(f"{text!r} is no date") from None

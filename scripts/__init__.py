"""Programs for maintainers. Most write a part of a documentation page."""

from __future__ import annotations

import math
from pathlib import Path


def write_section(page: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marker lines of a page.

    Raises:
        ValueError: if the page lacks a marker, or contains the first marker twice.
    """
    before, behind = page.read_text(encoding="utf-8").split(begin)
    _, after = behind.split(end, 1)
    page.write_text("".join([before, begin, text, end, after]), encoding="utf-8")


def log_place(value: float, ends: tuple[float, float], start: float, end: float) -> float:
    """Return the position of a value on a logarithmic axis whose `ends` are at `start` and `end`."""
    low, high = map(math.log, ends)
    return start + (end - start) * (math.log(value) - low) / (high - low)

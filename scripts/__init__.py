"""Programs for maintainers; nothing here is needed to use ctxbench. Most write a part of a documentation page."""

from __future__ import annotations

import math
from pathlib import Path


def write_section(page: Path, begin: str, end: str, text: str) -> None:
    """Write a text between two marks of a page, in place of what stands there.

    Raises:
        ValueError: if the page has not both marks, the first of them once.
    """
    before, behind = page.read_text(encoding="utf-8").split(begin)
    _, after = behind.split(end, 1)
    page.write_text("".join([before, begin, text, end, after]), encoding="utf-8")


def log_place(value: float, ends: tuple[float, float], start: float, end: float) -> float:
    """Return where a value stands on a logarithmic axis from `start` to `end`, which mean the `ends`."""
    low, high = map(math.log, ends)
    return start + (end - start) * (math.log(value) - low) / (high - low)

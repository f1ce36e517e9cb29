"""`WorkPace`: the size of the next part of some work, so that results are stored soon and a kill loses little."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_SECONDS = 0.5
"""The time that a part should take."""


class WorkPace:
    """Parts of work: the first is small, the next ones as large as the time of the last suggests, at most doubled."""

    def __init__(self, first: int) -> None:
        """Begin with parts of `first` pieces."""
        self.size = max(1, first)

    def parts(self, pieces: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the pieces, part after part; each part is timed until the next is taken."""
        at = 0
        while at < len(pieces):
            part = pieces[at : at + self.size]
            began = time.monotonic()
            yield part
            self.took(len(part), time.monotonic() - began)
            at += len(part)

    def took(self, pieces: int, seconds: float) -> None:
        """Note how long a part took; a short last part does not make the next ones smaller."""
        fits = int(pieces * _SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(2 * self.size, fits if seconds > _SECONDS else max(self.size, fits)))

"""`Pace`: how much to do at a time, so that what is done is kept soon and little is lost in a kill."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_SECONDS = 0.5
"""What a part is to take."""


class Pace:
    """Parts of work: a small one first, then as large as the time of the last one suggests, at most doubled."""

    def __init__(self, first: int) -> None:
        """Begin with parts of `first` pieces."""
        self.size = max(1, first)

    def parts(self, pieces: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the pieces, part after part; each is timed until the next is asked for."""
        at = 0
        while at < len(pieces):
            part = pieces[at : at + self.size]
            began = time.monotonic()
            yield part
            self.took(len(part), time.monotonic() - began)
            at += len(part)

    def took(self, pieces: int, seconds: float) -> None:
        """Note how long a part took; a part that was the rest of something does not make the next ones smaller."""
        fits = int(pieces * _SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(2 * self.size, fits if seconds > _SECONDS else max(self.size, fits)))

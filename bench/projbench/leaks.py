"""Targets whose text stands elsewhere in the repository.

As in ProjBench, a whole line that recurs gives no sample, but the end of a line that also ends another line does:
code that uses an API recurs by nature, and leaving such lines out would choose lines against retrieval. The
builder counts them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable

SHORTEST_REST = 10
"""A shorter rest of a line, such as ``= Cart()``, recurs by chance and gives nothing away."""


class VerbatimIndex:
    """Every line of a repository, for asking whether a text stands elsewhere too."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Index whole files."""
        self._count: Counter[str] = Counter()
        for text in texts:
            self._count.update(map(str.strip, text.split("\n")))
        self._reversed = sorted(line[::-1] for line in self._count)

    def repeated(self, line: str) -> bool:
        """Say whether a line of the repository, stripped, stands on a second line."""
        return self._count[line.strip()] > 1

    def rest_repeated(self, tail: str) -> bool:
        """Say whether a rest of a line of the repository, if long enough, also ends a second line."""
        reversed_tail = tail.strip()[::-1]
        if len(reversed_tail) < SHORTEST_REST:
            return False
        start = bisect_left(self._reversed, reversed_tail)
        ends = (line.startswith(reversed_tail) for line in self._reversed[start : start + 2])
        return all(ends) and start + 1 < len(self._reversed)

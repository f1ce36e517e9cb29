"""Targets whose text stands elsewhere in the repository.

A whole line that does is no sample, as in ProjBench. A rest of a line that ends another line is one, as
there: to recur is the nature of code that uses an API, and samples without it would measure retrieval on
lines chosen against it. The builder counts them.
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

    def rest_repeated(self, rest: str) -> bool:
        """Say whether a rest of a line of the repository, if long enough, also ends a second line."""
        wanted = rest.strip()[::-1]
        if len(wanted) < SHORTEST_REST:
            return False
        start = bisect_left(self._reversed, wanted)
        ends = (line.startswith(wanted) for line in self._reversed[start : start + 2])
        return all(ends) and start + 1 < len(self._reversed)

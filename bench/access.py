"""`AccessLedger`: what one strategy was shown of a repository for one sample, noted by the view that showed it.

A file that is opened counts as seen whole, a search as the places of its hits. Nothing is copied and no token counted,
so that it costs next to nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a strategy looked at."""

    opened: int = 0
    """Files that it read."""
    searches: int = 0
    """Its searches: for windows, units and lines, and of engines."""
    characters: int = 0
    """Of all that it was handed, each as often as it was."""
    places: tuple[Place, ...] = ()
    """By path and line; what touches is one place."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files of its places."""
        return tuple(dict.fromkeys(place.path for place in self.places))


@dataclass(slots=True)
class AccessLedger:
    """Notes while a strategy works; belongs to one sample."""

    _opened: dict[str, int] = field(default_factory=dict)
    _spans: dict[str, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    _searches: int = 0
    _characters: int = 0

    def open(self, path: str, text: str) -> None:
        """Note that a file was read."""
        self._opened[path] = len(split_lines(text))
        self._characters += len(text)

    def search(self, hits: Iterable[tuple[str, Sequence[Place]]]) -> None:
        """Note a search, and each hit's text and places."""
        self._searches += 1
        for text, places in hits:
            self._characters += len(text)
            for place in places:
                self._spans[place.path].add((place.start, place.end))

    @property
    def access(self) -> Access:
        """All of it so far."""
        whole = {path: {(0, lines)} for path, lines in self._opened.items()}
        spans = {**self._spans, **whole}
        return Access(
            opened=len(self._opened),
            searches=self._searches,
            characters=self._characters,
            places=tuple(
                Place(path=path, start=start, end=end)
                for path in sorted(spans)
                for start, end in _merged(sorted(spans[path]))
            ),
        )


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield sorted spans, those that touch as one."""
    last: tuple[int, int] | None = None
    for start, end in spans:
        if last is not None and start <= last[1]:
            last = last[0], max(last[1], end)
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last

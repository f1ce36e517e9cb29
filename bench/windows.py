"""Window retrieval as in RepoCoder: windows of lines, compared by the Jaccard index of their token sets.

One index serves all samples of a snapshot; a filter hides windows that may reveal an answer. As in RepoCoder's release:

- Lines end as in Python's `str.splitlines`. A window's places are lines of the file, which end at newlines.
- A file of n lines has, for i in 0, stride, 2*stride, … below n, the window of the lines ``[max(0, i - size // 2),
  min(n, i + size - size // 2))``.
- Windows of equal text are one unit with all its places, in the order of the sorted files.
- Units are ordered by first place. Among equal scores, the later unit comes first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.concurrency import SharedCache
from ctxbench.bench.types import Place

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

Tokens = Callable[[str], Iterable[Hashable]]
SIZE, STRIDE = 20, 10
"""Size of RepoCoder's windows, and distance between their starts, in lines."""
_COMMON = 1 / 32
"""A token in more than this share of units is stored as a dense row, rather than as a list of units."""
_KEPT_INDICES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowHit:
    """A retrieved unit: all windows with the same text."""

    text: str
    score: float
    """Jaccard index of the token sets, 0 to 1."""
    places: tuple[Place, ...]
    """Places that the strategy may see, at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target file of a search, and its parts that must not be retrieved."""

    path: str
    context_start: int
    """First line that the prompt shows. Windows of this file are candidates only if they end before that line."""
    cursor_line: int
    """Line of the cursor. Places of this file that contain this line or a later line are not visible."""
    masked: tuple[tuple[int, int], ...] = ()
    """Spans ``[start, end)`` of this file. Places that overlap a span are not visible."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The units of an index that a search for one `Target` may return, and their order."""

    hidden: Ints
    order: Ints
    places: Mapping[int, tuple[Place, ...]]
    """Visible places of each unit that has a place in the target file, by unit number."""


def split_lines(text: str) -> list[str]:
    """Split a text into lines without newlines. A final newline does not start another line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def code_lines(text: str) -> tuple[list[str], Sequence[int]]:
    """Return lines as RepoCoder splits them (`str.splitlines`), and the 0-based line of the file that contains each."""
    lines, file_lines = text.splitlines(), split_lines(text)
    if len(lines) == len(file_lines):
        return lines, range(len(lines))
    return lines, [row for row, line in enumerate(file_lines) for _ in f"{line}\n".splitlines()][: len(lines)]


def spans(lines: int, size: int, stride: int) -> list[tuple[int, int]]:
    """Return the line span ``[start, end)`` of each window of a file with `lines` lines."""
    before = size // 2
    return [(max(0, i - before), min(lines, i + size - before)) for i in range(0, lines, stride)]


class WindowIndex:
    """A searchable index of the windows of some files. It never changes, so threads can share it."""

    def __init__(
        self, texts: Mapping[str, str], *, size: int = SIZE, stride: int = STRIDE, tokens: Tokens = tokenize
    ) -> None:
        """Index all files, at about 100,000 lines per second.

        Args:
            size: number of lines in a window.
            stride: lines from one window to the next.
        """
        self._tokens = tokens
        units: dict[str, list[Place]] = {}
        for path in sorted(texts):
            lines, rows = code_lines(texts[path])
            for start, end in spans(len(lines), size, stride):
                place = Place(path=path, start=rows[start], end=rows[end - 1] + 1)
                units.setdefault("\n".join(lines[start:end]), []).append(place)
        self.texts = tuple(units)
        self.places = tuple(tuple(places) for places in units.values())
        self._in_file: dict[str, list[int]] = {}
        for unit, places in enumerate(self.places):
            for path in {place.path for place in places}:
                self._in_file.setdefault(path, []).append(unit)
        self._index_tokens()

    def _index_tokens(self) -> None:
        import numpy as np  # noqa: PLC0415 - not needed by most of what imports this module

        postings: dict[Hashable, list[int]] = {}
        sizes = np.zeros(len(self.texts), dtype=np.int64)
        for unit, text in enumerate(self.texts):
            tokens = set(self._tokens(text))
            sizes[unit] = len(tokens)
            for token in tokens:
                postings.setdefault(token, []).append(unit)
        common = [token for token, units in postings.items() if len(units) > _COMMON * len(self.texts)]
        # Adding rows of bytes is many times faster than counting the units of common tokens.
        self._dense = np.zeros((len(common), len(self.texts)), dtype=np.uint8)
        self._row = {token: row for row, token in enumerate(common)}
        for token, row in self._row.items():
            self._dense[row, postings.pop(token)] = 1
        self._rare = {token: np.array(units, dtype=np.int64) for token, units in postings.items()}
        self._sizes = sizes
        self._order = np.arange(len(self.texts), dtype=np.int64)

    def scope(self, target: Target) -> Scope:
        """Return the units and places that a search for `target` may return. Call this once per sample."""
        import numpy as np  # noqa: PLC0415

        order, hidden, visible_places = self._order, [], {}
        moved: list[tuple[int, Place]] = []
        for unit in self._in_file.get(target.path, ()):
            places = self.places[unit]
            visible = tuple(place for place in places if _may_show(place, target))
            visible_places[unit] = visible
            if not any(_is_candidate(place, target) for place in visible):
                hidden.append(unit)
            elif visible[0] != places[0]:
                moved.append((unit, visible[0]))
        if moved:
            # A unit's rank must not reveal that it also occurs where the strategy may not look.
            order = self._reordered(moved)
        return Scope(np.array(hidden, dtype=np.int64), order, visible_places)

    def _reordered(self, moved: Sequence[tuple[int, Place]]) -> Ints:
        import numpy as np  # noqa: PLC0415

        first = dict(moved)
        ranked = sorted(range(len(self.texts)), key=lambda unit: first.get(unit) or self.places[unit][0])
        order = np.empty(len(ranked), dtype=np.int64)
        order[ranked] = np.arange(len(ranked))
        return order

    def query(self, text: str, *, top: int, scope: Scope | None = None) -> tuple[WindowHit, ...]:
        """Return the `top` units most similar to `text`, best first; fewer if the scope has fewer units.

        Text without tokens matches nothing. Otherwise units of score 0 complete the list, as in RepoCoder's release.
        """
        import numpy as np  # noqa: PLC0415

        tokens = set(self._tokens(text))
        if not tokens or top <= 0 or not self.texts:
            return ()
        shared = self._shared(tokens)
        scores = shared / (len(tokens) + self._sizes - shared)
        allowed = len(self.texts)
        order = self._order
        if scope is not None:
            scores[scope.hidden] = -1.0
            allowed -= len(scope.hidden)
            order = scope.order
        limit = min(top, allowed)
        if limit == 0:
            return ()
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        near = np.flatnonzero(scores >= least)
        best = near[np.lexsort((order[near], scores[near]))][::-1][:limit]
        visible_places: Mapping[int, tuple[Place, ...]] = scope.places if scope is not None else {}
        return tuple(
            WindowHit(
                text=self.texts[unit], score=float(scores[unit]), places=visible_places.get(unit) or self.places[unit]
            )
            for unit in best.tolist()
        )

    def _shared(self, tokens: set[Hashable]) -> Ints:
        import numpy as np  # noqa: PLC0415

        rows = [self._row[token] for token in tokens if token in self._row]
        total: Any = np.zeros(len(self.texts), dtype=np.int64)
        for start in range(0, len(rows), 255):  # a byte holds the sum of 255 rows
            total += np.add.reduce(self._dense[rows[start : start + 255]], axis=0, dtype=np.uint8)
        lists = [self._rare[token] for token in tokens if token in self._rare]
        if lists:
            total += np.bincount(np.concatenate(lists), minlength=len(self.texts))
        shared: Ints = total
        return shared


def _may_show(place: Place, target: Target) -> bool:
    if place.path != target.path:
        return True
    return place.end <= target.cursor_line and not any(
        place.start < end and start < place.end for start, end in target.masked
    )


def _is_candidate(place: Place, target: Target) -> bool:
    return place.path != target.path or place.end <= target.context_start


_INDICES: SharedCache[WindowIndex] = SharedCache(_KEPT_INDICES)


def index(
    digest: str,
    texts: Mapping[str, str],
    *,
    size: int = SIZE,
    stride: int = STRIDE,
    tokens: Tokens = tokenize,
    built: Callable[[float], None] | None = None,
) -> WindowIndex:
    """Return the window index of some files, cached.

    Args:
        digest: digest of the files, by which the index is cached.
        built: called with the seconds that building took, unless the index was cached.
    """

    def make() -> WindowIndex:
        start = time.perf_counter()
        windows = WindowIndex(texts, size=size, stride=stride, tokens=tokens)
        if built is not None:
            built(time.perf_counter() - start)
        return windows

    return _INDICES.get((digest, size, stride, tokens), make)

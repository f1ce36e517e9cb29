"""Corpora of searchable units, and the search over two corpora: a snapshot's and the target file's."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ctxbench.bench.concurrency import SharedCache
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.retrieval.units import Hit, Unit

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Scores = npt.NDArray[np.float64]

_KEPT_INDICES = 3


class Ranker(Protocol):
    """A method that compares a text with indexed texts. A higher score is more similar."""

    @property
    def slack(self) -> float:
        """Maximum error of `scores`."""
        ...

    @property
    def exact(self) -> Callable[[Any, Any], float] | None:
        """Function that returns the exact score of a query and an indexed text; None if `scores` are exact."""
        ...

    def index(self, texts: Sequence[str]) -> Any:
        """Return an index of texts for `scores`."""
        ...

    def query(self, text: str) -> Any:
        """Return a query for `scores`; None if the text matches nothing."""
        ...

    def scores(self, query: Any, shared: Any, own: Any, skip: Span) -> Scores:
        """Return the scores of the texts in index `shared`, then `own`. Shared texts in span `skip` affect no score."""
        ...


class Corpus:
    """Searchable units in path and line order. A corpus never changes, so threads can share it."""

    def __init__(self, units: Sequence[Unit], *, built: Callable[[str, float], None] | None = None) -> None:
        """Store units. The first search with each ranker builds its index.

        Args:
            built: receives each new index's ranker and build time in seconds.
        """
        import numpy as np  # noqa: PLC0415 - not needed by most of what imports this module

        self.units = tuple(sorted(units, key=lambda unit: unit.place))
        keys = [unit.keys or (unit.text,) for unit in self.units]
        self.keys = tuple(key for several in keys for key in several)
        self.first: Ints = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        """Unit number -> index of the unit's first key. The last entry is the number of keys."""
        self.characters = sum(map(len, self.keys))
        self._indices: SharedCache[Any] = SharedCache(_KEPT_INDICES)
        self._built = built

    def index(self, name: str, ranker: Ranker) -> Any:
        """Return a ranker's index of the units' keys, built if missing. `name` identifies the ranker."""
        return self._indices.get(name, lambda: self._index(name, ranker))

    def _index(self, name: str, ranker: Ranker) -> Any:
        start = time.perf_counter()
        index = ranker.index(self.keys)
        if self._built is not None:
            self._built(name, time.perf_counter() - start)
        return index

    def of_file(self, path: str) -> Span:
        """Return a file's units as a span of unit numbers, ``[start, end)``."""
        return (
            bisect_left(self.units, path, key=lambda unit: unit.place.path),
            bisect_right(self.units, path, key=lambda unit: unit.place.path),
        )


def search(
    text: str, *, shared: Corpus, own: Corpus, path: str, name: str, ranker: Ranker, top: int
) -> tuple[Hit, ...]:
    """Return the units most similar to a text, best first; ties by path and line.

    Args:
        text: query. Text that is blank, or for which `ranker.query` is None, matches nothing.
        shared: units of a snapshot.
        own: units that replace those of the file `path`.
        name: identifies the ranker.
        top: maximum number of units. Units of score 0 complete the list.
    """
    import numpy as np  # noqa: PLC0415

    start, end = shared.of_file(path)
    count, all_of_them = len(shared.units), len(shared.units) + len(own.units)
    # Sort unit numbers as ties are broken: the own units replace those of the target file.
    order = np.concatenate([np.arange(start), np.arange(count, all_of_them), np.arange(end, count)])
    query = ranker.query(text) if text.strip() and len(order) else None
    if query is None or top <= 0:
        return ()
    indices = shared.index(name, ranker), own.index(name, ranker)
    by_key = ranker.scores(query, *indices, (int(shared.first[start]), int(shared.first[end])))
    first = np.concatenate([shared.first[:-1], own.first + len(shared.keys)])
    scores = np.maximum.reduceat(by_key, first[:-1])[order]
    limit = min(top, len(order))
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    near = np.flatnonzero(scores >= least - 2 * ranker.slack)
    if ranker.exact is None:
        near = near[np.argsort(-scores[near], kind="stable")][:limit]
    hits = []
    for number in order[near].tolist():
        is_own = number >= count
        keys = range(int(first[number]), int(first[number + 1]))
        if ranker.exact is None:
            exact = by_key[keys.start : keys.stop].tolist()
        else:
            exact = [ranker.exact(query, indices[is_own][key - is_own * len(shared.keys)]) for key in keys]
        best = max(exact)
        unit = own.units[number - count] if is_own else shared.units[number]
        matched = unit.keys[exact.index(best)] if unit.keys else ""
        hits.append(Hit(place=unit.place, text=unit.text, score=best, name=unit.name, matched=matched))
    return tuple(sorted(hits, key=lambda hit: -hit.score)[:limit])


def similarity(text: str, candidates: Sequence[str], ranker: Ranker) -> tuple[float, ...]:
    """Return the similarity of a text to each candidate; 0 for a blank text. The candidates supply word statistics."""
    query = ranker.query(text) if text.strip() else None
    if query is None or not candidates:
        return (0.0,) * len(candidates)
    index = ranker.index(candidates)
    if ranker.exact is not None:
        return tuple(ranker.exact(query, indexed_text) for indexed_text in index)
    return tuple(ranker.scores(query, index, ranker.index([]), (0, 0)).tolist())

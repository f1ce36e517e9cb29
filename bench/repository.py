"""A strategy's view of a repository, built for one query, and the record of what the strategy looked at."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.grep import matching_lines, read_pattern
from ctxbench.bench.languages.base import Language
from ctxbench.bench.masking import is_hidden, visible_target
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import SIZE, STRIDE, Scope, Target, WindowHit, index, split_lines

if TYPE_CHECKING:
    from ctxbench.bench.engines.types import EngineDoor
    from ctxbench.bench.repositories.snapshot import Snapshot
    from ctxbench.bench.retrieval.retrieval import Retrieval


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Counts and places of the code that a strategy read or found for one sample."""

    opened: int = 0
    searches: int = 0
    """Number of searches for windows, units or lines, including searches by engines."""
    characters: int = 0
    """Characters of all returned text, including repeats."""
    places: tuple[Place, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files in `places`."""
        return tuple(dict.fromkeys(place.path for place in self.places))


@dataclass(slots=True)
class AccessLedger:
    """A recorder of what a strategy reads and searches while it runs on one sample."""

    _opened: dict[str, int] = field(default_factory=dict)
    _spans: dict[str, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    _searches: int = 0
    _characters: int = 0

    def open(self, path: str, text: str) -> None:
        """Record that a strategy read a file's text."""
        self._opened[path] = len(split_lines(text))
        self._characters += len(text)

    def search(self, hits: Iterable[tuple[str, Sequence[Place]]]) -> None:
        """Record a search. `hits` contains the text and the places of each hit."""
        self._searches += 1
        for text, places in hits:
            self._characters += len(text)
            for place in places:
                self._spans[place.path].add((place.start, place.end))

    @property
    def access(self) -> Access:
        """The record of what the strategy has read and searched so far."""
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


_MAX_TOP = 10_000
_MAX_LINES = 10_000_000


class EngineSearch(Protocol):
    """A context engine that a strategy may query for one sample."""

    def search(self, text: str, *, top: int = 10, before: int = 0) -> tuple[Hit, ...]:
        """Return the engine's places, best first, with their visible text.

        Args:
            text: query, usually the target file up to the cursor.
            top: maximum number of places.
            before: first line of the target file that the prompt shows. Code before it may be returned too.

        Raises:
            InputFault: if the strategy may not query this engine, a number is out of range, or the answer is invalid.
            MachineFault: if the engine hangs, crashes or cannot start.
        """
        ...


class Repository(Protocol):
    """A repository as a strategy sees it for one query."""

    @property
    def name(self) -> str:
        """The repository's name."""
        ...

    @property
    def language(self) -> Language:
        """Language of the source files."""
        ...

    def files(self) -> tuple[str, ...]:
        """Return the paths of the source files, sorted."""
        ...

    def read(self, path: str) -> str:
        """Return a file's text, with Unix newlines. The target file lacks the answer.

        Raises:
            InputFault: if `path` is not one of `files`.
        """
        ...

    def similar_windows(
        self, text: str, *, top: int = 20, size: int = SIZE, stride: int = STRIDE, before: int = 0
    ) -> tuple[WindowHit, ...]:
        """Return the windows of lines most similar to `text`, best first (see `bench.windows`).

        Args:
            text: code. Text without tokens matches nothing.
            top: maximum number of windows.
            size: number of lines in a window.
            stride: lines from one window to the next.
            before: first line of the target file that the prompt shows. Windows before it may be returned too. A
                sample's stored `context_start` has priority.

        Raises:
            InputFault: if a number is out of range.
        """
        ...

    def search(self, text: str, *, unit: str = "function", ranker: str = "minilm", top: int = 10) -> tuple[Hit, ...]:
        """Return the units most similar to `text`, best first; ties by path and line.

        The function at the cursor is left out. The target file's chunks, mini-blocks and ``words`` must end before the
        first line that the prompt shows.

        Args:
            text: code or prose. Blank text matches nothing.
            unit: kind of unit: ``function``, ``chunk(lines=10)``, ``mini-block(lines=15)``, ``words(count=300)``,
                ``usage`` (APIs by usage example) or ``summary`` (APIs by summary).
            ranker: ``bm25``, ``jaccard``, or an encoder's spec. Word statistics count only visible units.
            top: maximum number of units.

        Raises:
            InputFault: if unit or ranker is unknown or cannot be used here, or a number is out of range.
        """
        ...

    def grep(self, pattern: str, *, top: int = 100) -> tuple[Hit, ...]:
        """Return the lines that contain a text, in the order of files and lines.

        Args:
            pattern: text. ``|`` separates alternatives, ``.*`` matches anything (see `bench.grep`).
            top: maximum number of lines.

        Raises:
            InputFault: if the pattern or an alternative contains no text, or `top` is out of range.
        """
        ...

    def engine(self, name: str) -> EngineSearch:
        """Return a context engine by its spec, which must be the value of an `EngineSpec` parameter."""
        ...

    def similarity(self, text: str, candidates: Sequence[str], *, ranker: str = "minilm") -> tuple[float, ...]:
        """Return the similarity of `text` to each candidate, in order; higher is more similar.

        Args:
            ranker: as for `search`. Word statistics come from the candidates.

        Raises:
            InputFault: if the ranker is unknown or cannot be used here.
        """
        ...


class View:
    """The `Repository` of one query. It reads whole files and returns only visible parts."""

    def __init__(  # noqa: PLR0913 - what a query's answers depend on
        self,
        *,
        name: str,
        language: Language,
        texts: Mapping[str, str],
        digest: str,
        query: Query,
        masked: Sequence[tuple[int, int]] = (),
        hidden: Sequence[str] = (),
        retrieval: Retrieval | None = None,
        engines: EngineDoor | None = None,
        ledger: AccessLedger | None = None,
    ) -> None:
        """Create a view. The function `view` explains the arguments."""
        # Import this here, since every strategy's process imports this module.
        from ctxbench.bench.retrieval.retrieval import IndexedFiles  # noqa: PLC0415

        self._engines, self._cursor_line, self._ledger = engines, query.cursor.line, ledger or AccessLedger()
        target = visible_target(texts.get(query.path), query, masked)
        if hidden:
            texts = {path: text for path, text in texts.items() if path == query.path or not is_hidden(path, hidden)}
            # Index the remaining files separately, so that hidden files affect no score.
            spared = query.path if is_hidden(query.path, hidden) else ""
            digest = sha256("\0".join([digest, spared, *sorted(hidden)]))
        self.name, self.language = name, language
        self._files, self._visible = IndexedFiles(digest=digest, texts=texts, language=language, repo=name), target
        self._paths = tuple(texts) if query.path in texts else tuple(sorted([*texts, query.path]))
        self._target = Target(
            path=query.path,
            context_start=target.context_start,
            cursor_line=query.cursor.line if target.trusted else 0,
            masked=tuple(masked),
        )
        self._scopes: dict[tuple[int, int, int], Scope] = {}
        self._retrieval = retrieval or _shared_retrieval()

    def files(self) -> tuple[str, ...]:
        """Return the paths of the visible source files, sorted."""
        return self._paths

    def read(self, path: str) -> str:
        """Return a file's text. The target file lacks the answer."""
        text = self._text(path)
        self._ledger.open(path, text)
        return text

    def _text(self, path: str) -> str:
        if path == self._visible.path:
            return self._visible.text
        if not isinstance(path, str) or path not in self._files.texts:
            raise InputFault(
                f"the repository {self.name} has no source file {path!r}", cure="take a path from repo.files()"
            )
        return self._files.texts[path]

    def similar_windows(
        self, text: str, *, top: int = 20, size: int = SIZE, stride: int = STRIDE, before: int = 0
    ) -> tuple[WindowHit, ...]:
        """Return the windows most similar to `text` that contain no hidden code."""
        for key, value, most in (("top", top, _MAX_TOP), ("size", size, 1000), ("stride", stride, 1000)):
            _check(key, value, most)
        _check("before", before, _MAX_LINES, least=0)
        noted = functools.partial(self._retrieval.note, self.name, f"windows {size}x{stride}")
        windows = index(
            self._files.digest,
            self._files.texts,
            size=size,
            stride=stride,
            tokens=self._retrieval.tokens,
            built=noted,
        )
        scope = self._scopes.get((size, stride, before))
        if scope is None:
            target = replace(self._target, context_start=self._target.context_start or before)
            scope = self._scopes[size, stride, before] = windows.scope(target)
        hits = windows.query(text, top=top, scope=scope)
        self._ledger.search((hit.text, hit.places) for hit in hits)
        return hits

    def search(self, text: str, *, unit: str = "function", ranker: str = "minilm", top: int = 10) -> tuple[Hit, ...]:
        """Return the units most similar to `text` that contain no hidden code."""
        _check("top", top, _MAX_TOP)
        return self.noted(
            self._retrieval.search(text, files=self._files, target=self._visible, unit=unit, ranker=ranker, top=top)
        )

    def similarity(self, text: str, candidates: Sequence[str], *, ranker: str = "minilm") -> tuple[float, ...]:
        """Return the similarity of `text` to each candidate, in order."""
        return self._retrieval.similarity(text, candidates, ranker=ranker)

    def grep(self, pattern: str, *, top: int = 100) -> tuple[Hit, ...]:
        """Return the lines that contain a text. The searched target file lacks the answer."""
        _check("top", top, _MAX_TOP)
        texts = {path: self._text(path) for path in self._paths}
        return self.noted(tuple(itertools.islice(matching_lines(read_pattern(pattern), texts), top)))

    def engine(self, name: str) -> EngineSearch:
        """Return a context engine. The engine's places are truncated to visible code."""
        if self._engines is None:
            raise InputFault(f"the engine {name!r:.80} is not available outside a run", cure="use `ctxbench run`")
        return _ViewedEngine(self, self._engines, name)

    def shown(self, place: Place, before: int) -> tuple[Hit | None, bool]:
        """Return the showable part of an engine's place, or None, and whether the place reached hidden code."""
        if place.path not in self._paths:
            return None, True
        reached = False
        if place.path == self._visible.path:
            reached = place.end > self._cursor_line
            limit = min(self._visible.context_start or before, self._target.cursor_line)
            place = replace(place, end=min(place.end, limit))
        lines = split_lines(self._text(place.path))
        place = replace(place, end=min(place.end, len(lines)))
        if place.start >= place.end:
            return None, reached
        return Hit(place=place, text="\n".join(lines[place.start : place.end]), score=0.0), reached

    def noted(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Record hits as one search, and return them."""
        self._ledger.search((hit.text, (hit.place,)) for hit in hits)
        return hits


class _ViewedEngine:
    def __init__(self, view: View, door: EngineDoor, name: str) -> None:
        self._view, self._door, self._name = view, door, name

    def search(self, text: str, *, top: int = 10, before: int = 0) -> tuple[Hit, ...]:
        _check("top", top, _MAX_TOP)
        _check("before", before, _MAX_LINES, least=0)
        hits: dict[Place, Hit] = {}
        cut = 0
        for scored in self._door.search(self._name, text, top):
            hit, reached = self._view.shown(scored.place, before)
            cut += reached
            if hit is not None:
                hits.setdefault(hit.place, replace(hit, score=scored.score))
        self._door.note(self._name, returned=len(hits), cut=cut)
        return self._view.noted(tuple(sorted(hits.values(), key=lambda hit: -hit.score)))


def _check(key: str, value: object, most: int, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputFault(f"{key}={value!r} is out of range", cure=f"give a whole number from {least} to {most}")


@functools.cache
def _shared_retrieval() -> Retrieval:
    from ctxbench.bench.retrieval.retrieval import Retrieval  # noqa: PLC0415 - as above

    return Retrieval()


def view(
    snapshot: Snapshot,
    query: Query,
    masked: Sequence[tuple[int, int]] = (),
    hidden: Sequence[str] = (),
    retrieval: Retrieval | None = None,
    engines: EngineDoor | None = None,
    ledger: AccessLedger | None = None,
) -> Repository:
    """Return the view of `snapshot` for a query's strategy.

    Args:
        masked: line spans ``[start, end)`` of the target file to blank.
        hidden: files and folders (with a final ``/``) to leave out.
        retrieval: cache of indices and vectors; None for the shared one.
        engines: context engines that the query may use; None for none.
        ledger: records accesses.

    Raises:
        InputFault: if snapshot and query differ in repository or language.
    """
    if (snapshot.name, snapshot.language) != (query.repo, query.language):
        raise InputFault(
            f"the sample is from {query.repo} ({query.language}), "
            f"but the snapshot is of {snapshot.name} ({snapshot.language})",
            where=query.id,
            cure="build the sample set again",
        )
    return View(
        name=snapshot.name,
        language=snapshot.language,
        texts=snapshot.texts,
        digest=snapshot.digest,
        query=query,
        masked=masked,
        hidden=hidden,
        retrieval=retrieval,
        engines=engines,
        ledger=ledger,
    )


def digest_of(texts: Mapping[str, str]) -> str:
    """Return a digest of the paths and texts of files, for a view without a snapshot."""
    return sha256("".join(f"{path}\0{sha256(texts[path])}\n" for path in sorted(texts)))

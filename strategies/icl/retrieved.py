"""Searches for functions, and builds prompt blocks that show a function, its scope or its file."""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, BlockKind
from ctxbench.strategies.icl.source import FileLines, SourceFile, read_file, scope
from ctxbench.strategies.layout import bare_name

_FIRST = 16
"""Number of functions in the first search. It is multiplied by 4 while too few are usable."""
_MOST = 10_000


class Finder:
    """A search for functions for one query."""

    def __init__(self, query: Query, repo: Repository, *, encoder: str, current: bool) -> None:
        """Prepare the search. If `current`, functions of the current file are candidates."""
        self._query, self._repo, self._encoder, self._current = query, repo, encoder, current
        self._read: dict[str, SourceFile] = {}
        self.flags: list[str] = []

    def file(self, path: str) -> SourceFile:
        """Return a file without the target function, cached."""
        if path not in self._read:
            self._read[path] = read_file(self._repo, path, self._query)
        return self._read[path]

    def functions(self, text: str, most: int) -> list[Hit]:
        """Return up to `most` functions similar to a text, best first."""
        top = max(most, _FIRST)
        while True:
            hits = self._repo.search(text, unit="function", ranker=self._encoder, top=top)
            candidates = [hit for hit in hits if self._current or hit.place.path != self._query.path][:most]
            if len(candidates) == most or len(hits) < top or top >= _MOST:
                return candidates
            top = min(top * 4, _MOST)

    def in_files(self, text: str, most: int, *, without: Sequence[str] = ()) -> list[Hit]:
        """Return the best function in each of up to `most` files, best first. `without` excludes files."""
        top = _FIRST
        while True:
            hits = self.functions(text, top)
            best: dict[str, Hit] = {}
            for hit in hits:
                if hit.place.path not in without:
                    best.setdefault(hit.place.path, hit)
            if len(best) >= most or len(hits) < top or top >= _MOST:
                return list(best.values())[:most]
            top = min(top * 4, _MOST)

    def show(self, hits: Sequence[Hit], blocks: str) -> list[Block]:
        """Return blocks for functions, without duplicates. `blocks` is ``function``, ``scope`` or ``file``."""
        if blocks == "function":
            first = {hit.place: hit for hit in reversed(hits)}
            return [_function(hit) for hit in hits if first[hit.place] is hit]
        by_path: dict[str, list[Hit]] = {}
        for hit in hits:
            by_path.setdefault(hit.place.path, []).append(hit)
        return [
            block
            for path, file_hits in by_path.items()
            for block in self._of_file(path, file_hits, scoped=blocks == "scope")
        ]

    def _of_file(self, path: str, hits: Sequence[Hit], *, scoped: bool) -> list[Block]:
        file = self.file(path)
        if scoped and file.outline.broken:
            self.flags.append("parse_failed")
            return self.show(hits, "function")
        lines = scope(file, {bare_name(hit.name) for hit in hits}) if scoped else file.lines
        return [shown_code(path, lines, hits[0].score)]


def shown_code(path: str, lines: FileLines, score: float | None = None) -> Block:
    """Return lines of a file as a block. `score` is that of the retrieved function."""
    return Block(kind=BlockKind.SIMILAR, text=lines.text, places=lines.places(path), score=score)


def _function(hit: Hit) -> Block:
    texts = tuple(hit.text.removesuffix("\n").split("\n"))
    numbers = tuple(range(hit.place.start, hit.place.start + len(texts)))
    return shown_code(hit.place.path, FileLines(texts, numbers).dedented(), hit.score)

"""Retrieve functions, and show them, their scopes or their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.types import Hit
from ctxbench.bench.types import Place, Query
from ctxbench.strategies.api import Block, BlockKind
from ctxbench.strategies.icl.file_lines import FileLines
from ctxbench.strategies.icl.frame import FileSection
from ctxbench.strategies.icl.scope import scope
from ctxbench.strategies.icl.source import SourceFile, bare, read_file

_FIRST = 16
"""Functions of the first search, which grows fourfold while too few of them may be shown."""
_MOST = 10_000
"""Functions of the last search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExcerpt:
    """Lines of a file for the prompt, before they are laid out: they may still be cut."""

    path: str
    lines: FileLines
    retrieved: bool
    """Whether it was retrieved; else it is of the current file."""
    score: float | None = None
    focus: tuple[int, ...] = ()
    """The lines of the retrieved functions, by the numbers of the file."""
    parts: tuple[range, ...] = ()
    """The lines of its other functions."""
    documents: tuple[Place, ...] = ()
    """The lines that it is the documentation of; empty: it is code."""
    cut: bool = False

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it comes from."""
        return self.documents or self.lines.places(self.path)

    def section(self) -> FileSection:
        """Return it as it is shown."""
        block = Block(
            kind=BlockKind.API if self.documents else BlockKind.SIMILAR,
            text=self.lines.text,
            places=self.places,
            score=self.score,
            cut=self.cut,
        )
        return FileSection(path=self.path, block=block, retrieved=self.retrieved)


class Finder:
    """Looks for functions for one query and shows them as a recipe asks."""

    def __init__(self, query: Query, repo: Repository, *, encoder: str, current: bool, strip_license: bool) -> None:
        """Prepare.

        Args:
            query: the sample's query.
            repo: the repository.
            encoder: what compares.
            current: whether functions of the current file are candidates.
            strip_license: whether scopes lack the comment at the top.
        """
        self._query, self._repo, self._encoder = query, repo, encoder
        self._current, self._strip = current, strip_license
        self._read: dict[str, SourceFile] = {}
        self.flags: list[str] = []

    def file(self, path: str) -> SourceFile:
        """Return a file without the target function, read once."""
        if path not in self._read:
            self._read[path] = read_file(self._repo, path, self._query)
        return self._read[path]

    def functions(self, text: str, most: int) -> list[Hit]:
        """Return the functions most like a text, best first."""
        top = max(most, _FIRST)
        while True:
            hits = self._repo.search(text, unit="function", ranker=self._encoder, top=top)
            candidates = [hit for hit in hits if self._current or hit.place.path != self._query.path][:most]
            if len(candidates) == most or len(hits) < top or top >= _MOST:
                return candidates
            top = min(top * 4, _MOST)

    def in_files(self, text: str, most: int, *, without: Sequence[str] = ()) -> list[Hit]:
        """Return the best function of each of the files that have the functions most like a text."""
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

    def show(self, hits: Sequence[Hit], blocks: str) -> list[ContextExcerpt]:
        """Return the excerpts that show functions, in their order; nothing is shown twice."""
        if blocks == "function":
            first = {hit.place: hit for hit in reversed(hits)}
            return [self._function(hit) for hit in hits if first[hit.place] is hit]
        by_path: dict[str, list[Hit]] = {}
        for hit in hits:
            by_path.setdefault(hit.place.path, []).append(hit)
        return [
            excerpt
            for path, file_hits in by_path.items()
            for excerpt in self._of_file(path, file_hits, scoped=blocks == "scope")
        ]

    def _function(self, hit: Hit) -> ContextExcerpt:
        numbers = tuple(range(hit.place.start, hit.place.end))
        lines = tuple(hit.text.removesuffix("\n").split("\n"))
        if len(lines) != len(numbers):
            numbers = tuple(range(hit.place.start, hit.place.start + len(lines)))
        return ContextExcerpt(
            path=hit.place.path, lines=FileLines(lines, numbers), retrieved=True, score=hit.score, focus=numbers
        )

    def _of_file(self, path: str, hits: Sequence[Hit], *, scoped: bool) -> list[ContextExcerpt]:
        file = self.file(path)
        if scoped and file.outline.broken:
            self.flags.append("parse_failed")
            return self.show(hits, "function")
        focus = tuple(sorted({number for hit in hits for number in range(hit.place.start, hit.place.end)}))
        lines = file.lines
        if scoped:
            lines = scope(file, {bare(hit.name) for hit in hits}, strip_license=self._strip)
        spans = (file.numbers(function) for function in file.functions)
        parts = tuple(span for span in spans if not set(span) & set(focus))
        return [ContextExcerpt(path=path, lines=lines, retrieved=True, score=hits[0].score, focus=focus, parts=parts)]

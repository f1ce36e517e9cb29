"""Retrieve functions, show them, their scopes or their files, and cut what does not fit the model's window.

The paper cuts nothing, so the rule of the cut is ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Place, Query
from ctxbench.strategies.api import FAILED, TRIMMED, Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.icl.prompts import FileSection
from ctxbench.strategies.icl.source import FileLines, SourceFile, decorator_lines, read_file, scope
from ctxbench.strategies.layout import bare_name, count

_FIRST = 16
"""Functions of the first search, which grows fourfold while too few of them may be shown."""
_MOST = 10_000
"""Functions of the last search."""
ANSWER = 1024
"""Tokens that are kept free for the answer."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class IclOptions:
    """The parameters of the family (see `icl.MEANING`); each strategy has those that mean something to it."""

    encoder: EncoderSpec = "minilm"
    k: Annotated[int, AtLeast(1)] = 1
    instruction: Literal["default", "A", "B"] = "default"
    target_style: Literal["paper", "clean"] = "paper"
    show_paths: bool = False
    max_steps: Annotated[int, AtLeast(1)] = 3
    extra_files: Annotated[int, AtLeast(0)] = 0
    keep_nonfunction_current: bool = True
    retrieve_from_current: Literal["auto", "yes", "no"] = "auto"
    dedent: bool = True
    decorators: bool = True
    strip_license: bool = True
    window: Annotated[int, AtLeast(0)] = 0
    overflow: Literal["trim", "fail"] = "trim"
    trim_mode: Literal["around", "tail"] = "around"


class Finder:
    """Looks for functions for one query and shows them as a recipe asks."""

    def __init__(self, query: Query, repo: Repository, *, choices: IclOptions, current: bool) -> None:
        """Prepare; `current` says whether functions of the current file are candidates."""
        self._query, self._repo, self._choices, self._current = query, repo, choices, current
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
            hits = self._repo.search(text, unit="function", ranker=self._choices.encoder, top=top)
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
        texts = tuple(hit.text.removesuffix("\n").split("\n"))
        if len(texts) != len(numbers):
            numbers = tuple(range(hit.place.start, hit.place.start + len(texts)))
        lines = FileLines(texts, numbers)
        if not self._choices.decorators:
            lines = lines.without(decorator_lines(self.file(hit.place.path), numbers))
        if self._choices.dedent:
            lines = lines.dedented()
        return ContextExcerpt(path=hit.place.path, lines=lines, retrieved=True, score=hit.score, focus=lines.numbers)

    def _of_file(self, path: str, hits: Sequence[Hit], *, scoped: bool) -> list[ContextExcerpt]:
        file = self.file(path)
        if scoped and file.outline.broken:
            self.flags.append("parse_failed")
            return self.show(hits, "function")
        focus = tuple(sorted({number for hit in hits for number in range(hit.place.start, hit.place.end)}))
        lines = file.lines
        if scoped:
            lines = scope(file, {bare_name(hit.name) for hit in hits}, strip_license=self._choices.strip_license)
        spans = (file.numbers(function) for function in file.functions)
        parts = tuple(span for span in spans if not set(span) & set(focus))
        return [ContextExcerpt(path=path, lines=lines, retrieved=True, score=hits[0].score, focus=focus, parts=parts)]


Layout = Callable[[Sequence[ContextExcerpt]], Prompt]


def fit_to_window(
    excerpts: Sequence[ContextExcerpt], layout: Layout, *, window: int, overflow: str, mode: str
) -> Prompt:
    """Return the prompt, cut to the window where it is over it.

    Retrieved excerpts go first, from the lowest rank; the last one is cut by whole lines, then the current file from
    its top; instruction, steps and target are never cut. A prompt that is still over the window is flagged too.

    Args:
        window: tokens of the model's window, by `bench.code_tokens`; 0 for no limit.
        overflow: ``trim``, or ``fail``: leave the prompt as it is, for the harness to fail it.
        mode: ``around`` cuts the lines farthest from the retrieved functions, whole functions first; ``tail`` cuts
            a file's end.
    """
    prompt = layout(excerpts)
    if not window or _fits(prompt, window):
        return prompt
    if overflow == "fail":
        return dataclasses.replace(prompt, flags=(*prompt.flags, FAILED))
    remaining = list(excerpts)
    dropped: list[Dropped] = []
    while not _fits(prompt, window) and (retrieved_excerpts := [excerpt for excerpt in remaining if excerpt.retrieved]):
        worst = retrieved_excerpts[-1]
        at = remaining.index(worst)
        if len(retrieved_excerpts) > 1 or not (less := _cut(remaining, at, _order(worst, mode), layout, window)):
            dropped.append(Dropped.of(worst.section().block))
            del remaining[at]
        else:
            remaining[at] = less
        prompt = layout(remaining)
    if remaining and not _fits(prompt, window):
        top = [frozenset([number]) for number in remaining[-1].lines.numbers]
        less = _cut(remaining, len(remaining) - 1, top, layout, window)
        if less:
            remaining[-1] = less
        else:
            dropped.append(Dropped.of(remaining.pop().section().block))
        prompt = layout(remaining)
    return dataclasses.replace(prompt, dropped=(*prompt.dropped, *dropped), flags=(*prompt.flags, TRIMMED))


def _fits(prompt: Prompt, window: int) -> bool:
    return count(prompt.text) + ANSWER <= window


def _cut(
    excerpts: Sequence[ContextExcerpt], at: int, order: Sequence[frozenset[int]], layout: Layout, window: int
) -> ContextExcerpt | None:
    """Return the block without as few lines, taken out in this order, as make the prompt fit; None if none do."""
    lines = excerpts[at].lines

    def without(steps: int) -> ContextExcerpt:
        gone = frozenset().union(*order[:steps])
        return dataclasses.replace(excerpts[at], lines=lines.without(gone), cut=True)

    def fits(steps: int) -> bool:
        return _fits(layout([*excerpts[:at], without(steps), *excerpts[at + 1 :]]), window)

    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    if not order or not fits(low) or without(low).lines.blank:
        return None
    return without(low)


def _order(excerpt: ContextExcerpt, mode: str) -> list[frozenset[int]]:
    """Return what is cut of a block, first what goes first."""
    last_first = list(reversed(excerpt.lines.numbers))
    if mode == "tail" or not excerpt.parts:
        return [frozenset([number]) for number in (last_first if mode == "tail" else _far(excerpt, last_first))]
    parts = sorted(excerpt.parts, key=lambda part: (-_distance(excerpt, part), part.start))
    in_parts = frozenset(number for part in parts for number in part)
    singly = _far(excerpt, [number for number in last_first if number not in in_parts])
    return [frozenset(part) for part in parts] + [frozenset([number]) for number in singly]


def _far(excerpt: ContextExcerpt, numbers: Sequence[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (-_distance(excerpt, range(number, number + 1)), -number))


def _distance(excerpt: ContextExcerpt, part: range) -> int:
    """Return how many lines lie between a part and the nearest function found; 0 inside of it."""
    return min(
        (0 if number in part else max(part.start - number, number - part.stop + 1) for number in excerpt.focus),
        default=0,
    )

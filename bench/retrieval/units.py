"""Splits files into units by a spec such as ``chunk(lines=10)``.

==========================  =========================================================================================
``function``                a function, method or constructor with its body, decorators, docstring or Javadoc; inner
                            functions belong to the outer one (ICL-strategies paper; ctxbench chose the spans)
``chunk(lines=10)``         that many consecutive nonblank lines, not overlapping (CrossCodeEval's lists)
``mini-block(lines=15)``    text between blank lines, neighbours joined up to that many lines (RLCoder)
``words(count=300)``        that many consecutive words, split at white space (ReACC)
``usage``, ``summary``      an API, found by its usage examples or by its summary (InferCom paper; `bench.apis`)
==========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, cast

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import UnknownName
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast, AtMost, bind, parameters_of
from ctxbench.bench.spec import Spec
from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A searchable part of a file."""

    place: Place
    text: str
    """What a strategy sees: the function, the chunk, or the API's signature."""
    keys: tuple[str, ...] = ()
    """Texts that queries are compared with. The best one determines the score. Empty means `text`."""
    name: str = ""
    """A function's name with its classes (``Cart.add``)."""
    code: str = ""
    """Source of an API's function, for a model's summary."""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A unit, a line or an engine's place that a search found."""

    place: Place
    text: str
    score: float
    name: str = ""
    matched: str = ""
    """The key most similar to the query (a usage example, a summary); empty if the unit has no keys."""


Summarise = Callable[[Language, Sequence[Unit]], Sequence[str]]
"""Maps APIs with `code` to short sentences, which may be empty."""

Built = Callable[[str, str, float], None]
"""Receives what was built from a repository: repository, description, wall-clock seconds. Thread-safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleTarget:
    """The target file as a strategy sees it."""

    path: str
    text: str
    cut: int
    """The cursor's offset in characters. In a function sample, the text after the answer begins there."""
    context_start: int
    """Line at which the prompt begins. Text units are candidates only before that line."""
    trusted: bool
    """Whether the snapshot has the file that the sample was built from. If not, only stored text is visible."""


MOST_LINES = 5000
"""Number of lines at a file's start that are split into mini-blocks, as in RLCoder's release; the rest is ignored."""
_MOST = 100_000
Size = Annotated[int, AtLeast(1), AtMost(_MOST)]
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Cutter:
    """A kind of unit with its parameters. Splits files into units."""

    name: str
    arguments: Mapping[str, int | bool]

    @property
    def spec(self) -> str:
        """Canonical spec, with all parameters."""
        return str(Spec(self.name, self.arguments))

    @property
    def of_text(self) -> bool:
        """Whether units are stretches of text, which can end anywhere, rather than functions or APIs."""
        return self.name in _OF_TEXT

    def __call__(self, path: str, text: str, language: Language) -> tuple[Unit, ...]:
        """Return a file's units, in line order."""
        return tuple(_CUTTERS[self.name](path, text, language, **self.arguments))


def cutter(spec: str) -> Cutter:
    """Return the cutter that a spec describes.

    Raises:
        InputFault: if unit or parameter does not exist, or a value is out of range.
    """
    parsed = specs.parse(spec)
    if parsed.name not in _CUTTERS:
        raise UnknownName("unit", parsed.name, _CUTTERS, command="ctxbench strategy show --help")
    parameters = parameters_of(_CUTTERS[parsed.name], f"unit {parsed.name}")
    arguments = bind(parameters, parsed)
    values = {p.name: arguments.get(p.name, p.default) for p in parameters}
    return Cutter(parsed.name, cast("dict[str, int | bool]", values))


def units(path: str, text: str, language: Language, spec: str) -> tuple[Unit, ...]:
    """Return a file's units in line order.

    Raises:
        InputFault: if the spec is invalid.
    """
    return cutter(spec)(path, text, language)


def _functions(path: str, text: str, language: Language) -> Iterator[Unit]:
    lines = text.split("\n")
    for function in language.outline(text).functions:
        if function.has_body and not function.inside:
            start, end = function.lines
            place = Place(path=path, start=start, end=end)
            yield Unit(place=place, text="\n".join(lines[start:end]), name=function.qualified)


def _chunks(path: str, text: str, _: Language, *, lines: Size = 10) -> Iterator[Unit]:
    rows = _filled(text)
    for start in range(0, len(rows), lines):
        yield _unit(path, rows[start : start + lines])


def _mini_blocks(path: str, text: str, _: Language, *, lines: Size = 15) -> Iterator[Unit]:
    block: list[tuple[int, str]] = []
    for piece in _pieces(text, lines):
        if block and len(block) + len(piece) > lines:
            yield _unit(path, block)
            block = []
        block += piece
    if block:
        yield _unit(path, block)


def _pieces(text: str, size: int) -> Iterator[list[tuple[int, str]]]:
    piece: list[tuple[int, str]] = []
    for row, line in _filled(text, MOST_LINES):
        if piece and (row != piece[-1][0] + 1 or len(piece) == size):
            yield piece
            piece = []
        piece.append((row, line))
    if piece:
        yield piece


def _filled(text: str, most: int | None = None) -> list[tuple[int, str]]:
    return [(row, line) for row, line in enumerate(split_lines(text)[:most]) if line.strip()]


def _unit(path: str, rows: list[tuple[int, str]]) -> Unit:
    place = Place(path=path, start=rows[0][0], end=rows[-1][0] + 1)
    return Unit(place=place, text="\n".join(line for _, line in rows))


def _stretches(path: str, text: str, _: Language, *, count: Size = 300) -> Iterator[Unit]:
    matches = list(_WORD.finditer(text))
    line = at = 0
    for first in range(0, len(matches), count):
        start, end = matches[first].start(), matches[min(first + count, len(matches)) - 1].end()
        line, at = line + text.count("\n", at, start), start
        # The indentation of the first line belongs to the stretch.
        margin = text.rfind("\n", 0, start) + 1
        stretch = text[margin if not text[margin:start].strip() else start : end]
        yield Unit(place=Place(path=path, start=line, end=line + text.count("\n", start, end) + 1), text=stretch)


def _apis(
    by: Literal["usage", "summary"],
    path: str,
    text: str,
    language: Language,
    *,
    quirks: bool = False,
    constructors: bool = False,
) -> tuple[Unit, ...]:
    from ctxbench.bench.apis import units as apis  # noqa: PLC0415 - only these units need it

    return apis(path, text, language, by=by, quirks=quirks, constructors=constructors)


_CUTTERS: Mapping[str, Callable[..., Iterable[Unit]]] = {
    "function": _functions,
    "chunk": _chunks,
    "mini-block": _mini_blocks,
    "words": _stretches,
    "usage": partial(_apis, "usage"),
    "summary": partial(_apis, "summary"),
}
_OF_TEXT = ("chunk", "mini-block", "words")

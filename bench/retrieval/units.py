"""Cut files into units, as a spec such as ``chunk(lines=10)`` says. Pure: a unit depends on its file's text alone.

==========================  =========================================================================================
``function``                a function, method or constructor with decorators, docstring or Javadoc; one inside
                            another belongs to it, one without a body is none (ICL-strategies paper; the spans are ours)
``chunk(lines=10)``         that many non-blank lines in a row, not overlapping (CrossCodeEval's lists)
``mini-block(lines=15)``    pieces between blank lines, neighbours joined while they have that many lines (RLCoder)
``words(count=300)``        that many words between blanks (ReACC)
``usage``, ``summary``      an API, found by its usage examples or by its summary (InferCom paper; `bench.apis`)
==========================  =========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.types import Unit
from ctxbench.bench.spec import Spec, Value
from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines

MOST_LINES = 5000
"""A file gives mini-blocks for so many lines at most, as in RLCoder's release."""
_MOST = 100_000
_SWITCH: Mapping[Value, bool] = {"on": True, "off": False}
_OF_APIS = {"quirks": False, "constructors": False, "blank_decorator_line": True}
_DEFAULTS: Mapping[str, Mapping[str, int | bool]] = {
    "function": {},
    "chunk": {"lines": 10},
    "mini-block": {"lines": 15},
    "words": {"count": 300},
    "usage": _OF_APIS,
    "summary": _OF_APIS,
}
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Cutter:
    """A kind of unit, its parameters given."""

    name: str
    arguments: Mapping[str, int | bool]

    @property
    def spec(self) -> str:
        """The canonical spelling, every parameter named."""
        return str(Spec(self.name, self.arguments))

    @property
    def of_text(self) -> bool:
        """Whether its units are pieces of text, which may end anywhere, rather than functions."""
        return self.name in _TEXT

    def __call__(self, path: str, text: str, language: Language) -> tuple[Unit, ...]:
        """Return the units of one file, in the order of lines."""
        if self.name == "function":
            return tuple(_functions(path, text, language))
        if self.name in _TEXT:
            return tuple(_TEXT[self.name](path, text, *self.arguments.values()))
        from ctxbench.bench.apis.units import units as apis  # noqa: PLC0415 - only these units need it

        by: Literal["usage", "summary"] = "usage" if self.name == "usage" else "summary"
        return apis(path, text, language, by=by, **{key: bool(value) for key, value in self.arguments.items()})


def cutter(spec: str) -> Cutter:
    """Return the cutter that a spec spells.

    Raises:
        InputFault: if there is no such unit or parameter, or its value is out of range.
    """
    parsed = specs.parse(spec)
    defaults = _DEFAULTS.get(parsed.name)
    if defaults is None:
        raise UnknownName("unit", parsed.name, _DEFAULTS, command="ctxbench strategy show --help")
    for key in parsed.arguments:
        if key not in defaults:
            cure = f"it has {', '.join(defaults)}" if defaults else "it has none"
            raise InputFault(f"the unit {parsed.name} has no parameter {key!r}", where=spec, cure=cure)
    parameters = {
        key: _read(key, parsed.arguments.get(key, default), default, spec) for key, default in defaults.items()
    }
    return Cutter(parsed.name, parameters)


def units(path: str, text: str, language: Language, spec: str) -> tuple[Unit, ...]:
    """Return the units of one file, in the order of lines; what follows a unit that was found is the one after it.

    Raises:
        InputFault: if the spec is wrong.
    """
    return cutter(spec)(path, text, language)


def _read(key: str, value: Value, default: int | bool, where: str) -> int | bool:
    if isinstance(default, bool):
        value = _SWITCH.get(value, value)
        if isinstance(value, bool):
            return value
        raise InputFault(f"{key}={value!r} is not on or off", where=where, cure="give on or off")
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise InputFault(f"{key}={value!r} is out of range", where=where, cure=f"give a whole number from 1 to {_MOST}")
    return value


def _functions(path: str, text: str, language: Language) -> Iterator[Unit]:
    lines = text.split("\n")
    for function in language.outline(text).functions:
        if function.has_body and not function.inside:
            start, end = function.lines
            place = Place(path=path, start=start, end=end)
            yield Unit(place=place, text="\n".join(lines[start:end]), name=function.qualified)


def _chunks(path: str, text: str, size: int) -> Iterator[Unit]:
    rows = _filled(text)
    for start in range(0, len(rows), size):
        yield _unit(path, rows[start : start + size])


def _mini_blocks(path: str, text: str, size: int) -> Iterator[Unit]:
    block: list[tuple[int, str]] = []
    for piece in _pieces(text, size):
        if block and len(block) + len(piece) > size:
            yield _unit(path, block)
            block = []
        block += piece
    if block:
        yield _unit(path, block)


def _pieces(text: str, size: int) -> Iterator[list[tuple[int, str]]]:
    """Yield the pieces between blank lines; a longer one is cut, so that no unit has more than `size` lines."""
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


def _stretches(path: str, text: str, count: int) -> Iterator[Unit]:
    matches = list(_WORD.finditer(text))
    line = at = 0
    for first in range(0, len(matches), count):
        start, end = matches[first].start(), matches[min(first + count, len(matches)) - 1].end()
        line, at = line + text.count("\n", at, start), start
        # The indentation of a line that the stretch begins belongs to it.
        margin = text.rfind("\n", 0, start) + 1
        stretch = text[margin if not text[margin:start].strip() else start : end]
        yield Unit(place=Place(path=path, start=line, end=line + text.count("\n", start, end) + 1), text=stretch)


_TEXT: Mapping[str, Callable[..., Iterator[Unit]]] = {
    "chunk": _chunks,
    "mini-block": _mini_blocks,
    "words": _stretches,
}

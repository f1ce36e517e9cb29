"""Check a strategy's result part by part against the types of `strategies.api`, and name the part that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Place
from ctxbench.strategies.api import Block, BlockKind, Context, Dropped, Prompt, Snippet


class Misshapen(InputFault):
    """Raised when what a strategy returned, or a part of it, is not what it should be."""

    def __init__(self, part: str, *, cure: str) -> None:
        """Name the part, with what is wrong with it, and the cure."""
        self.part = part
        super().__init__(f"returned {part}", cure=cure)


def check_context(context: Context) -> None:
    """See that every snippet can be shown.

    Raises:
        Misshapen: if one cannot; it is named.
    """
    snippets: object = context.snippets
    if not isinstance(snippets, tuple | list):
        raise Misshapen(f"a Context of {snippets!r:.60}", cure="give Context a tuple of snippets")
    for at, snippet in enumerate(snippets):
        if not isinstance(snippet, Snippet):
            raise Misshapen(f"a Context with {snippet!r:.60}", cure="make it a Snippet")
        name = f"snippet {at} ({snippet.path!r:.200})"
        _check(name, "path", snippet.path, str)
        _check(name, "text", snippet.text, str)
        if snippet.end:
            _check_lines(name, snippet.start, snippet.end)
        _check_score(name, snippet.score, "a finite number")


def check_prompt(prompt: Prompt) -> None:
    """See that every part of a prompt is of the type that it should have.

    Raises:
        Misshapen: if one is not; it is named.
    """
    for what, kinds in (("blocks", tuple), ("dropped", tuple | list), ("flags", tuple | list)):
        if not isinstance(getattr(prompt, what), kinds):
            kind = type(getattr(prompt, what)).__name__
            raise Misshapen(f"a Prompt whose {what} are a {kind}", cure="make them a tuple")
    for at, block in enumerate(prompt.blocks):
        if not isinstance(block, Block):
            raise Misshapen(f"a Prompt with the block {block!r:.60}", cure="make it a Block")
        _check(f"block {at}", "kind", block.kind, BlockKind)
        name = named(at, block)
        _check(name, "text", block.text, str)
        _check(name, "cut", block.cut, bool)
        _check_places(name, block)
    for at, item in enumerate(prompt.dropped):
        name = f"dropped block {at}"
        if not isinstance(item, Dropped):
            raise Misshapen(f"a Prompt with the dropped block {item!r:.60}", cure="make it a Dropped")
        _check(name, "kind", item.kind, BlockKind)
        _check(name, "reason", item.reason, str)
        _check_places(name, item)
    for flag in prompt.flags:
        _check("a Prompt", "flag", flag, str)


def named(at: int, block: Block) -> str:
    """Return what a message calls a block: its number from 0, its kind, and the places that it names."""
    return f"block {at} ({block.kind}{''.join(_spans(block))})"


def _spans(block: Block) -> Iterator[str]:
    for place in block.places[:3] if isinstance(block.places, tuple | list) else ():
        if isinstance(place, Place):
            yield f", {place.path} lines {place.start} to {place.end}"


def _check_places(name: str, block: Block | Dropped) -> None:
    if not isinstance(block.places, tuple | list) or not all(isinstance(place, Place) for place in block.places):
        raise Misshapen(f"{name} with the places {block.places!r:.60}", cure="make them a tuple of Place")
    for place in block.places:
        _check(name, "path", place.path, str)
        _check_lines(name, place.start, place.end)
    if block.score is not None:
        _check_score(name, block.score, "a finite number, or None")


def _check(name: str, part: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise Misshapen(f"{name} with the {part} {value!r:.60}", cure=f"make it a {kind.__name__}")


def _check_lines(name: str, start: object, end: object) -> None:
    for line in (start, end):
        if type(line) is not int:
            raise Misshapen(f"{name} with the line {line!r:.60}", cure="make it an int")
        if line < 0:
            raise Misshapen(f"{name} with the line {line}", cure="count lines from 0")
    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise Misshapen(f"{name}, which ends before it starts", cure="give the line after the last as its end")


def _check_score(name: str, score: object, expected: str) -> None:
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise Misshapen(f"{name} with the score {score!r:.60}", cure=f"make it {expected}, of Python's own types")
    if not math.isfinite(score):
        raise Misshapen(f"{name} with the score {score!r}", cure=f"make it {expected}")

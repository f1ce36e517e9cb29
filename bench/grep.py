"""Finds lines that match a simple pattern, in linear time. A strategy's regular expression could take hours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Place
from ctxbench.bench.windows import split_lines

_OR = re.compile(r"(?<!\\)\|")
_ANYTHING = re.compile(r"(?:\.|\\[swSW])[*+]")
_EDGE = re.compile(r"\\[bB]|^\^|(?<!\\)\$$")
_ESCAPED = re.compile(r"\\(.)")

Alternative = Sequence[str]
"""Texts that a line contains, in this order."""


def read_pattern(pattern: str) -> list[Alternative]:
    r"""Parse a pattern into alternatives. A line must match one of them.

    Args:
        pattern: a text. ``|`` separates alternatives. ``.*``, ``\w+`` and similar parts match any text. Other
            backslashes escape a character. Anchors are ignored.

    Raises:
        InputFault: if an alternative contains no text.
    """
    parts = [_ANYTHING.split(_EDGE.sub("", part)) for part in _OR.split(pattern)]
    alternatives: list[Alternative] = [
        [text for piece in part if (text := _ESCAPED.sub(r"\1", piece))] for part in parts
    ]
    if not all(alternatives):
        raise InputFault(
            f"the pattern {pattern!r:.60} has an alternative that contains no text",
            cure="write the text to search for, such as 'def load|class Load'",
        )
    return alternatives


def matching_lines(alternatives: Sequence[Alternative], texts: Mapping[str, str]) -> Iterator[Hit]:
    """Yield matching lines, file by file, with the score 1. `alternatives` come from `read_pattern`."""
    for path, text in texts.items():
        likely = [pieces for pieces in alternatives if all(piece in text for piece in pieces)]
        for number, line in enumerate(split_lines(text)) if likely else ():
            if any(_matches(pieces, line) for pieces in likely):
                yield Hit(place=Place(path=path, start=number, end=number + 1), text=line, score=1.0)


def _matches(pieces: Alternative, line: str) -> bool:
    at = 0
    for piece in pieces:
        at = line.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True

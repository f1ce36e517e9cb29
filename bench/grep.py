"""Lines that contain a text, found in time that grows with the files alone, whatever the text. Pure.

A strategy chooses the text and the trusted side searches, so it is no regular expression: those can be made to take
hours. What people and models write most of all is understood: ``def load|class Load``, ``load.*path``.
"""

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
"""Texts that a line contains one behind the other."""


def read_pattern(pattern: str) -> list[Alternative]:
    """Return what a pattern looks for: one of these.

    Args:
        pattern: a text; ``|`` stands between two, ``.*`` for anything, as do repeated classes of signs; a backslash
            takes a sign for itself, and anchors say nothing.

    Raises:
        InputFault: if there is no text in it.
    """
    parts = [_ANYTHING.split(_EDGE.sub("", part)) for part in _OR.split(pattern)]
    alternatives: list[Alternative] = [
        [text for piece in part if (text := _ESCAPED.sub(r"\1", piece))] for part in parts
    ]
    if not all(alternatives):
        raise InputFault(f"{pattern!r:.60} looks for no text", cure="give a text, such as 'def load|class Load'")
    return alternatives


def matching_lines(alternatives: Sequence[Alternative], texts: Mapping[str, str]) -> Iterator[Hit]:
    """Yield the lines that match, file by file; the score of all is 1.

    Args:
        alternatives: as of `read_pattern`.
        texts: path -> text of the file.
    """
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

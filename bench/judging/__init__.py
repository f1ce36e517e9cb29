"""Judge a completion of a function sample by the repository's own tests in a sandbox.

This module inserts a completion into its file for every language: lines, line ends, indentation. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ctxbench.bench.errors import InputFault

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def whole_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends, which are ``\n``, ``\r\n`` or ``\r``."""
    return _LINES.findall(text)


def replace_lines(
    source: bytes, encoding: str, span: tuple[int, int], replacement: Callable[[str], Sequence[str]], cure: str
) -> bytes:
    """Return a file with some lines replaced; the new lines get the most frequent line end of the file.

    Args:
        source: the file.
        encoding: of the file.
        span: lines ``[start, end)``, 0-based, as split by `whole_lines`.
        replacement: takes the indentation of the first of these lines and returns the new lines without their ends.
        cure: the cure if the encoding cannot represent them.

    Raises:
        InputFault: if the file has no such lines, or its encoding cannot represent the new ones.
    """
    lines = whole_lines(source.decode(encoding, "surrogateescape"))
    start, end = span
    if not 0 <= start < end <= len(lines):
        raise InputFault(f"the file has no lines {start} to {end}", cure="build the sample set again")
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    newline = max(("\n", "\r\n", "\r"), key=ends.count)
    try:
        # Undecodable bytes of the file are written back unchanged; the completion may not contain any.
        changed = (newline.join(replacement(indentation(lines[start]))) + ends[end - 1]).encode(encoding)
    except UnicodeEncodeError as error:
        what = f"{error.object[error.start]!r} cannot be written in the file's encoding {encoding}"
        raise InputFault(what, cure=cure) from None
    before, after = ("".join(part).encode(encoding, "surrogateescape") for part in (lines[:start], lines[end:]))
    return b"".join((before, changed, after))


def indentation(line: str) -> str:
    """Return the leading spaces and tabs of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def unindented(line: str, away: str) -> str:
    """Return a line without the part of an indentation that it begins with."""
    common = 0
    while common < len(away) and line[common : common + 1] == away[common]:
        common += 1
    return line[common:]

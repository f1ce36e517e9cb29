"""A completion of a function sample, judged by the repository's own tests in a sandbox.

Here is what every language does to put it into its file: lines, their ends, their indentation. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ctxbench.bench.errors import InputFault

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def whole_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends: ``\r\n`` and ``\r`` end lines as ``\n`` does, nothing else does."""
    return _LINES.findall(text)


def replace_lines(
    source: bytes, encoding: str, span: tuple[int, int], replacement: Callable[[str], Sequence[str]], cure: str
) -> bytes:
    """Return a file with some lines replaced by others, which get the line end that most lines of the file have.

    Args:
        source: the file.
        encoding: of the file.
        span: lines ``[start, end)``, 0-based, as `whole_lines` tells them.
        replacement: given the indentation of the first of these lines, returns the new ones without their ends.
        cure: what to do if the encoding cannot hold them.

    Raises:
        InputFault: if the file has no such lines, or its encoding cannot hold the new ones.
    """
    lines = whole_lines(source.decode(encoding, "surrogateescape"))
    start, end = span
    if not 0 <= start < end <= len(lines):
        raise InputFault(f"the file has no lines {start} to {end}", cure="build the sample set again")
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    newline = max(("\n", "\r\n", "\r"), key=ends.count)
    try:
        # Bytes that were no text when read become the same bytes again; the completion may bring none.
        changed = (newline.join(replacement(indentation(lines[start]))) + ends[end - 1]).encode(encoding)
    except UnicodeEncodeError as error:
        what = f"{error.object[error.start]!r} cannot be written in the file's encoding {encoding}"
        raise InputFault(what, cure=cure) from None
    before, after = ("".join(part).encode(encoding, "surrogateescape") for part in (lines[:start], lines[end:]))
    return b"".join((before, changed, after))


def indentation(line: str) -> str:
    """Return the spaces and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def unindented(line: str, away: str) -> str:
    """Return a line without as much of an indentation as it begins with."""
    common = 0
    while common < len(away) and line[common : common + 1] == away[common]:
        common += 1
    return line[common:]

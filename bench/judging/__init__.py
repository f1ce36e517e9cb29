"""Judges completions of function samples with the repository's own tests, in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ctxbench.bench.errors import InputFault

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def whole_lines(text: str) -> list[str]:
    r"""Split a text into lines that keep their line ends (``\n``, ``\r\n`` or ``\r``)."""
    return _LINES.findall(text)


def replace_lines(
    source: bytes, encoding: str, span: tuple[int, int], replacement: Callable[[str], Sequence[str]], cure: str
) -> bytes:
    """Replace lines of a file. New lines get the file's most frequent line end, but the last keeps the old line end.

    Args:
        span: 0-based lines ``[start, end)``, as `whole_lines` splits them.
        replacement: takes the first line's indentation, and returns the new lines without line ends.
        cure: cure to show with an encoding error.

    Raises:
        InputFault: if the file lacks these lines, or its encoding cannot represent the new text.
    """
    lines = whole_lines(source.decode(encoding, "surrogateescape"))
    start, end = span
    if not 0 <= start < end <= len(lines):
        raise InputFault(f"the file has no lines {start} to {end}", cure="build the sample set again")
    ends = [line[len(line.rstrip("\r\n")) :] for line in lines]
    newline = max(("\n", "\r\n", "\r"), key=ends.count)
    try:
        # Undecodable bytes of the file are written back unchanged. The completion must not contain any.
        changed = (newline.join(replacement(indentation(lines[start]))) + ends[end - 1]).encode(encoding)
    except UnicodeEncodeError as error:
        what = f"{error.object[error.start]!r} cannot be written in the file's encoding {encoding}"
        raise InputFault(what, cure=cure) from None
    before, after = ("".join(part).encode(encoding, "surrogateescape") for part in (lines[:start], lines[end:]))
    return b"".join((before, changed, after))


def indentation(line: str) -> str:
    """Return a line's leading spaces and tabs."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def unindented(line: str, away: str) -> str:
    """Remove the indentation `away` from a line, as far as the line begins with it."""
    common = 0
    while common < len(away) and line[common : common + 1] == away[common]:
        common += 1
    return line[common:]

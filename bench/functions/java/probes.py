"""Puts a probe at the beginning of every block of a method: which test runs which block. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ctxbench.bench.types import Cursor

_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def probed(source: bytes, encoding: str, places: Mapping[int, Cursor]) -> bytes:
    """Return a Java file with calls of ``ctxbench.Probe.hit``; its lines keep their numbers.

    Args:
        source: the file.
        encoding: of the file.
        places: number of a probe -> behind which brace it goes.
    """
    lines = _LINES.findall(source.decode(encoding, "surrogateescape"))
    for number, cursor in sorted(places.items(), key=lambda item: (item[1].line, item[1].column), reverse=True):
        line = lines[cursor.line]
        lines[cursor.line] = f"{line[: cursor.column]}ctxbench.Probe.hit({number});{line[cursor.column :]}"
    return "".join(lines).encode(encoding, "surrogateescape")


def numbered(blocks: Iterable[tuple[str, Cursor]]) -> dict[str, dict[int, Cursor]]:
    """Return path -> number -> place, numbers counted through all files."""
    numbers: dict[str, dict[int, Cursor]] = {}
    for number, (path, cursor) in enumerate(blocks):
        numbers.setdefault(path, {})[number] = cursor
    return numbers

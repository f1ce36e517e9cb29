"""The part of the target file that a view shows: up to the cursor, or the whole without a function's body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.types import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleTarget:
    """The target file as a view shows it."""

    path: str
    text: str
    cut: int
    """The character at which the cursor stands; what a function sample shows behind the answer begins there."""
    context_start: int
    """A stretch of text is a candidate of retrieval only if it ends at or before this line."""
    trusted: bool
    """Whether the snapshot's file is the one that the sample was made of. If it is not (another version, or none),
    its lines cannot be told apart at the cursor, so only what the sample stores is shown and no window of it is."""


def visible_target(whole: str | None, query: Query, masked: Sequence[tuple[int, int]] = ()) -> VisibleTarget:
    """Return what a view shows of a query's target file.

    Args:
        whole: the file in the snapshot; None if there is none.
        query: the sample's query.
        masked: line spans ``[start, end)`` of the file that are blanked.
    """
    text, trusted = _text(whole, query, masked)
    return VisibleTarget(
        path=query.path,
        text=text,
        cut=len(text) - len(query.suffix or ""),
        context_start=query.context_start if trusted else 0,
        trusted=trusted,
    )


def _text(whole: str | None, query: Query, masked: Sequence[tuple[int, int]]) -> tuple[str, bool]:
    stored = query.prefix
    if query.suffix:
        # A cursor behind an indentation leaves it dangling once the body is gone.
        stored = query.prefix.rstrip(" \t") + query.suffix
    if whole is None:
        return stored, False
    lines = whole.split("\n")[: query.cursor.line + 1]
    for start, end in masked:
        for line in range(max(start, 0), min(end, len(lines))):
            lines[line] = ""
    if len(lines) != query.cursor.line + 1 or len(lines[-1]) < query.cursor.column:
        return stored, False
    lines[-1] = lines[-1][: query.cursor.column]
    text = "\n".join(lines)
    # An imported sample may store only the last part of the file.
    if text != query.prefix and not (query.prefix and text.endswith(query.prefix)):
        return stored, False
    if query.suffix and not whole.endswith(query.suffix):
        return stored, False
    return (text.rstrip(" \t") + query.suffix if query.suffix else text), True

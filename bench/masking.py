"""Masking: blanked imports, hidden files, and the target file without its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ctxbench.bench.retrieval.units import VisibleTarget
from ctxbench.bench.types import Query, Sample

if TYPE_CHECKING:
    from ctxbench.bench.repositories.snapshot import Snapshot


def is_hidden(path: str, hidden: Sequence[str]) -> bool:
    """Return whether a path is a hidden file or in a hidden folder (which ends with ``/``)."""
    return any(path.startswith(place) if place.endswith("/") else path == place for place in hidden)


def blanked(lines: Sequence[str], masked: Sequence[tuple[int, int]], first: int = 0) -> list[str]:
    """Return the lines; those in masked spans ``[start, end)`` are empty. `first` is the number of the first line."""
    return [
        "" if any(start <= number < end for start, end in masked) else text for number, text in enumerate(lines, first)
    ]


def visible_target(whole: str | None, query: Query, masked: Sequence[tuple[int, int]] = ()) -> VisibleTarget:
    """Return the part of a query's target file that strategies may see.

    Args:
        whole: the file's text in the snapshot; None if the file is missing.
        masked: line spans ``[start, end)`` to blank.
    """
    text, trusted = _visible_text(whole, query, masked)
    return VisibleTarget(
        path=query.path,
        text=text,
        cut=len(text) - len(query.suffix or ""),
        context_start=query.context_start if trusted else 0,
        trusted=trusted,
    )


def _visible_text(whole: str | None, query: Query, masked: Sequence[tuple[int, int]]) -> tuple[str, bool]:
    stored = query.prefix
    if query.suffix:
        # Without the body, no code would follow the indentation before the cursor.
        stored = query.prefix.rstrip(" \t") + query.suffix
    if whole is None:
        return stored, False
    lines = blanked(whole.split("\n")[: query.cursor.line + 1], masked)
    if len(lines) != query.cursor.line + 1 or len(lines[-1]) < query.cursor.column:
        return stored, False
    lines[-1] = lines[-1][: query.cursor.column]
    text = "\n".join(lines)
    # An imported sample may store only the end of the text before the cursor.
    if text != query.prefix and not (query.prefix and text.endswith(query.prefix)):
        return stored, False
    if query.suffix and not whole.endswith(query.suffix):
        return stored, False
    return (text.rstrip(" \t") + query.suffix if query.suffix else text), True


def unmasked(sample: Sample, snapshot: Snapshot) -> Sample:
    """Return a sample with its masked lines restored; unchanged if it has none or the snapshot's file does not fit."""
    whole = snapshot.texts.get(sample.path)
    if whole is None or not sample.masked or not _visible_text(whole, sample.query(), sample.masked)[1]:
        return sample
    lines = whole.split("\n")[sample.first_line : sample.cursor.line + 1]
    lines[-1] = lines[-1][: sample.cursor.column]
    return replace(sample, prefix="\n".join(lines), masked=())

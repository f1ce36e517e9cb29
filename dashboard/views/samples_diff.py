"""The difference of a completion from the reference: by words for lines, by lines for functions. Pure.

The only markup of the page is made here, of nothing but our own tags: every piece of stored text goes through
`html.escape`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxbench.bench.visible import blanks, visible

LIMIT = 20_000
"""Characters of each text that are compared."""
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_MANY = 6_000
"""Words beyond which a comparison by words would take memory with their square."""
_BESIDE = 2
"""Equal lines that are shown on either side of a difference, so that it comes into sight."""
_SIGNS = {"same": " ", "missing": "-", "added": "+"}
_MARKS = {
    "same": "{}",
    "missing": '<del style="background:rgba(214,79,79,.22);text-decoration:underline wavy 1px">{}</del>',
    "added": '<ins style="background:rgba(46,134,193,.22);text-decoration:none;border-bottom:2px solid">{}</ins>',
}
"""Colours that the colour-blind tell apart, and a shape beside them."""
_LINE = (
    '<div style="display:flex;gap:.75rem;margin:.15rem 0">'
    '<span style="flex:0 0 5.5rem;opacity:.7;font-size:.8rem">{}</span>'
    '<code style="flex:1;white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate">{}</code></div>'
)


@dataclass(frozen=True, slots=True)
class DiffPart:
    """A stretch of a text that the other has too, or has not."""

    kind: Literal["same", "missing", "added"]
    """``missing``: only the reference has it; ``added``: only the completion."""
    text: str


def equal(reference: str, completion: str) -> bool:
    """Return whether they are the same text but for blanks at their ends, as exact match counts it."""
    return reference.strip() == completion.strip()


def by_words(reference: str, completion: str) -> tuple[DiffPart, ...]:
    """Return the parts of both texts in order; those of one kind with ``same`` give back its text."""
    reference_tokens, completion_tokens = (_TOKEN.findall(text[:LIMIT]) for text in (reference, completion))
    if len(reference_tokens) > _MANY or len(completion_tokens) > _MANY:
        reference_tokens, completion_tokens = (
            text[:LIMIT].splitlines(keepends=True) for text in (reference, completion)
        )
    return tuple(_parts(reference_tokens, completion_tokens))


def by_lines(reference: str, completion: str) -> str:
    """Return both as plain text: ``-`` before lines of the reference, ``+`` before the completion's, equal ones folded.

    A line ``@@ 9 equal lines @@`` stands for those far from any difference.
    """
    reference_lines, completion_lines = (visible(text[:LIMIT]).split("\n") for text in (reference, completion))
    parts = list(_parts([f"{line}\n" for line in reference_lines], [f"{line}\n" for line in completion_lines]))
    rows: list[str] = []
    for index, part in enumerate(parts):
        lines = [f"{_SIGNS[part.kind]} {line}" for line in part.text[:-1].split("\n")]
        first = _BESIDE if index else 0
        last = _BESIDE if index + 1 < len(parts) else 0
        folded = len(lines) - first - last
        if part.kind == "same" and folded > 1:
            lines = [*lines[:first], f"@@ {folded} equal lines @@", *lines[len(lines) - last :]]
        rows += lines
    return "".join(f"{row}\n" for row in rows)


def markup(reference: str, completion: str) -> str:
    """Return both texts as HTML, one below the other, what only one of them has marked and its blanks visible."""
    parts = by_words(reference, completion)
    rows = (("reference", "missing"), ("completion", "added"))
    return "".join(_LINE.format(name, _row(parts, kind)) for name, kind in rows)


def _row(parts: Sequence[DiffPart], kind: str) -> str:
    pieces = (
        _MARKS[part.kind].format(html.escape(visible(part.text) if part.kind == "same" else blanks(visible(part.text))))
        for part in parts
        if part.kind in ("same", kind)
    )
    return "".join(pieces) or "&nbsp;"


def _parts(reference_tokens: Sequence[str], completion_tokens: Sequence[str]) -> Iterator[DiffPart]:
    """Yield what is the same and what is not, of each stretch that differs the reference's part first."""
    from rapidfuzz.distance import Indel  # noqa: PLC0415 - only where a sample is opened

    missing, added = "", ""
    for step in Indel.opcodes(reference_tokens, completion_tokens):
        if step.tag != "equal":
            missing += "".join(reference_tokens[step.src_start : step.src_end])
            added += "".join(completion_tokens[step.dest_start : step.dest_end])
            continue
        yield from _changed(missing, added)
        missing, added = "", ""
        yield DiffPart("same", "".join(reference_tokens[step.src_start : step.src_end]))
    yield from _changed(missing, added)


def _changed(missing: str, added: str) -> Iterator[DiffPart]:
    if missing:
        yield DiffPart("missing", missing)
    if added:
        yield DiffPart("added", added)

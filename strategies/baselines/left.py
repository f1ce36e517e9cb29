"""The left context: the target file up to the cursor, cut at its beginning to a number of tokens. Pure."""

from __future__ import annotations

from ctxbench.bench.code_tokens import pieces
from ctxbench.bench.types import Place, Query
from ctxbench.strategies.api import Block, BlockKind

TRIMMED = "overflow_trimmed"


def last_tokens(text: str, most: int) -> str:
    """Return the last `most` tokens of a text; a cut may fall inside a line."""
    return "".join(pieces(text)[-most:]) if most > 0 else ""


def left_block(query: Query, most: int, written: str = "") -> Block:
    """Return the left context as the last block of a prompt.

    Args:
        query: the sample's query.
        most: tokens at most.
        written: what a model has written after the cursor so far.
    """
    whole = query.prefix + written
    text = last_tokens(whole, most)
    shown_prefix = text.removesuffix(written)
    # A blank line at the cursor is where the body will stand, and no line of the file.
    end = query.cursor.line + bool(query.prefix.rpartition("\n")[2].strip())
    start = query.cursor.line - shown_prefix.count("\n")
    places = (Place(path=query.path, start=max(0, start), end=end),) if start < end else ()
    return Block(kind=BlockKind.INFILE, text=text, places=places, cut=text != whole)


def left_flags(query: Query, block: Block) -> tuple[str, ...]:
    """Return the remarks that the left context gives reason for."""
    flags = [] if query.prefix.strip() else ["empty_current_file"]
    return tuple([*flags, TRIMMED] if block.cut else flags)

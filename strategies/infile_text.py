"""In-file context: the target file up to the cursor, cut at the front to a token budget."""

from __future__ import annotations

from ctxbench.bench.code_tokens import count, pieces
from ctxbench.bench.types import Place, Query
from ctxbench.strategies.api import Block, BlockKind, Prompt

WHOLE = 4096
"""Budget of a prompt that holds nothing else, in tokens."""
HALF = 2048
"""Budget beside other context."""


def build_infile(text: str, limit: int) -> str:
    """Return the last lines of `text` whose tokens, newlines not counted, stay within `limit`.

    The walk stops at the first line that goes over. If that leaves no code at all, the last `limit`
    tokens of that line are kept, where the papers' release returns an empty prompt.
    """
    lines = text.split("\n")
    start, used = len(lines), 0
    while start:
        used += count(lines[start - 1])
        if used > limit:
            break
        start -= 1
    tail = lines[start:]
    if start and not any(tail):
        last = pieces(lines[start - 1])[-limit:] if limit > 0 else []
        tail = ["".join(last), *tail]
    return "\n".join(tail)


def infile_block(query: Query, limit: int) -> Block:
    """Return the in-file text of a query as the last block of a prompt."""
    text = build_infile(query.prefix, limit)
    end = query.cursor.line + 1
    start = max(0, end - text.count("\n") - 1)
    return Block(
        kind=BlockKind.INFILE,
        text=text,
        places=(Place(path=query.path, start=start, end=end),),
        cut=len(text) < len(query.prefix),
    )


def infile_flags(query: Query, block: Block) -> tuple[str, ...]:
    """Return the remarks that the in-file text gives reason for."""
    flags = ["empty_current_file"] if not query.prefix.strip() else []
    if block.cut and not query.prefix.endswith("\n" + block.text):
        flags.append("overflow_trimmed")
    return tuple(flags)


def infile_prompt(query: Query, limit: int) -> Prompt:
    """Return the prompt that shows the target file up to the cursor, at most `limit` tokens, and nothing else."""
    block = infile_block(query, limit)
    return Prompt(blocks=(block,), flags=infile_flags(query, block))

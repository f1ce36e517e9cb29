"""Strategies that show benchmarks' stored contexts in their authors' prompts, without any search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from ctxbench.bench.errors import InputFault
from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query, StoredContext, StoredSnippet
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt, text_block
from ctxbench.strategies.layout import count, infile_flags, left_block, tokenize
from ctxbench.strategies.registry import strategy

CHUNKS, TEXT = "chunks", "text"
"""CrossCodeEval's prompt layouts: that of its evaluation program, and that of its data files."""
MAX_CONTEXT, MAX_PROMPT = 512, 1998
"""The evaluation program's token limits: cross-file code, and the prompt (2048 minus 50 new tokens)."""
REPOBENCH = 15_800
NOTHING_STORED = "no_stored_context"
"""Flag: the sample stores no such context, so the prompt has only the file."""
GRAPHS = ("definition", "reference")
"""Names of RepoFuse's contexts. They are shown only on request."""
CROPPED, IMPORTS = "cropped_code", "import_statement"
"""Names of stored contexts that contain RepoBench's own excerpts of the target file."""
_HEADER = "Here are some relevant code fragments from other files of the repo:\n\n"
_GAP = re.compile(r"\n\n(\n{2,})")
"""Four or more newlines. RepoBench's program shortens them to two."""


@strategy("lc.crosscodeeval")
def crosscodeeval(
    query: Query,
    repo: Repository,  # noqa: ARG001 - the benchmark's authors did the retrieval
    *,
    context: str = "",
    layout: Literal["chunks", "text"] = "chunks",
    max_context: Annotated[int, AtLeast(0)] = MAX_CONTEXT,
    max_prompt: Annotated[int, AtLeast(1)] = MAX_PROMPT,
) -> Prompt:
    """Show the cross-file code that CrossCodeEval's authors stored, as their programs do.

    Args:
        context: name of the stored context, e.g. ``rg1_bm25``; by default the first that was retrieved.
        layout: ``chunks`` shows whole snippets while they fit, then the file, as their evaluation program does.
            ``text`` shows the stored text cut at its end, then the file in the tokens not reserved for it. Their
            programs for vLLM and OpenAI do so, with max_context=12800 and max_prompt=16234.
        max_context: tokens for cross-file code.
        max_prompt: tokens for the prompt.
    """
    return crosscodeeval_prompt(query, select_context(query.stored, context), layout, max_context, max_prompt)


@strategy("lc.repobench")
def repobench(
    query: Query,
    repo: Repository,  # noqa: ARG001 - the benchmark's authors did the retrieval
    *,
    context: str = "",
    max_prompt: Annotated[int, AtLeast(1)] = REPOBENCH,
) -> Prompt:
    """Show the snippets that RepoBench stores, in their order, then the file's imports and its last lines.

    Args:
        context: name of the stored context; by default the first with snippets.
        max_prompt: tokens for the prompt; snippets are shortened first, by whole lines from their end.
    """
    stored_context = select_context([stored for stored in query.stored if stored.snippets], context)
    mark = query.language.comment
    blocks = [text_block(f"{mark} Repo Name: {query.repo}\n")]
    for snippet in stored_context.snippets if stored_context else ():
        blocks.append(text_block(f"{mark} Path: {snippet.path}\n"))
        blocks.append(Block(kind=BlockKind.SIMILAR, text=f"{snippet.text}\n\n", score=snippet.score))
    title = text_block(f"{mark} Path: {query.path}\n")
    parts = {stored.name: stored.text for stored in query.stored}
    if CROPPED in parts:
        text = f"{parts.get(IMPORTS, '')}\n{parts[CROPPED].rstrip()}\n"
        file_block = Block(kind=BlockKind.INFILE, text=text)
    else:
        file_block = left_block(query, max(1, max_prompt - count(title.text)))
    over = count("".join(block.text for block in blocks)) + count(title.text + file_block.text) - max_prompt
    shortened, dropped = _shortened(blocks, over)
    # Text that ends at the cursor stays unchanged, so that the model continues there.
    closed = (
        _closed_up([*shortened, title, file_block])
        if CROPPED in parts
        else [*_closed_up([*shortened, title]), file_block]
    )
    return Prompt(blocks=tuple(closed), dropped=dropped, flags=_flags(query, file_block, stored_context))


def select_context(stored: Sequence[StoredContext], name: str) -> StoredContext | None:
    """Return the stored context `name`; without a name, the first that is not a dependency graph."""
    matches = (context for context in stored if (context.name == name if name else context.name not in GRAPHS))
    return next(matches, None)


def crosscodeeval_prompt(
    query: Query,
    context: StoredContext | None,
    layout: str = CHUNKS,
    max_context: int = MAX_CONTEXT,
    max_prompt: int = MAX_PROMPT,
) -> Prompt:
    """Return CrossCodeEval's prompt with one stored context. `crosscodeeval` explains the arguments.

    Raises:
        InputFault: if the layout reserves the whole prompt for cross-file code.
    """
    if layout == TEXT and max_context >= max_prompt:
        what = f"max_context={max_context} leaves no tokens of max_prompt={max_prompt} for the file"
        raise InputFault(what, where="lc.crosscodeeval", cure="set a larger max_prompt")
    mark = query.language.comment
    blocks: list[Block] = []
    dropped: list[Dropped] = []
    tokens_left = max_prompt
    if context is not None and layout == CHUNKS:
        blocks, dropped = _whole_chunks(context.snippets, mark, max_context)
        tokens_left -= count("".join(block.text for block in blocks))
    elif context is not None:
        text = context.text or rendered(context.snippets, mark)
        cut_text = "".join(tokenize(text)[:max_context])
        blocks = [Block(kind=BlockKind.SIMILAR, text=cut_text, cut=len(cut_text) < len(text))] if cut_text else []
        blocks.append(text_block("\n"))
        tokens_left -= max_context
    file_block = left_block(query, max(1, tokens_left))
    return Prompt(blocks=(*blocks, file_block), dropped=tuple(dropped), flags=_flags(query, file_block, context))


def rendered(snippets: Sequence[StoredSnippet], mark: str) -> str:
    """Return snippets in the format of CrossCodeEval's data files, every line commented out with `mark`."""
    parts = [f"{mark} {_HEADER}"] if snippets else []
    for snippet in snippets:
        code = "\n".join(f"{mark} {line}" for line in snippet.text.strip("\n").splitlines())
        parts.append(f"{mark} the below code fragment can be found in:\n{mark} {snippet.path}\n{code}\n\n")
    return "".join(parts)


def _whole_chunks(snippets: Sequence[StoredSnippet], mark: str, budget: int) -> tuple[list[Block], list[Dropped]]:
    header = text_block(f"{mark} {_HEADER}")
    blocks, used = [header], count(header.text)
    codes = [_commented(snippet, mark) for snippet in snippets]
    for number, (snippet, code) in enumerate(zip(snippets, codes, strict=True)):
        name = f"{mark} the below code fragment is found in {snippet.path}\n"
        used += count(name + code.text)
        if used > budget:
            return (blocks if number else []), [Dropped.of(unfit) for unfit in codes[number:]]
        blocks += [text_block(name), code]
    return (blocks if snippets else []), []


def _commented(snippet: StoredSnippet, mark: str) -> Block:
    code = "\n".join(f"{mark} {line}" for line in snippet.text.split("\n") if line) + "\n\n"
    return Block(kind=BlockKind.SIMILAR, text=code, score=snippet.score)


def _shortened(blocks: list[Block], over: int) -> tuple[list[Block], tuple[Dropped, ...]]:
    """Remove `over` tokens of last lines from the blocks, and add two newlines.

    As in RepoBench's program, newlines do not count, and reaching the count exactly drops one more line.
    """
    if over <= 0:
        return blocks, ()
    lines = "".join(block.text for block in blocks).split("\n")
    at = len(lines)
    while at and over >= 0:
        at -= 1
        over -= count(lines[at])
    characters_left = len("\n".join(lines[:at]))
    shortened: list[Block] = []
    dropped: list[Dropped] = []
    for block in blocks:
        text = block.text[: max(0, characters_left)]
        characters_left -= len(block.text)
        if text:
            shortened.append(replace(block, text=text, cut=len(text) < len(block.text)))
        elif block.kind is BlockKind.SIMILAR:
            dropped.append(Dropped.of(block))
    return [*shortened, text_block("\n\n")], tuple(dropped)


def _closed_up(blocks: list[Block]) -> list[Block]:
    whole = "".join(block.text for block in blocks)
    gone = {at for gap in _GAP.finditer(whole) for at in range(*gap.span(1))}
    closed, at = [], 0
    for block in blocks:
        end = at + len(block.text)
        text = "".join(whole[position] for position in range(at, end) if position not in gone)
        closed.append(replace(block, text=text))
        at = end
    return closed


def _flags(query: Query, file_block: Block, context: StoredContext | None) -> tuple[str, ...]:
    return (*infile_flags(query, file_block), *((NOTHING_STORED,) if context is None else ()))

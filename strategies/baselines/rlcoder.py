"""RLCoder: small blocks by BM25 and an encoder, with a block that says when to stop (ICL-strategies paper, Table 3)."""

from __future__ import annotations

from typing import Annotated

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.baselines.mini_blocks import (
    CROSS_FILE,
    FIXED,
    MINI,
    WHOLE,
    BlockSearch,
    prompt,
    question,
    retrieve,
)
from ctxbench.strategies.registry import strategy

DRAFT = 64
"""New tokens of one call in the release."""
ROUNDS = 4
"""Calls of its progressive generation."""


@strategy("base.rlcoder", kinds=(Kind.FUNCTION,))
def rlcoder(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    encoder: str = "minilm",
    candidates: Annotated[int, AtLeast(1)] = 100,
    blocks: Annotated[int, AtLeast(1)] = 10,
    stop_block: bool = True,
    fixed_blocks: bool = False,
    budget: Annotated[int, AtLeast(0)] = CROSS_FILE,
    whole: Annotated[int, AtLeast(64)] = WHOLE,
    progressive: bool = False,
) -> Prompt:
    """Show small blocks of other files like the code before the cursor, up to the block that says to stop.

    The paper ran the trained retriever; give its weights as ``encoder=unixcoder(path=…)``. An encoder that was not
    trained for it gives the stop block no meaning of its own.

    With `progressive` the model drafts 64 tokens three times, each draft continuing the ones before it, and blocks
    are retrieved anew for the code so far. The release joins four such pieces; here the last call, which the
    harness makes, writes the whole function with the blocks that the drafts led to.

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model; asked only with `progressive`.
        encoder: what ranks the candidates.
        candidates: how many blocks BM25 keeps (release: 100 for the trained retriever, 50 for the plain one).
        blocks: how many ranked ones are considered, the stop block counted (release: 10 and 5).
        stop_block: whether there is a stop block (release: with the trained retriever only).
        fixed_blocks: take blocks of 12 lines instead of pieces between blank lines.
        budget: tokens for the blocks.
        whole: tokens for the prompt.
        progressive: draft and retrieve in turns.
    """
    choices = BlockSearch(
        encoder=encoder,
        unit=FIXED if fixed_blocks else MINI,
        candidates=candidates,
        blocks=blocks,
        stop=stop_block,
    )
    written = ""
    retrieved = retrieve(repo, question(query.prefix), choices)
    for _ in range(ROUNDS - 1 if progressive else 0):
        draft_prompt = prompt(query, retrieved, budget=budget, whole=whole, written=written)
        draft = generate(draft_prompt, role="draft", max_tokens=DRAFT)
        if not draft.strip():
            break
        written += draft
        retrieved = retrieve(repo, question(query.prefix + written), choices)
    return prompt(query, retrieved, budget=budget, whole=whole)

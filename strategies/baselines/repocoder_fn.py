"""RepoCoder on functions: retrieve, draft, retrieve with the draft (ICL-strategies paper, Tables 3 and 4)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.baselines.mini_blocks import CROSS_FILE, WHOLE, BlockSearch, prompt, question, retrieve
from ctxbench.strategies.registry import strategy
from ctxbench.strategies.repocoder import repocoder

EMPTY_DRAFT = "empty_draft"


@strategy("base.repocoder_fn", kinds=(Kind.FUNCTION,))
def repocoder_fn(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    engine: Literal["blocks", "windows"] = "blocks",
    iterations: Annotated[int, AtLeast(1)] = 2,
    encoder: str = "minilm",
    candidates: Annotated[int, AtLeast(1)] = 50,
    blocks: Annotated[int, AtLeast(1)] = 5,
    budget: Annotated[int, AtLeast(0)] = CROSS_FILE,
    whole: Annotated[int, AtLeast(64)] = WHOLE,
    draft_tokens: Annotated[int, AtLeast(1)] = 256,
) -> Prompt:
    """Show code like what stands before the cursor; then, with a draft, code like the draft.

    Which program the paper ran is unknown; RLCoder's release has a RepoCoder mode that reads CoderEval, so its
    blocks and its prompt are the default. ``engine=windows`` is `lc.repocoder` with the function as the target.

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model, asked once less than there are rounds.
        engine: ``blocks`` of RLCoder's release, or RepoCoder's ``windows``; those take none of what follows
            `iterations`.
        iterations: rounds; 1 retrieves once and asks for no draft.
        encoder: what ranks the candidates (paper: UniXcoder, not trained for it).
        candidates: how many blocks BM25 keeps.
        blocks: how many are shown at most.
        budget: tokens for the blocks.
        whole: tokens for the prompt.
        draft_tokens: new tokens of a draft; the release's 64 are few for a function.
    """
    if engine == "windows":
        return repocoder(query, repo, generate, iterations=iterations)
    choices = BlockSearch(encoder=encoder, candidates=candidates, blocks=blocks)
    first = question(query.prefix)
    flags: list[str] = []
    current_prompt = prompt(query, retrieve(repo, first, choices), budget=budget, whole=whole)
    for _ in range(iterations - 1):
        draft = generate(current_prompt, role="draft", max_tokens=draft_tokens)
        if not draft.strip():
            flags.append(EMPTY_DRAFT)
        current_prompt = prompt(
            query, retrieve(repo, f"{first}\n{draft}".rstrip(), choices), budget=budget, whole=whole
        )
    return Prompt(blocks=current_prompt.blocks, dropped=current_prompt.dropped, flags=(*current_prompt.flags, *flags))

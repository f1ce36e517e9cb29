"""RepoCoder: retrieve, draft, retrieve with the draft; on lines, and on function bodies as in RepoEval."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.layout import (
    BLOCKS,
    BUDGET,
    HALF,
    as_found,
    draft_query,
    extended,
    infile_prompt,
    similar_prompt,
    unfinished_query,
)
from ctxbench.strategies.parameters import AtLeast
from ctxbench.strategies.registry import strategy

RETRIEVED = 20
"""How many windows are retrieved, of which the packing takes what fits."""
LINE_DRAFT, FUNCTION_DRAFT = 128, 1024
"""Most tokens of a draft."""


@strategy("lc.repocoder", kinds=(Kind.LINE, Kind.FUNCTION))
def repocoder(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    iterations: Annotated[int, AtLeast(0)] = 2,
    window: Annotated[int, AtLeast(2)] = 20,
    stride: Annotated[int, AtLeast(1)] = 10,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    blocks: Annotated[int, AtLeast(0)] = BLOCKS,
    infile: Annotated[int, AtLeast(1)] = HALF,
    q2_partial: Literal["join", "drop"] = "join",
    q2_lines: Literal["all", "first"] = "all",
    empty_header: bool = False,
) -> Prompt:
    """Show windows like the code before the cursor; then, with a draft, windows like the code it makes.

    The first round looks for the 20 lines before the cursor line and shows what follows the windows
    found. Every further round asks the model for a draft and looks for the lines around it.

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model, asked once less than there are rounds.
        iterations: rounds; 1 retrieves once and asks for no draft, 0 shows the file only.
        window: lines of a window.
        stride: lines from one window to the next.
        budget: tokens for the similar code, header included.
        blocks: windows shown at most.
        infile: tokens for the in-file text.
        q2_partial: whether the cursor line's start is joined to the draft in the query, or dropped.
        q2_lines: which lines of the draft enter the query.
        empty_header: print the header of the similar code even over none.
    """
    if iterations == 0:
        return infile_prompt(query, infile)

    def prompt_for(text: str, *, move: bool) -> Prompt:
        hits = repo.similar_windows(text, top=RETRIEVED, size=window, stride=stride)
        fragments = extended(hits, repo, window, stride) if move else as_found(hits)
        return similar_prompt(query, fragments, budget=budget, most=blocks, infile=infile, empty_header=empty_header)

    prompt = prompt_for(unfinished_query(query, window), move=True)
    flags: list[str] = []
    for _ in range(iterations - 1):
        draft = generate(prompt, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
        if not draft.strip():
            flags.append("empty_draft")
        text = draft_query(query, draft, window, join=q2_partial == "join", first_only=q2_lines == "first")
        prompt = prompt_for(text, move=False)
    return Prompt(blocks=prompt.blocks, dropped=prompt.dropped, flags=(*prompt.flags, *flags))

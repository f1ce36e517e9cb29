"""InferCom: a draft, the APIs that it may mean, and similar code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Query
from ctxbench.strategies.api import Block, Dropped, Generate, Prompt
from ctxbench.strategies.apis import CONTEXT, SIMILAR, ApiSearch, api_blocks, fit, infer
from ctxbench.strategies.infile_text import HALF, infile_block, infile_flags
from ctxbench.strategies.registry import strategy
from ctxbench.strategies.repocoder import LINE_DRAFT, RETRIEVED
from ctxbench.strategies.similar import (
    HEADER_TOKENS,
    Fragment,
    as_found,
    choose,
    draft_query,
    extended,
    framed,
    pack,
    similar_prompt,
    unfinished_query,
)

Count = Annotated[int, AtLeast(0)]


@strategy("lc.infercom")
def infercom(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    uer: bool = True,
    fsr: bool = True,
    encoder: str = "minilm",
    k_uer: Count = 4,
    k_fsr: Count = 4,
    dedupe_api: bool = False,
    reserve_api_budget: Literal["always", "printed"] = "always",
    q2_partial: Literal["join", "drop"] = "join",
    q2_lines: Literal["all", "first"] = "all",
    window: Annotated[int, AtLeast(2)] = 20,
    stride: Annotated[int, AtLeast(1)] = 10,
    context: Annotated[int, AtLeast(1)] = CONTEXT,
    similar: Count = SIMILAR,
    infile: Annotated[int, AtLeast(1)] = HALF,
    empty_header: bool = True,
    ue_quirks: bool = False,
    synth_constructor: bool = False,
    api_blank_decorator_line: bool = True,
) -> Prompt:
    """Show code like a draft, and the APIs that the draft's line may call (UER) and its code may do again (FSR).

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model, asked for a draft and, if it follows instructions, for a summary of the draft.
        uer: show the APIs found by usage example.
        fsr: show the APIs found by summary.
        encoder: what compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer: how many APIs by usage example.
        k_fsr: how many by summary.
        dedupe_api: leave an API out of the second list that stands in the first.
        reserve_api_budget: whether APIs that are switched off still take their share of the budget.
        q2_partial: whether the cursor line's start is joined to the draft in the second query, or dropped.
        q2_lines: which lines of the draft enter the second query.
        window: lines of a window.
        stride: lines from one window to the next.
        context: tokens of the whole prompt.
        similar: tokens of the similar code at most.
        infile: tokens for the in-file text.
        empty_header: print the header of the similar code even over none.
        ue_quirks: build usage examples with the oddities of the release.
        synth_constructor: take a class without a constructor as if it had one without arguments.
        api_blank_decorator_line: print the blank line that stands for a method's missing decorators.
    """
    hits = repo.similar_windows(unfinished_query(query, window), top=RETRIEVED, size=window, stride=stride)
    first = similar_prompt(query, extended(hits, repo, window, stride), infile=infile, empty_header=empty_header)
    draft = generate(first, role="draft", max_tokens=LINE_DRAFT)

    reserved = reserve_api_budget == "always"
    search = ApiSearch(
        encoder=encoder,
        usage=k_uer if uer or reserved else 0,
        summary=k_fsr if fsr or reserved else 0,
        dedupe=dedupe_api,
        quirks=ue_quirks,
        constructors=synth_constructor,
        blank_decorator_line=api_blank_decorator_line,
    )
    file_block = infile_block(query, infile)
    apis, dropped, tokens_left = fit(
        repo.name, infer(repo, generate, file_block.text, draft, search), file_block.text, context
    )

    text = draft_query(query, draft, window, join=q2_partial == "join", first_only=q2_lines == "first")
    fragments = as_found(repo.similar_windows(text, top=RETRIEVED, size=window, stride=stride))
    blocks, unfit = _similar(fragments, min(tokens_left, similar), empty_header=empty_header)

    flags = [*infile_flags(query, file_block), *apis.flags]
    flags += ["no_candidates"] * (not fragments) + ["empty_draft"] * (not draft.strip())
    return Prompt(
        blocks=(*blocks, *api_blocks(repo.name, apis.only(usage=uer, summary=fsr)), file_block),
        dropped=(*unfit, *dropped),
        flags=tuple(flags),
    )


def _similar(candidates: Sequence[Fragment], budget: int, *, empty_header: bool) -> tuple[list[Block], list[Dropped]]:
    """Pack as RepoCoder does, then again what it took into what the APIs leave, and frame it."""
    packed, dropped = pack(candidates)
    if budget < HEADER_TOKENS:
        unfit = [Dropped(kind=b.kind, places=b.places, score=b.score, reason="budget") for b in reversed(packed)]
        return [], [*dropped, *unfit]
    fitting, unfit = choose(reversed(packed), budget=budget)
    return framed(fitting, empty_header=empty_header), [*dropped, *unfit]

"""AIM: wrap any strategy and add the APIs that its own output may mean (InferCom paper, AIM as a module)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EncoderSpec, Inner
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import Block, BlockKind, Dropped, Execute, Generate, Prompt, text_block
from ctxbench.strategies.drafts import calls, drafted_body, stretches
from ctxbench.strategies.infercom import CONTEXT, SIMILAR, Apis, ApiSearch, api_blocks, entry, fit, infer, retrieve
from ctxbench.strategies.layout import (
    HALF,
    HEADER_TOKENS,
    TITLE,
    build_infile,
    choose,
    framed,
    infile_block,
    without,
)
from ctxbench.strategies.registry import resolve, strategy
from ctxbench.strategies.repocoder import FUNCTION_DRAFT, LINE_DRAFT
from ctxbench.strategies.tokens import count

Count = Annotated[int, AtLeast(0)]
_SECTION = "APIS THAT MAY BE USED"


@strategy("aim", kinds=(Kind.LINE, Kind.FUNCTION))
def aim(  # noqa: D417, PLR0913 - one keyword for each choice that a run can make; pairs share a line below
    query: Query,
    repo: Repository,
    generate: Generate,
    execute: Execute | None,
    *,
    inner: Inner = "lc.infile",
    uer: bool = True,
    fsr: bool = True,
    encoder: EncoderSpec = "minilm",
    k_uer: Count = 4,
    k_fsr: Count = 4,
    dedupe_api: bool = False,
    context: Annotated[int, AtLeast(1)] = CONTEXT,
    similar: Count = SIMILAR,
    infile: Annotated[int, AtLeast(1)] = HALF,
    ue_quirks: bool = False,
    synth_constructor: bool = False,
    api_blank_decorator_line: bool = True,
) -> Prompt:
    """Take another strategy's output for a draft, and show its context again with the APIs that the draft may mean.

    Args:
        query, repo: the sample's query, and the repository.
        generate: the model; asked for what `inner` asks, for the draft, and for summaries if it follows instructions.
        execute: the sandbox, for an inner strategy that needs it.
        inner: the strategy.
        uer: show APIs by usage example (UER), found by the lines of the draft that call something.
        fsr: show APIs by summary (FSR), found by what the draft does.
        encoder: what compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer, k_fsr: how many APIs by usage example, and how many by summary.
        dedupe_api: leave an API out of the second list that stands in the first.
        context: tokens of the whole prompt, where it ends with the file.
        similar: tokens of the inner strategy's context at most, there.
        infile: tokens of the in-file text at most, there.
        ue_quirks: build usage examples with the oddities of the InferCom release.
        synth_constructor: take a class without a constructor as if it had one without arguments.
        api_blank_decorator_line: print the blank line that stands for a method's missing decorators.
    """
    inner_prompt = resolve(inner)(query, repo, generate, execute)
    draft = generate(inner_prompt, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
    search = ApiSearch(encoder, k_uer, k_fsr, dedupe_api, ue_quirks, synth_constructor, api_blank_decorator_line)
    search = search.only(uer, fsr)
    file_block = _infile(query, inner_prompt, infile)
    if query.kind is Kind.LINE:
        apis = infer(repo, generate, file_block.text, draft, search)
    else:
        body = drafted_body(draft, query)
        apis = retrieve(repo, generate, calls(body), stretches(body), search)
    flags = (*inner_prompt.flags, *apis.flags, *(() if draft.strip() else ("empty_draft",)))
    continued = (
        bool(inner_prompt.blocks) and inner_prompt.blocks[-1].kind is BlockKind.INFILE and not _is_closed(inner_prompt)
    )
    if query.kind is Kind.LINE or continued:
        prompt = _before_the_file(repo.name, inner_prompt, file_block, apis, context, similar)
    else:
        prompt = _after_the_files(repo.name, inner_prompt, apis)
    return replace(prompt, flags=tuple(dict.fromkeys(flags)))


def _infile(query: Query, inner_prompt: Prompt, limit: int) -> Block:
    """Return the inner strategy's in-file text, cut to the limit."""
    last = inner_prompt.blocks[-1] if inner_prompt.blocks else None
    if last is None or last.kind is not BlockKind.INFILE:
        return infile_block(query, limit)
    text = build_infile(last.text, limit)
    if text == last.text:
        return last
    gone = last.text.count("\n") - text.count("\n")
    places = tuple(Place(path=p.path, start=min(p.start + gone, p.end), end=p.end) for p in last.places)
    return replace(last, text=text, places=places, cut=True)


def _is_closed(prompt: Prompt) -> bool:
    """Say whether a prompt ends with the section that asks for a function, and not with the file."""
    return any(block.kind is BlockKind.TEXT and block.text.startswith(TITLE) for block in prompt.blocks)


def _after_the_files(repo: str, inner_prompt: Prompt, apis: Apis) -> Prompt:
    """Put the APIs, uncommented, into a section of their own: after the last file, or in front of a foreign layout."""
    api_entries = [entry(repo, hit, mark="") for hit in (*apis.usage, *apis.summary)]
    if not api_entries:
        return inner_prompt
    api_entries[-1] = replace(api_entries[-1], text=api_entries[-1].text.rstrip("\n"))
    if _is_closed(inner_prompt):
        from ctxbench.strategies.icl.frame import with_section  # noqa: PLC0415 - the family registers itself

        return with_section(inner_prompt, _SECTION, *api_entries)
    # All that is certain of a foreign layout is that a section put before it splits no sentence.
    rule, end = (text_block(text) for text in (f"#####\n{_SECTION}\n#####\n", "\n\n"))
    return replace(inner_prompt, blocks=(rule, *api_entries, end, *inner_prompt.blocks))


def _before_the_file(
    repo: str, inner_prompt: Prompt, file_block: Block, apis: Apis, context: int, similar: int
) -> Prompt:
    """Put the APIs between the inner strategy's context and the in-file text."""
    apis, unfit, tokens_left = fit(repo, apis, file_block.text, context)
    blocks, dropped = _repacked(inner_prompt.blocks[:-1], min(tokens_left, similar))
    text = "".join(block.text for block in blocks)
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    gaps = [text_block(gap)] * bool(gap)
    return Prompt(
        blocks=(*blocks, *gaps, *api_blocks(repo, apis), file_block), dropped=(*inner_prompt.dropped, *dropped, *unfit)
    )


def _repacked(blocks: Sequence[Block], budget: int) -> tuple[list[Block], list[Dropped]]:
    """Fit a strategy's context into a smaller budget.

    Blocks that are the similar-code layout and nothing else are packed again by its rule, which passes over a block
    that does not fit. In any other layout the least relevant blocks go until the others fit, each with a heading that
    stands over it alone, as in RepoFuse: the lowest score first or, where a block has no score, the one farthest from
    the code.
    """
    pieces = [block for block in blocks if block.kind is not BlockKind.TEXT]
    if list(blocks) == framed(pieces, empty_header=True):
        packed, dropped = choose(reversed(pieces), budget=budget, most=len(pieces))
        return framed(packed, empty_header=not pieces and budget >= HEADER_TOKENS), dropped
    scored = all(block.score is not None for block in pieces)
    order = sorted(range(len(pieces)), key=lambda at: (pieces[at].score or 0, -at) if scored else (at, 0))
    remaining, gone = list(blocks), 0
    while remaining and sum(count(block.text) for block in remaining) > budget:
        gone = min(gone + 1, len(pieces))
        if gone < len(pieces):
            lost = pieces[order[gone - 1]]
            remaining = without(remaining, next(at for at, block in enumerate(remaining) if block is lost))
        else:
            remaining = []
    return remaining, [Dropped.of(pieces[at]) for at in order[:gone]]

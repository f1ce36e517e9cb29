"""AIM: any strategy once more, with the APIs that its own output may mean (InferCom paper, AIM as a module)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from ctxbench.bench.code_tokens import count
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import Block, BlockKind, Dropped, Execute, Generate, Prompt
from ctxbench.strategies.apis import CONTEXT, SIMILAR, Apis, Search, api_blocks, entry, fit, infer, retrieve
from ctxbench.strategies.closing import TITLE
from ctxbench.strategies.drafts import calls, drafted_body, stretches
from ctxbench.strategies.infile_text import HALF, build_infile, infile_block
from ctxbench.strategies.parameters import AtLeast, Inner
from ctxbench.strategies.registry import resolve, strategy
from ctxbench.strategies.repocoder import FUNCTION_DRAFT, LINE_DRAFT
from ctxbench.strategies.similar import HEADER, HEADER_TOKENS, choose, framed

Count = Annotated[int, AtLeast(0)]
_SECTION = "APIS THAT MAY BE USED"


@strategy("aim", kinds=(Kind.LINE, Kind.FUNCTION))
def aim(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    execute: Execute | None,
    *,
    inner: Inner = "lc.infile",
    uer: bool = True,
    fsr: bool = True,
    encoder: str = "minilm",
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
        query: the sample's query.
        repo: the repository.
        generate: the model; asked for what `inner` asks, for the draft, and for summaries if it follows instructions.
        execute: the sandbox, for an inner strategy that needs it.
        inner: the strategy.
        uer: show APIs by usage example (UER), found by the lines of the draft that call something.
        fsr: show APIs by summary (FSR), found by what the draft does.
        encoder: what compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer: how many APIs by usage example.
        k_fsr: how many by summary.
        dedupe_api: leave an API out of the second list that stands in the first.
        context: tokens of the whole prompt, where it ends with the file.
        similar: tokens of the inner strategy's context at most, there.
        infile: tokens of the in-file text at most, there.
        ue_quirks: build usage examples with the oddities of the InferCom release.
        synth_constructor: take a class without a constructor as if it had one without arguments.
        api_blank_decorator_line: print the blank line that stands for a method's missing decorators.
    """
    shown = resolve(inner)(query, repo, generate, execute)
    draft = generate(shown, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
    search = Search(
        encoder=encoder,
        usage=k_uer if uer else 0,
        summary=k_fsr if fsr else 0,
        dedupe=dedupe_api,
        quirks=ue_quirks,
        constructors=synth_constructor,
        blank_decorator_line=api_blank_decorator_line,
    )
    here = _infile(query, shown, infile)
    if query.kind is Kind.LINE:
        apis = infer(repo, generate, here.text, draft, search)
    else:
        body = drafted_body(draft, query)
        apis = retrieve(repo, generate, calls(body), stretches(body), search)
    flags = (*shown.flags, *apis.flags, *(() if draft.strip() else ("empty_draft",)))
    continued = bool(shown.blocks) and shown.blocks[-1].kind is BlockKind.INFILE and not _is_closed(shown)
    if query.kind is Kind.LINE or continued:
        made = _before_the_file(repo.name, shown, here, apis, context, similar)
    else:
        made = _after_the_files(repo.name, shown, apis)
    return replace(made, flags=tuple(dict.fromkeys(flags)))


def _infile(query: Query, shown: Prompt, limit: int) -> Block:
    """Return the inner strategy's in-file text, cut to the limit."""
    last = shown.blocks[-1] if shown.blocks else None
    if last is None or last.kind is not BlockKind.INFILE:
        return infile_block(query, limit)
    text = build_infile(last.text, limit)
    if text == last.text:
        return last
    gone = last.text.count("\n") - text.count("\n")
    places = tuple(Place(path=p.path, start=min(p.start + gone, p.end), end=p.end) for p in last.places)
    return replace(last, text=text, places=places, cut=True)


def _is_closed(shown: Prompt) -> bool:
    """Say whether a prompt ends with the section that asks for a function, and not with the file."""
    return any(block.kind is BlockKind.TEXT and block.text.startswith(TITLE) for block in shown.blocks)


def _after_the_files(repo: str, shown: Prompt, apis: Apis) -> Prompt:
    """Put the APIs, uncommented, into a section of their own: after the last file, or in front of a foreign layout."""
    found = [entry(repo, hit, mark="") for hit in (*apis.usage, *apis.summary)]
    if not found:
        return shown
    found[-1] = replace(found[-1], text=found[-1].text.rstrip("\n"))
    if _is_closed(shown):
        from ctxbench.strategies.icl.frame import with_section  # noqa: PLC0415 - the family registers itself

        return with_section(shown, _SECTION, *found)
    # Of another layout nothing is known but that its start is between no two halves of a sentence.
    rule, end = (Block(kind=BlockKind.TEXT, text=text) for text in (f"#####\n{_SECTION}\n#####\n", "\n\n"))
    return replace(shown, blocks=(rule, *found, end, *shown.blocks))


def _before_the_file(repo: str, shown: Prompt, here: Block, apis: Apis, context: int, similar: int) -> Prompt:
    """Put the APIs between the inner strategy's context and the in-file text."""
    apis, unfit, left = fit(repo, apis, here.text, context)
    kept, dropped = _repacked(shown.blocks[:-1], min(left, similar))
    text = "".join(block.text for block in kept)
    gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    gaps = [Block(kind=BlockKind.TEXT, text=gap)] * bool(gap)
    return Prompt(blocks=(*kept, *gaps, *api_blocks(repo, apis), here), dropped=(*shown.dropped, *dropped, *unfit))


def _repacked(blocks: Sequence[Block], budget: int) -> tuple[list[Block], list[Dropped]]:
    """Fit a strategy's context into a smaller budget.

    What is in the similar-code layout is packed again by its rule: what does not fit is passed over. Of anything else
    the least relevant goes until the rest fits, which for RepoFuse is its own rule: by score, or, where a block has
    none, the farthest from the code.
    """
    pieces = [block for block in blocks if block.kind is not BlockKind.TEXT]
    if blocks and blocks[0].text == HEADER:
        kept, dropped = choose(reversed(pieces), budget=budget, most=len(pieces))
        return framed(kept, empty_header=not pieces and budget >= HEADER_TOKENS), dropped
    scored = all(block.score is not None for block in pieces)
    order = sorted(range(len(pieces)), key=lambda at: (pieces[at].score or 0, -at) if scored else (at, 0))
    gone: list[int] = []
    left = list(blocks)
    while left and sum(count(block.text) for block in left) > budget:
        gone = order[: len(gone) + 1]
        lost = {id(pieces[at]) for at in gone}
        left = [block for block in blocks if id(block) not in lost] if len(gone) < len(pieces) else []
    reason = "budget"
    return left, [
        Dropped(kind=pieces[at].kind, places=pieces[at].places, score=pieces[at].score, reason=reason) for at in gone
    ]

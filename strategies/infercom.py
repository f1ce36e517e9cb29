"""InferCom: a draft, the APIs that it may mean, found by what it calls and by what it does, and similar code.

InferCom paper, sections on API inference and prompt construction; the layout is that of its later release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from ctxbench.bench import apis
from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.types import Hit
from ctxbench.bench.spec import Spec
from ctxbench.bench.types import Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import SUMMARY_ROLE, Block, BlockKind, Dropped, Generate, Prompt, text_block
from ctxbench.strategies.layout import (
    HALF,
    HEADER_TOKENS,
    Fragment,
    choose,
    first_shown_line,
    framed,
    infile_block,
    infile_flags,
    pack,
    similar_prompt,
)
from ctxbench.strategies.registry import strategy
from ctxbench.strategies.repocoder import LINE_DRAFT, WindowSearch
from ctxbench.strategies.tokens import count

Count = Annotated[int, AtLeast(0)]
API_HEADER = "# Here are some APIs that may be used from other files\n"
CONTEXT, SIMILAR = 4096, 2048
"""Tokens of a whole prompt, and of the similar code in it at most."""
SUMMARY = 100
"""Most tokens of a summary."""


@strategy("lc.infercom")
def infercom(  # noqa: D417, PLR0913 - one keyword for each choice that a run can make; pairs share a line below
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    uer: bool = True,
    fsr: bool = True,
    encoder: EncoderSpec = "minilm",
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
    own_file: bool = True,
    repo_paths: bool = False,
) -> Prompt:
    """Show code like a draft, and the APIs that the draft's line may call (UER) and its code may do again (FSR).

    Args:
        query, repo: the sample's query, and the repository.
        generate: the model, asked for a draft, and its summariser, if it follows instructions, for the draft's summary.
        uer, fsr: show the APIs found by usage example, and those found by summary.
        encoder: what compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer, k_fsr: how many APIs by usage example, and how many by summary.
        dedupe_api: leave an API out of the second list that stands in the first.
        reserve_api_budget: whether APIs that are switched off still take their share of the budget.
        q2_partial: whether the cursor line's start is joined to the draft in the second query, or dropped.
        q2_lines: which lines of the draft enter the second query.
        window, stride: lines of a window, and from one window to the next.
        context, similar: tokens of the whole prompt, and of the similar code at most.
        infile: tokens for the in-file text.
        empty_header: print the header of the similar code even over none.
        ue_quirks: build usage examples with the oddities of the release.
        synth_constructor: take a class without a constructor as if it had one without arguments.
        api_blank_decorator_line: print the blank line that stands for a method's missing decorators.
        own_file: look for similar code in the target file too, before the text that is shown of it.
        repo_paths: print the repository's name before the paths of similar code too, as in Figure 7.
    """
    file_block = infile_block(query, infile)
    windows = WindowSearch(query, repo, window, stride, first_shown_line(query, infile) if own_file else 0, repo_paths)
    first = similar_prompt(query, windows.undrafted(), infile=infile, empty_header=empty_header)
    draft = generate(first, role="draft", max_tokens=LINE_DRAFT)
    search = ApiSearch(encoder, k_uer, k_fsr, dedupe_api, ue_quirks, synth_constructor, api_blank_decorator_line)
    apis = infer(
        repo, generate, file_block.text, draft, search if reserve_api_budget == "always" else search.only(uer, fsr)
    )
    apis, dropped, tokens_left = fit(repo.name, apis, file_block.text, context)
    fragments = windows.drafted(draft, q2_partial, q2_lines)
    blocks, unfit = _similar(fragments, min(tokens_left, similar), empty_header=empty_header)
    blocks += [*api_blocks(repo.name, apis.only(uer, fsr)), file_block]
    remarks = [("no_candidates", not fragments), ("empty_draft", not draft.strip())]
    flags = (*infile_flags(query, file_block), *apis.flags, *(flag for flag, holds in remarks if holds))
    return Prompt(blocks=tuple(blocks), dropped=(*unfit, *dropped), flags=flags)


def _similar(candidates: Sequence[Fragment], budget: int, *, empty_header: bool) -> tuple[list[Block], list[Dropped]]:
    """Pack as RepoCoder does, then again what it took into what the APIs leave, and frame it."""
    packed, dropped = pack(candidates)
    if budget < HEADER_TOKENS:
        unfit = [Dropped.of(block) for block in reversed(packed)]
        return [], [*dropped, *unfit]
    fitting, unfit = choose(reversed(packed), budget=budget)
    return framed(fitting, empty_header=empty_header), [*dropped, *unfit]


@dataclass(frozen=True, slots=True)
class ApiSearch:
    """The settings of an API search."""

    encoder: str
    usage: int
    """How many APIs are taken by usage example; 0 for none."""
    summary: int
    """How many are taken by summary."""
    dedupe: bool = False
    """Whether an API in both lists is left out of the second."""
    quirks: bool = False
    """Whether usage examples have the oddities of the release."""
    constructors: bool = False
    """Whether a class without a constructor counts as having one without arguments."""
    blank_decorator_line: bool = True
    """Whether a blank line stands for a method's missing decorators."""

    def only(self, usage: bool, summary: bool) -> ApiSearch:
        """Return a search for the lists that are switched on."""
        return replace(self, usage=self.usage if usage else 0, summary=self.summary if summary else 0)

    def unit(self, by: str) -> str:
        """Return the spec of the index unit: an API by ``usage`` example or by ``summary``."""
        names = ("blank_decorator_line", "constructors", "quirks")
        return str(Spec(by, {name: getattr(self, name) for name in names}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Apis:
    """The two lists of APIs, each best first."""

    usage: tuple[Hit, ...] = ()
    summary: tuple[Hit, ...] = ()
    flags: tuple[str, ...] = ()

    def only(self, usage: bool, summary: bool) -> Apis:
        """Return the lists that are switched on."""
        return replace(self, usage=self.usage if usage else (), summary=self.summary if summary else ())


def drafted_line(infile: str, draft: str) -> str:
    """Return the line that the draft makes of the in-file text: the query by usage example, not yet stripped.

    Without a draft it is the last line of the in-file text; at the start of a line that is the line before.
    """
    first = next((line for line in draft.split("\n") if line.strip()), "")
    lines = split_lines(infile + first)
    return lines[-1] if lines else ""


def drafted_code(infile: str, draft: str) -> str:
    """Return that line and the other lines of the draft that are not blank: the code whose summary is the query."""
    later_lines = [line for line in draft.split("\n") if line.strip()][1:]
    return "\n".join([drafted_line(infile, draft), *later_lines]).strip()


def infer(repo: Repository, generate: Generate, infile: str, draft: str, search: ApiSearch) -> Apis:
    """Find the APIs that a drafted line may call and that the drafted code may do again."""
    return retrieve(repo, generate, [drafted_line(infile, draft)], [drafted_code(infile, draft)], search)


def retrieve(
    repo: Repository, generate: Generate, lines: Iterable[str], codes: Iterable[str], search: ApiSearch
) -> Apis:
    """Find APIs by usage example and by summary.

    Args:
        repo: the repository.
        generate: the model; its summariser is asked for a summary of each of `codes` if that follows instructions.
        lines: code lines that may call an API; without one nothing is found at all.
        codes: stretches of code that may do what an API does.
        search: how, and how many.

    Returns:
        The lists. An API's score is that for its best usage example, or summary, and for the best of the queries.
    """
    lines = [line.strip() for line in lines if line.strip()]
    if not lines:
        return Apis(flags=("no_api_query",))
    usage = _best(repo, lines, search.unit("usage"), search.encoder, search.usage)
    summaries: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    if search.summary:
        summaries, flags = _summaries(generate, repo, codes)
    summary = _best(repo, summaries, search.unit("summary"), search.encoder, search.summary)
    if search.dedupe:
        usage_apis = {(hit.place, hit.name) for hit in usage}
        summary = tuple(hit for hit in summary if (hit.place, hit.name) not in usage_apis)
    return Apis(usage=usage, summary=summary, flags=flags if usage or summary else (*flags, "no_apis"))


def _summaries(generate: Generate, repo: Repository, codes: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a summary of each stretch of code, blank ones left out, and remarks."""
    texts, flags = [], () if generate.summarises else ("plain_summary",)
    for code in codes:
        if not generate.summarises:
            texts.append(apis.summary(code, repo.language))
            continue
        text = apis.summary_prompt(code, repo.language)
        prompt = Prompt(blocks=(text_block(text),))
        texts.append(apis.post_process(generate(prompt, role=SUMMARY_ROLE, max_tokens=SUMMARY)))
    summaries = tuple(text for text in texts if text.strip())
    return summaries, flags if summaries else (*flags, "empty_summary")


def _best(repo: Repository, texts: Sequence[str], unit: str, ranker: str, top: int) -> tuple[Hit, ...]:
    """Return the units that any of the texts is most like."""
    best_hits: dict[tuple[object, str], Hit] = {}
    for text in texts if top else ():
        for hit in repo.search(text, unit=unit, ranker=ranker, top=top):
            key = (hit.place, hit.name)
            if key not in best_hits or best_hits[key].score < hit.score:
                best_hits[key] = hit
    return tuple(sorted(best_hits.values(), key=lambda hit: (-hit.score, hit.place, hit.name))[:top])


def entry(repo: str, hit: Hit, mark: str = "# ") -> Block:
    """Return one API as it is shown: its path, the repository's name first, and its text, each line marked."""
    lines = [f"{repo}/{hit.place.path}", *hit.text.rstrip("\n").split("\n")]
    text = "".join(f"{mark}{line}\n" for line in lines) + "\n"
    return Block(kind=BlockKind.API, text=text, places=(hit.place,), score=hit.score)


def entries(repo: str, apis: Apis) -> list[Block]:
    """Return both lists as they are shown, each followed by one more newline; an empty one is nothing."""
    gap = text_block("\n")
    return [block for hits in (apis.usage, apis.summary) if hits for block in (*(entry(repo, h) for h in hits), gap)]


def api_blocks(repo: str, apis: Apis) -> list[Block]:
    """Return the API part of a prompt, from its header, which stands over no API too, to the newline at its end."""
    header, end = (text_block(text) for text in (API_HEADER, "\n"))
    return [header, *entries(repo, apis), end]


def fit(repo: str, apis: Apis, infile: str, context: int) -> tuple[Apis, tuple[Dropped, ...], int]:
    """Drop APIs until they and the in-file text are within the prompt's budget.

    The last by summary goes first, then those by usage example.

    Returns:
        The lists, what was dropped, and the tokens left for other context (below 0 if the file alone is over).
    """
    dropped: list[Dropped] = []
    while True:
        text = "".join(block.text for block in entries(repo, apis))
        tokens_left = context - count(f"{text}\n{infile}")
        if tokens_left >= 0 or not (apis.usage or apis.summary):
            return apis, tuple(dropped), tokens_left
        last_api = (apis.summary or apis.usage)[-1]
        dropped.append(Dropped.of(entry(repo, last_api)))
        apis = replace(apis, summary=apis.summary[:-1]) if apis.summary else replace(apis, usage=apis.usage[:-1])

"""InferCom: a draft, APIs that the draft may use, and similar code. `aim` adds the APIs to any other strategy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from ctxbench.bench.apis import post_process, summary_prompt
from ctxbench.bench.apis import summary as plain_summary
from ctxbench.bench.parameters import AtLeast, EncoderSpec, Inner
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.spec import Spec
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import SUMMARY_ROLE, Block, BlockKind, Dropped, Execute, Generate, Prompt, text_block
from ctxbench.strategies.layout import (
    HALF,
    HEADER_TOKENS,
    TITLE,
    bare_name,
    build_infile,
    choose,
    count,
    drop_block,
    first_shown_line,
    framed,
    infile_block,
    infile_flags,
    similar_prompt,
)
from ctxbench.strategies.registry import resolve, strategy
from ctxbench.strategies.repocoder import FUNCTION_DRAFT, LINE_DRAFT, WindowSearch

Count = Annotated[int, AtLeast(0)]
API_HEADER = "# Here are some APIs that may be used from other files\n"
CONTEXT, SIMILAR = 4096, 2048
"""Maximum tokens of a whole prompt, and of its similar code."""
SUMMARY = 100

LINES = 20
LEAST, MOST = 5, 15
"""Minimum and maximum number of lines of a part of the drafted body."""
_TAGGED = re.compile(r"(?s:.*)\[code\]((?s:.*?))(?:\[/code\]|\Z)", re.I)
_FENCED = re.compile(r"^[ \t]*```[^\n]*\n((?s:.*?))(?:^[ \t]*```|\Z)", re.M)
"""A fenced block of an answer. The last block may lack its end."""
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_CALL = frozenset(
    {"and", "assert", "await", "catch", "class", "def", "del", "elif", "except", "for", "if", "in", "is", "lambda"}
    | {"not", "or", "return", "super", "switch", "synchronized", "throw", "try", "while", "with", "yield"}
)
_BLANK_LINES = re.compile(r"\A\s*\n")


@strategy("lc.infercom")
def infercom(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    uer: bool = True,
    fsr: bool = True,
    encoder: EncoderSpec = "minilm",
    k_uer: Count = 4,
    k_fsr: Count = 4,
    q2_partial: Literal["join", "drop"] = "join",
    q2_lines: Literal["all", "first"] = "all",
    window: Annotated[int, AtLeast(2)] = 20,
    stride: Annotated[int, AtLeast(1)] = 10,
    context: Annotated[int, AtLeast(1)] = CONTEXT,
    similar: Count = SIMILAR,
    infile: Annotated[int, AtLeast(1)] = HALF,
    empty_header: bool = True,
    ue_quirks: bool = False,
    own_file: bool = True,
    repo_paths: bool = False,
) -> Prompt:
    """Show code like a draft, the APIs that the draft may call (UER), and APIs with the draft's purpose (FSR).

    Args:
        generate: the model, asked for a draft, and its summariser, asked for the draft's summary if it follows
            instructions.
        uer, fsr: show the APIs found by usage example, and those found by summary.
        encoder: compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer, k_fsr: number of APIs by usage example, and by summary.
        q2_partial: in the second query, ``join`` the start of the cursor line to the draft, or ``drop`` it.
        q2_lines: lines of the draft in the second query.
        window, stride: lines of a window, and from one window to the next.
        context, similar: maximum tokens of the whole prompt, and of the similar code.
        infile: tokens for the in-file text.
        empty_header: show the header of the similar code even without blocks.
        ue_quirks: build usage examples with the oddities of InferCom's release.
        own_file: also search the target file for similar code, above the part that the prompt shows.
        repo_paths: show the repository's name before the paths of similar code too (InferCom paper, Figure 7).
    """
    file_block = infile_block(query, infile)
    before = first_shown_line(query, infile) if own_file else 0
    windows = WindowSearch(query, repo, window, stride, before, f"{repo.name}/" if repo_paths else "")
    first = similar_prompt(query, windows.search_prefix(), infile=infile, empty_header=empty_header)
    draft = generate(first, role="draft", max_tokens=LINE_DRAFT)
    # As in the published numbers, disabled APIs also take their share of the budget.
    apis = infer(repo, generate, file_block.text, draft, ApiSearch(encoder, k_uer, k_fsr, ue_quirks))
    apis, dropped, tokens_left = fit(repo.name, apis, file_block.text, context)
    fragments = windows.search_draft(draft, q2_partial, q2_lines)
    blocks, unfit = _similar(fragments, min(tokens_left, similar), empty_header=empty_header)
    shown = replace(apis, usage=apis.usage if uer else (), summary=apis.summary if fsr else ())
    blocks += [*api_blocks(repo.name, shown), file_block]
    remarks = [("no_candidates", not fragments), ("empty_draft", not draft.strip())]
    flags = (*infile_flags(query, file_block), *apis.flags, *(flag for flag, holds in remarks if holds))
    return Prompt(blocks=tuple(blocks), dropped=(*unfit, *dropped), flags=flags)


def _similar(candidates: Sequence[Block], budget: int, *, empty_header: bool) -> tuple[list[Block], list[Dropped]]:
    packed, dropped = choose(candidates)
    if budget < HEADER_TOKENS:
        unfit = [Dropped.of(block) for block in reversed(packed)]
        return [], [*dropped, *unfit]
    fitting, unfit = choose(reversed(packed), budget=budget)
    return framed(fitting, empty_header=empty_header), [*dropped, *unfit]


@dataclass(frozen=True, slots=True)
class ApiSearch:
    """Settings of an API search."""

    encoder: str
    usage: int
    summary: int
    quirks: bool

    def unit(self, by: str) -> str:
        """Return the spec of the search unit: APIs by usage example (`by` is ``usage``) or by summary (``summary``)."""
        return str(Spec(by, {"quirks": self.quirks}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Apis:
    """APIs found by usage example and by summary, each best first."""

    usage: tuple[Hit, ...] = ()
    summary: tuple[Hit, ...] = ()
    flags: tuple[str, ...] = ()


def drafted_line(infile: str, draft: str) -> str:
    """Return the cursor line joined with the draft's first nonblank line, unstripped, to search APIs by usage example.

    Without a draft, return the last line of the in-file text.
    """
    first = next(filter(str.strip, draft.splitlines()), "")
    lines = f"{infile}{first}".splitlines()
    return lines[-1] if lines else ""


def drafted_code(infile: str, draft: str) -> str:
    """Return the drafted line and the draft's other nonblank lines. Their summary is the query for APIs by summary."""
    later_lines = [line for line in draft.splitlines() if line.strip()][1:]
    return "\n".join([drafted_line(infile, draft), *later_lines]).strip()


def infer(repo: Repository, generate: Generate, infile: str, draft: str, search: ApiSearch) -> Apis:
    """Find APIs that the drafted line may call, and APIs with the draft's purpose."""
    return retrieve(repo, generate, [drafted_line(infile, draft)], [drafted_code(infile, draft)], search)


def retrieve(
    repo: Repository, generate: Generate, lines: Iterable[str], codes: Iterable[str], search: ApiSearch
) -> Apis:
    """Find APIs by usage example and by summary. An API's score is its best over all queries.

    Args:
        lines: code lines that may call an API. Without lines, nothing is searched.
        codes: code that may have an API's purpose. Its summary is the query.
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
    return Apis(usage=usage, summary=summary, flags=flags if usage or summary else (*flags, "no_apis"))


def _summaries(generate: Generate, repo: Repository, codes: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts, flags = [], () if generate.summarises else ("plain_summary",)
    for code in codes:
        if not generate.summarises:
            texts.append(plain_summary(code, repo.language))
            continue
        text = summary_prompt(code, repo.language)
        prompt = Prompt(blocks=(text_block(text),))
        texts.append(post_process(generate(prompt, role=SUMMARY_ROLE, max_tokens=SUMMARY)))
    summaries = tuple(text for text in texts if text.strip())
    return summaries, flags if summaries else (*flags, "empty_summary")


def _best(repo: Repository, texts: Sequence[str], unit: str, ranker: str, top: int) -> tuple[Hit, ...]:
    best_hits: dict[tuple[object, str], Hit] = {}
    for text in texts if top else ():
        for hit in repo.search(text, unit=unit, ranker=ranker, top=top):
            key = (hit.place, hit.name)
            if key not in best_hits or best_hits[key].score < hit.score:
                best_hits[key] = hit
    return tuple(sorted(best_hits.values(), key=lambda hit: (-hit.score, hit.place, hit.name))[:top])


def entry(repo: str, hit: Hit, mark: str = "# ") -> Block:
    """Return an API's block: path and text, each line prefixed with `mark`."""
    lines = f"{repo}/{hit.place.path}\n{hit.text}".splitlines()
    text = "".join(f"{mark}{line}\n" for line in lines) + "\n"
    return Block(kind=BlockKind.API, text=text, places=(hit.place,), score=hit.score)


def entries(repo: str, apis: Apis) -> list[Block]:
    """Return the blocks of both API lists. A newline follows each list that is not empty."""
    gap = text_block("\n")
    return [block for hits in (apis.usage, apis.summary) if hits for block in (*(entry(repo, h) for h in hits), gap)]


def api_blocks(repo: str, apis: Apis) -> list[Block]:
    """Return the API section of a prompt: header, entries and a newline. The header is present without entries too."""
    header, end = (text_block(text) for text in (API_HEADER, "\n"))
    return [header, *entries(repo, apis), end]


def fit(repo: str, apis: Apis, infile: str, context: int) -> tuple[Apis, tuple[Dropped, ...], int]:
    """Drop the worst APIs, first those by summary, until the others and the in-file text fit `context` tokens.

    Returns:
        The remaining APIs, the dropped ones, and the tokens left (negative if the in-file text alone is too long).
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
    encoder: EncoderSpec = "minilm",
    k_uer: Count = 4,
    k_fsr: Count = 4,
    context: Annotated[int, AtLeast(1)] = CONTEXT,
    similar: Count = SIMILAR,
    infile: Annotated[int, AtLeast(1)] = HALF,
    ue_quirks: bool = False,
) -> Prompt:
    """Draft with another strategy's prompt, then show its context again with APIs that the draft may use.

    Args:
        generate: the model; asked by `inner`, for the draft, and for summaries if it follows instructions.
        execute: the sandbox, for an inner strategy that needs it.
        inner: the other strategy.
        uer: show APIs by usage example (UER), found by the calling lines of the draft.
        fsr: show APIs by summary (FSR), found by what the draft does.
        encoder: compares texts: an encoder's spec, ``bm25`` or ``jaccard``.
        k_uer, k_fsr: number of APIs by usage example, and by summary.
        context: tokens of the whole prompt, if it ends with the file.
        similar: tokens of the inner strategy's context at most, if the prompt ends with the file.
        infile: tokens of the in-file text at most, if the prompt ends with the file.
        ue_quirks: build usage examples with the oddities of the InferCom release.
    """
    inner_prompt = resolve(inner)(query, repo, generate, execute)
    draft = generate(inner_prompt, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
    search = ApiSearch(encoder, k_uer if uer else 0, k_fsr if fsr else 0, ue_quirks)
    file_block = _infile(query, inner_prompt, infile)
    if query.kind is Kind.LINE:
        apis = infer(repo, generate, file_block.text, draft, search)
    else:
        body = drafted_body(draft, query)
        apis = retrieve(repo, generate, calls(body), stretches(body), search)
    flags = (*inner_prompt.flags, *apis.flags, *["empty_draft"] * (not draft.strip()))
    continued = (
        bool(inner_prompt.blocks) and inner_prompt.blocks[-1].kind is BlockKind.INFILE and not _is_closed(inner_prompt)
    )
    if query.kind is Kind.LINE or continued:
        prompt = _before_the_file(repo.name, inner_prompt, file_block, apis, context, similar)
    else:
        prompt = _after_the_files(repo.name, inner_prompt, apis)
    return replace(prompt, flags=()).flagged(*flags)


def drafted_body(draft: str, query: Query) -> list[str]:
    """Return the lines of the target function's body in a draft.

    If the draft defines the function, only its body counts. Otherwise the whole draft counts, as a continuation.
    """
    tagged = _TAGGED.match(draft)
    text = tagged.group(1) if tagged else draft
    text = [text, *_FENCED.findall(text)][-1]
    name = bare_name(query.name or "")
    functions = query.language.outline(text).functions
    definitions = [function for function in functions if function.name == name and function.has_body]
    start, end = definitions[-1].body if definitions else (0, None)
    moved = "\n".join(query.language.shift(text.split("\n")[start:end], ""))
    return _BLANK_LINES.sub("", moved).rstrip().split("\n")


def calls(body: list[str]) -> list[str]:
    """Return the first `LINES` lines of a body that call a function."""
    calling_lines = [line for line in body if any(name not in _NO_CALL for name in _CALL.findall(line))]
    return calling_lines[:LINES]


def stretches(body: list[str]) -> list[str]:
    """Split a body into parts of `LEAST` to `MOST` lines. A body of up to `MOST` lines is one part.

    Parts end at blank lines or before statements at the body's own depth if possible. The last part may be shorter.
    """
    if len(body) <= MOST:
        return ["\n".join(body)]
    parts: list[list[str]] = [[]]
    for line in body:
        outer = not line.strip() or not line.startswith((" ", "\t", "}", ")"))
        if len(parts[-1]) >= MOST or (outer and len(parts[-1]) >= LEAST):
            parts.append([])
        parts[-1].append(line)
    if len(parts) > 1 and len(parts[-1]) < LEAST and len(parts[-2]) + len(parts[-1]) <= MOST:
        last = parts.pop()
        parts[-1] += last
    return ["\n".join(part).strip("\n") for part in parts if any(line.strip() for line in part)]


def _infile(query: Query, inner_prompt: Prompt, limit: int) -> Block:
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
    return any(block.kind is BlockKind.TEXT and block.text.startswith(TITLE) for block in prompt.blocks)


def _after_the_files(repo: str, inner_prompt: Prompt, apis: Apis) -> Prompt:
    api_entries = [entry(repo, hit, mark="") for hit in (*apis.usage, *apis.summary)]
    if not api_entries:
        return inner_prompt
    api_entries[-1] = replace(api_entries[-1], text=api_entries[-1].text.rstrip("\n"))
    if _is_closed(inner_prompt):
        from ctxbench.strategies.icl.prompts import with_section  # noqa: PLC0415 - the family registers itself

        return with_section(inner_prompt, _SECTION, *api_entries)
    # In an unknown layout, only a section at the start certainly splits no sentence.
    rule, end = (text_block(text) for text in (f"#####\n{_SECTION}\n#####\n", "\n\n"))
    return replace(inner_prompt, blocks=(rule, *api_entries, end, *inner_prompt.blocks))


def _before_the_file(
    repo: str, inner_prompt: Prompt, file_block: Block, apis: Apis, context: int, similar: int
) -> Prompt:
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

    The similar-code layout is packed again. In other layouts, blocks with the lowest scores are dropped, or without
    scores those farthest from the code, and also headings that become empty.
    """
    retrieved = [block for block in blocks if block.kind is not BlockKind.TEXT]
    if list(blocks) == framed(retrieved, empty_header=True):
        packed, dropped = choose(reversed(retrieved), budget=budget, most=len(retrieved))
        return framed(packed, empty_header=not retrieved and budget >= HEADER_TOKENS), dropped
    scored = all(block.score is not None for block in retrieved)
    order = sorted(range(len(retrieved)), key=lambda at: (retrieved[at].score or 0, -at) if scored else (at, 0))
    remaining, gone = list(blocks), 0
    while remaining and sum(count(block.text) for block in remaining) > budget:
        gone = min(gone + 1, len(retrieved))
        if gone < len(retrieved):
            lost = retrieved[order[gone - 1]]
            remaining = drop_block(remaining, next(at for at, block in enumerate(remaining) if block is lost))
        else:
            remaining = []
    return remaining, [Dropped.of(retrieved[at]) for at in order[:gone]]

"""RLCoder: small blocks by BM25 and an encoder, with a block that says when to stop (ICL-strategies paper, Table 3).

Blocks of at most 15 lines; the best by BM25 are ranked by an encoder. An extra candidate, the stop block, says that no
more context is needed: what is ranked after it is left out. `repocoder_fn` is the RepoCoder mode of the same release.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Block, BlockKind, Dropped, Generate, Prompt, text_block
from ctxbench.strategies.layout import count, filled_stretches, infile_flags, last_tokens, left_block, pieces
from ctxbench.strategies.registry import strategy

QUERY_LINES, QUERY_TOKENS = 20, 256
CROSS_FILE, WHOLE, SPARE = 1536, 2048, 10
"""Tokens for the blocks, for the prompt, and of that left over: the published commands' numbers."""
UNIT = "mini-block(lines=15)"
FIRST_CUT = "bm25(split=spaces)"
"""How the release ranks the blocks of which the encoder then sees some."""
STOP = "Don't need cross file context for completion"
_APART = "\n\n"


@strategy("base.rlcoder", kinds=(Kind.FUNCTION,))
def rlcoder(
    query: Query,
    repo: Repository,
    *,
    encoder: EncoderSpec = "minilm",
    candidates: Annotated[int, AtLeast(1)] = 100,
    blocks: Annotated[int, AtLeast(1)] = 10,
    stop_block: bool = True,
    budget: Annotated[int, AtLeast(0)] = CROSS_FILE,
    whole: Annotated[int, AtLeast(64)] = WHOLE,
) -> Prompt:
    """Show small blocks of other files like the code before the cursor, up to the block that says to stop.

    The paper ran the trained retriever; give its weights as ``encoder=unixcoder(path=…)``. An encoder that was not
    trained for it gives the stop block no meaning of its own.

    Args:
        encoder: what ranks the candidates.
        candidates: how many blocks BM25 keeps (release: 100 for the trained retriever, 50 for the plain one).
        blocks: how many ranked ones are considered, the stop block counted (release: 10 and 5).
        stop_block: whether there is a stop block (release: with the trained retriever only).
        budget: tokens for the blocks.
        whole: tokens for the prompt.
    """
    retrieved = retrieve(repo, question(query.prefix), encoder, candidates, blocks, stop=stop_block)
    return prompt(query, retrieved, budget=budget, whole=whole)


@strategy("base.repocoder_fn", kinds=(Kind.FUNCTION,))
def repocoder_fn(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    iterations: Annotated[int, AtLeast(1)] = 2,
    encoder: EncoderSpec = "minilm",
    first_encoder: EncoderSpec = "",
    first_candidates: Annotated[int, AtLeast(1)] = 50,
    first_blocks: Annotated[int, AtLeast(1)] = 5,
    candidates: Annotated[int, AtLeast(1)] = 100,
    blocks: Annotated[int, AtLeast(1)] = 10,
    stop_block: bool = True,
    budget: Annotated[int, AtLeast(0)] = CROSS_FILE,
    whole: Annotated[int, AtLeast(64)] = WHOLE,
    draft_tokens: Annotated[int, AtLeast(1)] = 256,
) -> Prompt:
    """Show code like what stands before the cursor; then, with a draft, code like the draft.

    Which program the paper ran is unknown; RLCoder's release has a RepoCoder mode that reads CoderEval, so its
    blocks and its prompt are the default (``main.py``, ``retrieve_codeblocks``): with a draft an encoder ranks anew, by
    the code and the draft, but BM25's candidates are those of the code alone. Each stage has an encoder of its own; its
    README's RepoCoder has plain UniXcoder twice. RepoCoder's own program, with windows, is `lc.repocoder`, which takes
    functions too.

    Args:
        generate: the model, asked once less than there are rounds.
        iterations: rounds; 1 retrieves once and asks for no draft.
        encoder: what ranks the candidates (release: ``--retriever_model_path``).
        first_encoder: what ranks them before there is a draft (``--rlcoder_model_path``); empty: `encoder`.
        first_candidates: how many blocks BM25 keeps before there is a draft.
        first_blocks: how many of them are shown at most.
        candidates: how many blocks BM25 keeps for a draft.
        blocks: how many ranked ones are considered then, the stop block counted.
        stop_block: whether there is a stop block then.
        budget: tokens for the blocks.
        whole: tokens for the prompt.
        draft_tokens: new tokens of a draft; the release's 64 are few for a function.
    """
    text = question(query.prefix)
    flags: list[str] = []
    retrieved = retrieve(repo, text, first_encoder or encoder, first_candidates, first_blocks)
    current_prompt = prompt(query, retrieved, budget=budget, whole=whole)
    for _ in range(iterations - 1):
        draft = generate(current_prompt, role="draft", max_tokens=draft_tokens)
        if not draft.strip():
            flags.append("empty_draft")
        retrieved = retrieve(repo, text, encoder, candidates, blocks, stop=stop_block, drafted=f"\n{draft}")
        current_prompt = prompt(query, retrieved, budget=budget, whole=whole)
    return current_prompt.flagged(*flags)


@dataclass(frozen=True, slots=True)
class RetrievedBlocks:
    """The blocks to show, best first, and those behind the stop block."""

    blocks: tuple[tuple[str, Block], ...]
    """Each with the header above it."""
    stopped: tuple[Dropped, ...] = ()
    no_candidates: bool = False


def question(left_context: str) -> str:
    """Return the query: the last 20 non-blank lines of the left context."""
    return "\n".join([line for line in left_context.split("\n") if line.strip()][-QUERY_LINES:])


def retrieve(
    repo: Repository, text: str, encoder: str, candidates: int, blocks: int, *, stop: bool = False, drafted: str = ""
) -> RetrievedBlocks:
    """Return the blocks for a query text.

    The encoder compares the last 256 tokens with each block as the prompt shows it.

    Args:
        text: the query.
        encoder: what ranks the candidates.
        candidates: how many blocks BM25 keeps.
        blocks: how many are ranked for the prompt, the stop block counted.
        stop: whether there is a stop block.
        drafted: what was drafted after the query, which only the encoder sees.
    """
    hits = repo.search(text, unit=UNIT, ranker=FIRST_CUT, top=candidates)
    if not hits:
        return RetrievedBlocks((), no_candidates=True)
    sign = repo.language.comment
    found = [(_header(hit, sign), _block(hit, sign)) for hit in hits]
    compared = [header + block.text for header, block in found] + [f"{sign} {STOP}"] * stop
    scores = repo.similarity(last_tokens(text + drafted, QUERY_TOKENS), compared, ranker=encoder)
    order = sorted(range(len(compared)), key=lambda at: (-scores[at], at))[:blocks]
    end = order.index(len(hits)) if stop and len(hits) in order else len(order)
    shown = []
    for at in order[:end]:
        header, block = found[at]
        shown.append((header, replace(block, score=scores[at], places=filled_stretches(repo, hits[at].place))))
    stopped = [Dropped.of(replace(found[at][1], score=scores[at]), "stop") for at in order[end + 1 :]]
    return RetrievedBlocks(tuple(shown), tuple(stopped))


def prompt(query: Query, retrieved: RetrievedBlocks, *, budget: int, whole: int) -> Prompt:
    """Return the prompt: blocks from the best to the worst, the target's path, the left context.

    The blocks are cut at their end to `budget` tokens, the left context at its beginning, so that all is `whole`
    tokens with 10 to spare.
    """
    blocks, dropped, used = _packed(retrieved.blocks, budget)
    path = f"{_APART}# file path: {query.path}{_APART}"
    left_context = left_block(query, whole - used - count(path) - SPARE)
    flags = infile_flags(query, left_context, by_lines=False)
    if retrieved.no_candidates:
        flags = (*flags, "no_candidates")
    elif not retrieved.blocks:
        flags = (*flags, "stopped")
    return Prompt(blocks=(*blocks, text_block(path), left_context), dropped=(*dropped, *retrieved.stopped), flags=flags)


def _packed(found: Iterable[tuple[str, Block]], budget: int) -> tuple[list[Block], list[Dropped], int]:
    blocks: list[Block] = []
    dropped: list[Dropped] = []
    used = 0
    for first_header, block in found:
        header = _APART + first_header if blocks else first_header
        room = budget - used - count(header)
        if room <= 0:
            dropped.append(Dropped.of(block))
            used = budget
            continue
        code = pieces(block.text)
        text = "".join(code[:room])
        blocks += [text_block(header), replace(block, text=text, cut=room < len(code))]
        used += count(header) + min(room, len(code))
    return blocks, dropped, used


def _header(hit: Hit, sign: str) -> str:
    # The release counts non-blank lines here; these are the file's, from 1, both ends named.
    return f"{sign} file path: {hit.place.path}\n{sign} lines: {hit.place.start + 1}-{hit.place.end}\n"


def _block(hit: Hit, sign: str) -> Block:
    code = "\n".join(f"{sign} {line}" for line in hit.text.split("\n") if line)
    return Block(kind=BlockKind.SIMILAR, text=code, places=(hit.place,))

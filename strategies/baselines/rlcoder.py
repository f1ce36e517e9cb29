"""RLCoder: small blocks by BM25 and an encoder, with a block that says when to stop (ICL-strategies paper, Table 3).

Blocks of at most 15 lines; the best by BM25 are ranked by an encoder. An extra candidate, the stop block, says that no
more context is needed: what is ranked after it is left out. `repocoder_fn` is the RepoCoder mode of the same release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import Block, BlockKind, Dropped, Generate, Prompt, text_block
from ctxbench.strategies.layout import count, filled_stretches, last_tokens, left_block, left_flags, pieces
from ctxbench.strategies.registry import strategy

QUERY_LINES, QUERY_TOKENS = 20, 256
CROSS_FILE, WHOLE, SPARE = 1536, 2048, 10
"""Tokens for the blocks, for the prompt, and of that left over: the published commands' numbers."""
UNIT = "mini-block(lines=15)"
FIRST_CUT = "bm25(split=spaces)"
"""How the release ranks the blocks of which the encoder then sees some."""
STOP = "Don't need cross file context for completion"
_APART = "\n\n"
EMPTY_DRAFT = "empty_draft"


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
    choices = BlockSearch(encoder=encoder, candidates=candidates, blocks=blocks, stop=stop_block)
    return prompt(query, retrieve(repo, question(query.prefix), choices), budget=budget, whole=whole)


@strategy("base.repocoder_fn", kinds=(Kind.FUNCTION,))
def repocoder_fn(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    iterations: Annotated[int, AtLeast(1)] = 2,
    encoder: EncoderSpec = "minilm",
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
    blocks and its prompt are the default (``main.py``, ``retrieve_codeblocks``): with a draft the encoder ranks anew,
    by the code and the draft, but BM25's candidates are those of the code alone. RepoCoder's own program, with windows,
    is `lc.repocoder`, which takes functions too.

    Args:
        generate: the model, asked once less than there are rounds.
        iterations: rounds; 1 retrieves once and asks for no draft.
        encoder: what ranks the candidates (paper: UniXcoder, not trained for it).
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
    undrafted = BlockSearch(encoder=encoder, candidates=first_candidates, blocks=first_blocks)
    drafted = BlockSearch(encoder=encoder, candidates=candidates, blocks=blocks, stop=stop_block)
    current_prompt = prompt(query, retrieve(repo, text, undrafted), budget=budget, whole=whole)
    for _ in range(iterations - 1):
        draft = generate(current_prompt, role="draft", max_tokens=draft_tokens)
        if not draft.strip():
            flags.append(EMPTY_DRAFT)
        current_prompt = prompt(query, retrieve(repo, text, drafted, f"\n{draft}"), budget=budget, whole=whole)
    return current_prompt.flagged(*flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSearch:
    """The settings of a search for blocks: the ranking, and how many are shown."""

    encoder: str
    candidates: int = 50
    """How many BM25 keeps."""
    blocks: int = 5
    """How many are ranked for the prompt, the stop block counted."""
    stop: bool = False
    """Whether there is a stop block."""


@dataclass(frozen=True, slots=True)
class RetrievedBlocks:
    """The blocks to show, best first, and those behind the stop block."""

    hits: tuple[Hit, ...]
    scores: tuple[float, ...]
    places: tuple[tuple[Place, ...], ...]
    """The stretches without blank lines that each is made of."""
    stopped: tuple[Dropped, ...] = ()
    considered: int = 0


def question(left_context: str) -> str:
    """Return the query: the last 20 non-blank lines of the left context."""
    return "\n".join([line for line in left_context.split("\n") if line.strip()][-QUERY_LINES:])


def retrieve(repo: Repository, text: str, choices: BlockSearch, drafted: str = "") -> RetrievedBlocks:
    """Return the blocks for a query text, and what was drafted after it, which only the encoder sees.

    The encoder compares the last 256 tokens with each block as the prompt shows it.
    """
    hits = repo.search(text, unit=UNIT, ranker=FIRST_CUT, top=choices.candidates)
    if not hits:
        return RetrievedBlocks((), (), ())
    sign = repo.language.comment
    block_texts = [_header(hit, sign) + _code(hit.text, sign) for hit in hits]
    compared = [*block_texts, f"{sign} {STOP}"] if choices.stop else block_texts
    scores = repo.similarity(last_tokens(text + drafted, QUERY_TOKENS), compared, ranker=choices.encoder)
    order = sorted(range(len(compared)), key=lambda at: (-scores[at], at))[: choices.blocks]
    end = order.index(len(hits)) if choices.stop and len(hits) in order else len(order)
    best = order[:end]
    stopped = [Dropped.of(_block(hits[at], sign, (hits[at].place,), scores[at]), "stop") for at in order[end + 1 :]]
    return RetrievedBlocks(
        tuple(hits[at] for at in best),
        tuple(scores[at] for at in best),
        tuple(filled_stretches(repo, hits[at].place) for at in best),
        tuple(stopped),
        len(hits),
    )


def prompt(query: Query, retrieved: RetrievedBlocks, *, budget: int, whole: int) -> Prompt:
    """Return the prompt: blocks from the best to the worst, the target's path, the left context.

    The blocks are cut at their end to `budget` tokens, the left context at its beginning, so that all is `whole`
    tokens with 10 to spare.

    Args:
        budget: tokens for the blocks.
        whole: tokens for the prompt.
    """
    blocks, dropped, used = _packed(query, retrieved, budget)
    path = f"{_APART}# file path: {query.path}{_APART}"
    left_context = left_block(query, whole - used - count(path) - SPARE)
    flags = left_flags(query, left_context)
    if not retrieved.considered:
        flags = (*flags, "no_candidates")
    elif not retrieved.hits:
        flags = (*flags, "stopped")
    return Prompt(blocks=(*blocks, text_block(path), left_context), dropped=(*dropped, *retrieved.stopped), flags=flags)


def _packed(query: Query, retrieved: RetrievedBlocks, budget: int) -> tuple[list[Block], list[Dropped], int]:
    sign = query.language.comment
    blocks: list[Block] = []
    dropped: list[Dropped] = []
    used = 0
    for hit, score, places in zip(retrieved.hits, retrieved.scores, retrieved.places, strict=True):
        header = (_APART if blocks else "") + _header(hit, sign)
        block = _block(hit, sign, places, score)
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


def _block(hit: Hit, sign: str, places: tuple[Place, ...], score: float) -> Block:
    return Block(kind=BlockKind.SIMILAR, text=_code(hit.text, sign), places=places, score=score)


def _code(text: str, sign: str) -> str:
    return "\n".join(f"{sign} {line}" for line in text.split("\n") if line)

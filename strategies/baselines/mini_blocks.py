"""RLCoder's candidates and prompt, which its RepoCoder mode shares (RLCoder's release; strategies of the ICL paper).

Blocks of at most 15 lines; the best by BM25 are ranked by an encoder. An extra candidate, the stop block, says
that no more context is needed: what is ranked after it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxbench.bench.code_tokens import count, pieces
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.types import Hit
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.baselines.left import last_tokens, left_block, left_flags

QUERY_LINES, QUERY_TOKENS = 20, 256
CROSS_FILE, WHOLE, SPARE = 1536, 2048, 10
"""Tokens for the blocks, for the prompt, and of that left over: the published commands' numbers."""
MINI, FIXED = "mini-block(lines=15)", "chunk(lines=12)"
STOP = "Don't need cross file context for completion"
_APART = "\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSearch:
    """The settings of a search for blocks: the ranking, and how many are shown."""

    encoder: str
    unit: str = MINI
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


def retrieve(repo: Repository, text: str, choices: BlockSearch) -> RetrievedBlocks:
    """Return the blocks for a query text.

    The encoder compares the query's last 256 tokens with each block as the prompt shows it.
    """
    hits = repo.search(text, unit=choices.unit, ranker="bm25", top=choices.candidates)
    if not hits:
        return RetrievedBlocks((), (), ())
    sign = _sign(repo.language)
    block_texts = [_header(hit, sign) + _code(hit.text, sign) for hit in hits]
    compared = [*block_texts, f"{sign} {STOP}"] if choices.stop else block_texts
    scores = repo.similarity(last_tokens(text, QUERY_TOKENS), compared, ranker=choices.encoder)
    order = sorted(range(len(compared)), key=lambda at: (-scores[at], at))[: choices.blocks]
    end = order.index(len(hits)) if choices.stop and len(hits) in order else len(order)
    best = order[:end]
    stopped = [
        Dropped(kind=BlockKind.SIMILAR, places=(hits[at].place,), score=scores[at], reason="stop")
        for at in order[end + 1 :]
    ]
    return RetrievedBlocks(
        tuple(hits[at] for at in best),
        tuple(scores[at] for at in best),
        tuple(_stretches(repo, hits[at].place) for at in best),
        tuple(stopped),
        len(hits),
    )


def prompt(
    query: Query, retrieved: RetrievedBlocks, *, budget: int = CROSS_FILE, whole: int = WHOLE, written: str = ""
) -> Prompt:
    """Return the prompt: blocks from the best to the worst, the target's path, the left context.

    The blocks are cut at their end to `budget` tokens, the left context at its beginning, so that all is `whole`
    tokens with 10 to spare.

    Args:
        query: the sample's query.
        retrieved: the blocks.
        budget: tokens for the blocks.
        whole: tokens for the prompt.
        written: what a model has written after the cursor so far.
    """
    blocks, dropped, used = _packed(query, retrieved, budget)
    path = f"{_APART}# file path: {query.path}{_APART}"
    left_context = left_block(query, whole - used - count(path) - SPARE, written)
    flags = left_flags(query, left_context)
    if not retrieved.considered:
        flags = (*flags, "no_candidates")
    elif not retrieved.hits:
        flags = (*flags, "stopped")
    return Prompt(blocks=(*blocks, _text(path), left_context), dropped=(*dropped, *retrieved.stopped), flags=flags)


def _packed(query: Query, retrieved: RetrievedBlocks, budget: int) -> tuple[list[Block], list[Dropped], int]:
    sign = _sign(query.language)
    blocks: list[Block] = []
    dropped: list[Dropped] = []
    used = 0
    for hit, score, places in zip(retrieved.hits, retrieved.scores, retrieved.places, strict=True):
        header = (_APART if blocks else "") + _header(hit, sign)
        code = pieces(_code(hit.text, sign))
        room = budget - used - count(header)
        if room <= 0:
            dropped.append(Dropped(kind=BlockKind.SIMILAR, places=places, score=score, reason="budget"))
            used = budget
            continue
        text = "".join(code[:room])
        blocks += [
            _text(header),
            Block(kind=BlockKind.SIMILAR, text=text, places=places, score=score, cut=room < len(code)),
        ]
        used += count(header) + min(room, len(code))
    return blocks, dropped, used


def _stretches(repo: Repository, place: Place) -> tuple[Place, ...]:
    """Return the stretches without blank lines of a place."""
    return tuple(_runs(split_lines(repo.read(place.path)), place))


def _runs(lines: Sequence[str], place: Place) -> Iterator[Place]:
    start = None
    for at in range(place.start, place.end + 1):
        filled = at < place.end and bool(lines[at].strip())
        if filled and start is None:
            start = at
        elif not filled and start is not None:
            yield Place(path=place.path, start=start, end=at)
            start = None


def _header(hit: Hit, sign: str) -> str:
    # The release counts non-blank lines here; these are the file's, from 1, both ends named.
    return f"{sign} file path: {hit.place.path}\n{sign} lines: {hit.place.start + 1}-{hit.place.end}\n"


def _code(text: str, sign: str) -> str:
    return "\n".join(f"{sign} {line}" for line in text.split("\n") if line)


def _sign(language: Language) -> str:
    return "#" if language == PYTHON else "//"


def _text(text: str) -> Block:
    return Block(kind=BlockKind.TEXT, text=text)

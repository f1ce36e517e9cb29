"""RLCoder: blocks of up to 15 lines, ranked by BM25 and an encoder, with a stop block (ICL-strategies paper, Table 3).

The stop block is a candidate that means "no more context": blocks ranked after it are dropped.
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
from ctxbench.strategies.layout import count, filled_stretches, infile_flags, last_tokens, left_block, tokenize
from ctxbench.strategies.registry import strategy

QUERY_LINES, QUERY_TOKENS = 20, 256
CROSS_FILE, WHOLE, SPARE = 1536, 2048, 10
"""Tokens for the blocks, for the prompt, and to leave unused, as in the published commands."""
UNIT = "mini-block(lines=15)"
FIRST_CUT = "bm25(split=spaces)"
"""The release's first ranking. The encoder then ranks its best blocks."""
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
    """Show small blocks similar to the code before the cursor, up to the stop block.

    The ICL-strategies paper used RLCoder's trained retriever; ``encoder=unixcoder(path=…)`` sets its weights. For an
    encoder without that training, the stop block has no special meaning.

    Args:
        encoder: ranks the candidates.
        candidates: blocks that BM25 keeps (RLCoder's release: 100 for the trained retriever, 50 for the plain one).
        blocks: ranked blocks considered, including the stop block (release: 10 and 5).
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
    """Show code similar to the code before the cursor, and search again with a draft.

    The ICL-strategies paper does not say which RepoCoder program it ran. RLCoder's release has such a mode, so blocks
    and prompt are RLCoder's (``main.py``, ``retrieve_codeblocks``). With a draft, an encoder ranks again by code and
    draft, but BM25's candidates are those of the code alone. Each stage has its own encoder; RepoCoder in the
    release's README uses plain UniXcoder twice. `lc.repocoder` is RepoCoder's own program, with windows.

    Args:
        generate: the model, asked in each round but the last.
        iterations: rounds; 1 retrieves once without a draft.
        encoder: ranks the candidates (release: ``--retriever_model_path``).
        first_encoder: ranks the candidates before there is a draft (``--rlcoder_model_path``); by default `encoder`.
        first_candidates: blocks that BM25 keeps before there is a draft.
        first_blocks: blocks shown before there is a draft, at most.
        candidates: blocks that BM25 keeps once there is a draft.
        blocks: ranked blocks to consider once there is a draft, including the stop block.
        stop_block: whether a candidate "no more context" is ranked too, once there is a draft.
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
    """Blocks to show, best first, and blocks ranked after the stop block."""

    blocks: tuple[tuple[str, Block], ...]
    stopped: tuple[Dropped, ...] = ()
    no_candidates: bool = False


def question(left_context: str) -> str:
    """Return the search query: the last 20 nonblank lines before the cursor."""
    return "\n".join([line for line in left_context.split("\n") if line.strip()][-QUERY_LINES:])


def retrieve(
    repo: Repository, text: str, encoder: str, candidates: int, blocks: int, *, stop: bool = False, drafted: str = ""
) -> RetrievedBlocks:
    """Rank blocks with BM25, then with an encoder.

    Args:
        encoder: encoder spec.
        candidates: number of BM25's best blocks that the encoder ranks.
        blocks: number of ranked blocks for the prompt, including the stop block.
        drafted: draft after the query text; only the encoder reads it.
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
    """Return the prompt: blocks, best first, then the target file's path and the code before the cursor.

    Blocks are truncated at the end to `budget` tokens. The code before the cursor is truncated at its start, so that
    the prompt has at least `SPARE` tokens fewer than `whole`.
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
        code = tokenize(block.text)
        text = "".join(code[:room])
        blocks += [text_block(header), replace(block, text=text, cut=room < len(code))]
        used += count(header) + min(room, len(code))
    return blocks, dropped, used


def _header(hit: Hit, sign: str) -> str:
    # The release counts nonblank lines. These are the file's lines, from 1, both ends included.
    return f"{sign} file path: {hit.place.path}\n{sign} lines: {hit.place.start + 1}-{hit.place.end}\n"


def _block(hit: Hit, sign: str) -> Block:
    code = "\n".join(f"{sign} {line}" for line in hit.text.split("\n") if line)
    return Block(kind=BlockKind.SIMILAR, text=code, places=(hit.place,))

"""ReACC: the chunk of 300 words with the best sum of dense and lexical score, and the next chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EncoderSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.retrieval.units import Hit, units
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import TRIMMED, Block, BlockKind, Generate, Prompt
from ctxbench.strategies.icl.prompts import render
from ctxbench.strategies.layout import count, infile_flags, last_tokens, left_block
from ctxbench.strategies.registry import strategy

UNIT = "words(count=300)"
QUERY_WORDS = 300
DENSE, LEXICAL = 100.0, 1.1
CONSIDERED = 100
WHOLE = 924
"""Tokens for chunk and context together."""
Chunk = tuple[Place, str]
"""Place and text. The text distinguishes chunks of one long line."""


@strategy("base.reacc", kinds=(Kind.FUNCTION,))
def reacc(
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    encoder: EncoderSpec = "minilm",
    whole: Annotated[int, AtLeast(1)] = WHOLE,
) -> Prompt:
    """Show the chunk of 300 words most like the code before the cursor, and the chunk after it.

    ReACC's own retriever (``microsoft/reacc-py-retriever``, several vectors per text, Python only) is not available
    here; `encoder` replaces it. A model that follows instructions gets the chunks as the one FILE of the ICL prompt. A
    model that only continues code gets them before the code, all cut to `whole` tokens.

    Args:
        encoder: computes the dense score.
        whole: maximum tokens of the prompt for a model that only continues code.
    """
    # As many words as a chunk has: the paper does not state the release's query.
    search_text = " ".join(query.prefix.split()[-QUERY_WORDS:])
    best = _best(repo, search_text, encoder)
    if best is None:
        prompt = render(query, (), instruction="direct") if generate.instructs else _plain(query, None, whole)
        return prompt.flagged("no_candidates")
    chunks = _with_next(repo, best)
    if generate.instructs:
        return render(query, (chunks,), instruction="B")
    return _plain(query, chunks, whole)


def _best(repo: Repository, text: str, encoder: str) -> Hit | None:
    """Return the chunk with the highest sum of scores. Outside a ranking's best, a chunk gets its lowest score."""
    dense, lexical = (
        {(hit.place, hit.text): hit for hit in repo.search(text, unit=UNIT, ranker=ranker, top=CONSIDERED)}
        for ranker in (encoder, "bm25")
    )
    hits = {**lexical, **dense}
    if not hits:
        return None
    scored = {chunk: DENSE * _score(dense, chunk) + LEXICAL * _score(lexical, chunk) for chunk in hits}
    best = min(scored, key=lambda chunk: (-scored[chunk], chunk))
    return replace(hits[best], score=scored[best])


def _score(hits: Mapping[Chunk, Hit], chunk: Chunk) -> float:
    if chunk in hits:
        return hits[chunk].score
    return min((hit.score for hit in hits.values()), default=0.0)


def _with_next(repo: Repository, hit: Hit) -> Block:
    path = hit.place.path
    chunks = units(path, repo.read(path), repo.language, UNIT)
    at = next((at for at, chunk in enumerate(chunks) if chunk.place == hit.place and chunk.text == hit.text), None)
    text, place = hit.text, hit.place
    if at is not None and at + 1 < len(chunks):
        following = chunks[at + 1]
        place = Place(path=path, start=hit.place.start, end=following.place.end)
        # A line ends between the chunks, or a blank separates them in the same line.
        text += ("\n" * (following.place.start - hit.place.end + 1) or " ") + following.text
    # The text begins and ends at words, perhaps inside a line.
    return Block(kind=BlockKind.SIMILAR, text=text, places=(place,), score=hit.score, cut=True)


def _plain(query: Query, chunks: Block | None, whole: int) -> Prompt:
    left_context = left_block(query, whole)
    flags = infile_flags(query, left_context, by_lines=False)
    room = whole - count(left_context.text)
    if chunks is None or room <= 1:
        return Prompt(blocks=(left_context,), flags=flags)
    whole_text = f"{chunks.text}\n\n"
    text = last_tokens(whole_text, room)
    if text != whole_text and TRIMMED not in flags:
        flags = (*flags, TRIMMED)
    return Prompt(blocks=(replace(chunks, text=text), left_context), flags=flags)

"""RepoFuse: definitions that the file refers to and code like it, ranked together, the most relevant first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EncoderSpec, Unmasked
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt, text_block
from ctxbench.strategies.layout import HALF, filled_stretches, infile_block, infile_flags, last_tokens
from ctxbench.strategies.registry import strategy
from ctxbench.strategies.tokens import count

CHUNK = 10
"""Lines of a chunk that are not blank."""
MASKED = frozenset({"ctxbench", "projbench"})
"""Benchmarks whose line samples hide the import of what they ask for, which RepoFuse was measured without."""
_RETRIEVED = 50
"""How many chunks are retrieved, of which the best in other files are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPiece:
    """A piece of another file that may be shown."""

    kind: BlockKind
    path: str
    text: str
    places: tuple[Place, ...]


@strategy("lc.repofuse")
def repofuse(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    *,
    rationale: bool = True,
    analogies: Annotated[int, AtLeast(0)] = 5,
    encoder: EncoderSpec = "minilm",
    query_tokens: Annotated[int, AtLeast(1)] = 200,
    budget: Annotated[int, AtLeast(0)] = HALF,
    infile: Annotated[int, AtLeast(1)] = HALF,
    unmasked: Unmasked = False,
) -> Prompt:
    """Show definitions that the file refers to and chunks that follow code like it, the most relevant first.

    RepoFuse, as the InferCom paper compares with it: left context only. Rationale context is found by static
    analysis where RepoFuse asks Jedi.

    Args:
        query: the sample's query.
        repo: the repository.
        rationale: show definitions that the file refers to.
        analogies: how many chunks.
        encoder: what ranks all candidates: an encoder's spec, ``bm25`` or ``jaccard``.
        query_tokens: how much of the in-file text's end they are compared with; more than the encoder reads
            would be cut at its end.
        budget: tokens for the context.
        infile: tokens for the in-file text.
        unmasked: see the import lines that samples mask, as in that paper.
    """
    file_block = infile_block(query, infile)
    related = [*_rationale(query, repo)] if rationale else []
    related += _analogy(query, repo, analogies) if analogies else ()
    candidates = list({(piece.path, piece.text): piece for piece in reversed(related)}.values())[::-1]
    blocks, dropped = _pack(_ranked(query, repo, candidates, encoder, query_tokens), repo.language.comment, budget)
    flags = [*infile_flags(query, file_block)]
    flags += ["no_candidates"] * (not candidates) + ["masked_imports"] * (
        rationale and not unmasked and query.benchmark in MASKED
    )
    return Prompt(blocks=(*blocks, file_block), dropped=tuple(dropped), flags=tuple(flags))


def _rationale(query: Query, repo: Repository) -> Iterator[RankedPiece]:
    from ctxbench.strategies.rationale import rationale  # noqa: PLC0415 - it imports the parsers

    for definition in rationale(query, repo):
        kind = BlockKind.API if definition.stub else BlockKind.SIMILAR
        text = "\n".join(line for line in definition.text.split("\n") if line.strip())
        places = (definition.place,) if definition.stub else filled_stretches(repo, definition.place)
        yield RankedPiece(kind=kind, path=definition.place.path, text=text, places=places)


def _analogy(query: Query, repo: Repository, most: int) -> Iterator[RankedPiece]:
    """Yield the chunks that follow those like the last lines before the cursor, as CrossCodeEval's lists do."""
    lines = [line for line in query.prefix.split("\n") if line.strip()][-CHUNK:]
    hits = repo.search("\n".join(lines), unit=f"chunk(lines={CHUNK})", ranker="bm25", top=_RETRIEVED)
    for hit in [hit for hit in hits if hit.place.path != query.path][:most]:
        rows = split_lines(repo.read(hit.place.path))
        after = [row for row in range(hit.place.end, len(rows)) if rows[row].strip()][:CHUNK]
        # Nothing follows the last chunk of a file: it is shown itself.
        place = Place(path=hit.place.path, start=after[0], end=after[-1] + 1) if after else hit.place
        text = "\n".join(row for row in rows[place.start : place.end] if row.strip())
        yield RankedPiece(kind=BlockKind.SIMILAR, path=place.path, text=text, places=filled_stretches(repo, place))


def _ranked(
    query: Query, repo: Repository, candidates: Sequence[RankedPiece], encoder: str, tokens: int
) -> list[tuple[float, RankedPiece]]:
    """Return the candidates with their scores, best first; among equals in the order found."""
    text = last_tokens(query.prefix, tokens)
    scores = repo.similarity(text, [candidate.text for candidate in candidates], ranker=encoder) if candidates else ()
    return sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])


def _pack(ranked: Sequence[tuple[float, RankedPiece]], mark: str, budget: int) -> tuple[list[Block], list[Dropped]]:
    """Take from the best down, under a header; stop at the first that does not fit."""
    header = f"{mark} Here are some relevant code fragments from other files of the repo:\n\n"
    blocks = [
        Block(
            kind=piece.kind,
            text=f"{mark} the below code fragment is found in {piece.path}\n"
            + "".join(f"{mark} {line}\n" for line in piece.text.split("\n"))
            + "\n",
            places=piece.places,
            score=score,
        )
        for score, piece in ranked
    ]
    used, fitting = count(header), 0
    for block in blocks:
        used += count(block.text)
        if used > budget:
            break
        fitting += 1
    dropped = [Dropped.of(block) for block in blocks[fitting:]]
    return [text_block(header), *blocks[:fitting]] if fitting else [], dropped

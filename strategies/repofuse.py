"""RepoFuse: definitions that the file refers to, and similar code, ranked together.

RepoFuse finds definitions with Jedi. Here, names are resolved through imports, without types.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from tree_sitter import Node

from ctxbench.bench.languages.base import DefinitionName, Language
from ctxbench.bench.languages.outline import Outline
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.parameters import AtLeast, EncoderSpec, Unmasked
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt, text_block
from ctxbench.strategies.layout import (
    HALF,
    RepositoryFiles,
    count,
    filled_stretches,
    infile_block,
    infile_flags,
    last_tokens,
)
from ctxbench.strategies.registry import strategy

CHUNK = 10
MASKED = frozenset({"ctxbench", "projbench"})
"""Benchmarks whose line samples hide the target's import. RepoFuse was not measured with this."""
_RETRIEVED = 50
"""Number of chunks to retrieve. The best ones in other files are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateBlock:
    """A definition or chunk of another file, as a candidate for the prompt."""

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
    """Show definitions that the file refers to and chunks that follow similar code, the most relevant first.

    This is RepoFuse as the InferCom paper compares with it: left context only. Static analysis finds the rationale
    context, for which RepoFuse asks Jedi.

    Args:
        rationale: show definitions that the file refers to.
        analogies: number of chunks.
        encoder: ranks all candidates: an encoder's spec, ``bm25`` or ``jaccard``.
        query_tokens: tokens at the end of the in-file text that candidates are compared with; if the encoder reads
            fewer, it cuts them at their end.
        budget: tokens for the context.
        infile: tokens for the in-file text.
        unmasked: see the import lines that samples mask, as in that paper.
    """
    file_block = infile_block(query, infile)
    related = definitions(query, repo) if rationale else []
    related += _analogy(query, repo, analogies) if analogies else ()
    candidates = list({(candidate.path, candidate.text): candidate for candidate in reversed(related)}.values())[::-1]
    blocks, dropped = _pack(_ranked(query, repo, candidates, encoder, query_tokens), repo.language.comment, budget)
    flags = [*infile_flags(query, file_block)]
    flags += ["no_candidates"] * (not candidates) + ["masked_imports"] * (
        rationale and not unmasked and query.benchmark in MASKED
    )
    return Prompt(blocks=(*blocks, file_block), dropped=tuple(dropped), flags=tuple(flags))


def _analogy(query: Query, repo: Repository, most: int) -> Iterator[CandidateBlock]:
    lines = [line for line in query.prefix.split("\n") if line.strip()][-CHUNK:]
    hits = repo.search("\n".join(lines), unit=f"chunk(lines={CHUNK})", ranker="bm25", top=_RETRIEVED)
    for hit in [hit for hit in hits if hit.place.path != query.path][:most]:
        rows = split_lines(repo.read(hit.place.path))
        after = [row for row in range(hit.place.end, len(rows)) if rows[row].strip()][:CHUNK]
        # The last chunk of a file has no successor: show the chunk itself.
        place = Place(path=hit.place.path, start=after[0], end=after[-1] + 1) if after else hit.place
        text = "\n".join(row for row in rows[place.start : place.end] if row.strip())
        yield CandidateBlock(kind=BlockKind.SIMILAR, path=place.path, text=text, places=filled_stretches(repo, place))


def _ranked(
    query: Query, repo: Repository, candidates: Sequence[CandidateBlock], encoder: str, tokens: int
) -> list[tuple[float, CandidateBlock]]:
    text = last_tokens(query.prefix, tokens)
    scores = repo.similarity(text, [candidate.text for candidate in candidates], ranker=encoder) if candidates else ()
    return sorted(zip(scores, candidates, strict=True), key=lambda pair: -pair[0])


def _pack(ranked: Sequence[tuple[float, CandidateBlock]], mark: str, budget: int) -> tuple[list[Block], list[Dropped]]:
    header = f"{mark} Here are some relevant code fragments from other files of the repo:\n\n"
    blocks = [
        Block(
            kind=candidate.kind,
            text=f"{mark} the below code fragment is found in {candidate.path}\n"
            + "".join(f"{mark} {line}\n" for line in candidate.text.split("\n"))
            + "\n",
            places=candidate.places,
            score=score,
        )
        for score, candidate in ranked
    ]
    used, fitting = count(header), 0
    for block in blocks:
        used += count(block.text)
        if used > budget:
            break
        fitting += 1
    dropped = [Dropped.of(block) for block in blocks[fitting:]]
    return [text_block(header), *blocks[:fitting]] if fitting else [], dropped


_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})


def definitions(query: Query, repo: Repository) -> list[CandidateBlock]:
    """Return the definitions in other files that the target file refers to before the cursor, without duplicates.

    Functions are complete. Python classes and modules, and Java types, are stubs. Variables are left out.
    """
    outline = cache(lambda path: repo.language.outline(repo.read(path)))
    names = repo.language.referred(query.path, query.cursor.line, RepositoryFiles(repo))
    others = (_definition(name, repo, outline) for name in names if name.path != query.path)
    return list(dict.fromkeys(other for other in others if other is not None and other.text))


def _definition(name: DefinitionName, repo: Repository, outline: Callable[[str], Outline]) -> CandidateBlock | None:
    text = repo.read(name.path)
    if name.kind == "module":
        spans = [(0, len(split_lines(text)))]
    elif name.kind == "class":
        bare = name.name.rpartition(".")[2]
        spans = [kind.lines for kind in outline(name.path).types if kind.name == bare]
    else:
        functions = (function for function in outline(name.path).functions if not function.inside)
        spans = [function.lines for function in functions if function.qualified == name.name]
    if not spans:
        return None
    place = Place(path=name.path, start=spans[0][0], end=spans[0][1])
    code = "\n".join(text.split("\n")[place.start : place.end])
    if name.kind == "function":
        code = "\n".join(line for line in code.split("\n") if line.strip())
        places = filled_stretches(repo, place)
        return CandidateBlock(kind=BlockKind.SIMILAR, path=name.path, text=code, places=places)
    shown = stub(textwrap.dedent(code) if name.kind == "class" else text, repo.language)
    return CandidateBlock(kind=BlockKind.API, path=name.path, text=shown, places=(place,))


def stub(text: str, language: Language) -> str:
    """Return source text without function bodies, comments and blank lines."""
    source = Source(text, language)
    pieces, end = [], 0
    for start, stop, instead in _cuts(source.root, language):
        pieces += [source.data[end:start], instead]
        end = stop
    stubbed = b"".join([*pieces, source.data[end:]]).decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in stubbed.split("\n") if line.strip())


def _cuts(root: Node, language: Language) -> list[tuple[int, int, bytes]]:
    body = b"..." if language.indented else b"{ ... }"
    cuts, stack = [], [root]
    while stack:
        node = stack.pop()
        inner = node.child_by_field_name("body") if node.type in language.function_nodes else None
        if node.type in _COMMENTS:
            cuts.append((node.start_byte, node.end_byte, b""))
        elif inner is not None:
            cuts.append((inner.start_byte, inner.end_byte, body))
        stack.extend(child for child in node.children if child != inner)
    return sorted(cuts)

"""Engine: show what a context engine answers, in RepoCoder's layout."""

from __future__ import annotations

from typing import Annotated

from ctxbench.bench.parameters import AtLeast, EngineSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.layout import (
    BLOCKS,
    BUDGET,
    HALF,
    Fragment,
    first_shown_line,
    similar_prompt,
)
from ctxbench.strategies.registry import strategy

_MOST = 200_000
"""Characters before the cursor that an engine is asked with."""


@strategy("engine", kinds=(Kind.LINE, Kind.FUNCTION))
def engine(
    query: Query,
    repo: Repository,
    *,
    name: EngineSpec = "ripgrep",
    top: Annotated[int, AtLeast(1)] = 20,
    lines: Annotated[int, AtLeast(1)] = 20,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    blocks: Annotated[int, AtLeast(0)] = BLOCKS,
    infile: Annotated[int, AtLeast(1)] = HALF,
) -> Prompt:
    """Show the places that a context engine answers with, asked with the target file up to the cursor.

    Args:
        query: the sample's query.
        repo: the repository.
        name: the engine: an installed one, ``file.py@Class`` or ``file.toml``.
        top: places that it is asked for.
        lines: lines of a place that are shown at most, from its first.
        budget: tokens for what is shown, header included.
        blocks: places shown at most.
        infile: tokens for the in-file text.
    """
    before = first_shown_line(query, infile)
    fragments = []
    for hit in repo.engine(name).search(query.prefix[-_MOST:], top=top, before=before):
        place = Place(path=hit.place.path, start=hit.place.start, end=min(hit.place.end, hit.place.start + lines))
        text = "\n".join(hit.text.split("\n")[:lines])
        if text.strip():
            fragments.append(Fragment(paths=(place.path,), text=text, places=(place,), score=hit.score))
    return similar_prompt(query, fragments, budget=budget, most=blocks, infile=infile)

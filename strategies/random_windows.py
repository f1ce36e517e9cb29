"""Random windows in RepoCoder's layout: a control that retrieval has to beat to be worth anything."""

from __future__ import annotations

import random
from typing import Annotated

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import spans, split_lines
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.layout import BLOCKS, BUDGET, HALF, Fragment, similar_prompt
from ctxbench.strategies.registry import strategy

_FILES = 5
"""How many files are looked into for each block."""


@strategy("lc.random_windows", kinds=(Kind.LINE, Kind.FUNCTION))
def random_windows(
    query: Query,
    repo: Repository,
    *,
    seed: int = 0,
    window: Annotated[int, AtLeast(2)] = 20,
    stride: Annotated[int, AtLeast(1)] = 10,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    blocks: Annotated[int, AtLeast(0)] = BLOCKS,
    infile: Annotated[int, AtLeast(1)] = HALF,
) -> Prompt:
    """Show windows of other files, drawn at random.

    The draw depends on the run's seed, on the sample and on `seed`, and on nothing else. Files are drawn first, five
    for each block, then windows among theirs.

    Args:
        query: the sample's query.
        repo: the repository.
        seed: for another draw.
        window: lines of a window.
        stride: lines from one window to the next.
        budget: tokens for the windows, header included.
        blocks: windows shown at most.
        infile: tokens for the in-file text.
    """
    lot = random.Random(f"{query.seed} {seed} {query.id}")  # noqa: S311 - no secret
    others = [path for path in repo.files() if path != query.path]
    windows = [
        Fragment(
            paths=(path,),
            text="\n".join(lines[start:end]),
            places=(Place(path=path, start=start, end=end),),
            score=0.0,
        )
        for path in lot.sample(others, min(len(others), _FILES * blocks))
        for lines in [split_lines(repo.read(path))]
        for start, end in spans(len(lines), window, stride)
    ]
    drawn = lot.sample(windows, min(len(windows), blocks))
    return similar_prompt(query, drawn, budget=budget, most=blocks, infile=infile)

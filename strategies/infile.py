"""`lc.infile`: the target file alone, the baseline of the strategies that show left context."""

from __future__ import annotations

from typing import Annotated

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.layout import WHOLE, infile_prompt
from ctxbench.strategies.registry import strategy


@strategy("lc.infile", kinds=(Kind.LINE, Kind.FUNCTION))
def infile(query: Query, repo: Repository, *, limit: Annotated[int, AtLeast(1)] = WHOLE) -> Prompt:  # noqa: ARG001
    """Show the target file up to the cursor and nothing else."""
    return infile_prompt(query, limit)

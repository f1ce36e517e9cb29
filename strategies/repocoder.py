"""RepoCoder, its baselines, and `engine`, which shows a context engine's results in the same layout."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast, EngineSpec
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Place, Query
from ctxbench.bench.windows import WindowHit, spans, split_lines
from ctxbench.strategies.api import Block, Generate, Prompt
from ctxbench.strategies.layout import (
    BLOCKS,
    BUDGET,
    HALF,
    WHOLE,
    as_found,
    draft_query,
    extended,
    first_shown_line,
    fragment,
    infile_prompt,
    similar_prompt,
    unfinished_query,
)
from ctxbench.strategies.registry import strategy

RETRIEVED = 20
"""Number of windows to retrieve. The prompt shows those that fit."""
_FILES = 5
_MOST = 200_000
LINE_DRAFT, FUNCTION_DRAFT = 128, 1024


@strategy("lc.infile", kinds=(Kind.LINE, Kind.FUNCTION))
def infile(query: Query, repo: Repository, *, limit: Annotated[int, AtLeast(1)] = WHOLE) -> Prompt:  # noqa: ARG001
    """Show the target file up to the cursor and nothing else."""
    return infile_prompt(query, limit)


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

    The random numbers depend only on the run's seed, the sample and `seed`. Five files are drawn per window to show.

    Args:
        seed: another seed leads to another draw.
        window: lines of a window.
        stride: lines from one window to the next.
        budget: tokens for the windows, header included.
        blocks: windows shown at most.
        infile: tokens for the in-file text.
    """
    lot = random.Random(f"{query.seed} {seed} {query.id}")  # noqa: S311 - no secret
    others = [path for path in repo.files() if path != query.path]
    windows = [
        fragment([path], "\n".join(lines[start:end]), (Place(path=path, start=start, end=end),), 0.0)
        for path in lot.sample(others, min(len(others), _FILES * blocks))
        for lines in [split_lines(repo.read(path))]
        for start, end in spans(len(lines), window, stride)
    ]
    drawn = lot.sample(windows, min(len(windows), blocks))
    return similar_prompt(query, drawn, budget=budget, most=blocks, infile=infile)


@dataclass(frozen=True, slots=True)
class WindowSearch:
    """A repository search for windows of `size` lines, every `stride` lines."""

    query: Query
    repo: Repository
    size: int
    stride: int
    before: int
    """First line of the target file that the prompt shows. Only earlier windows of this file are searched."""
    folder: str = ""

    def search_prefix(self) -> list[Block]:
        """Return the code that follows the windows most similar to the lines before the cursor."""
        hits = self._hits(unfinished_query(self.query, self.size, self.before))
        return extended(hits, self.repo, self.size, self.stride, self.folder)

    def search_draft(self, draft: str, partial: str, lines: str) -> list[Block]:
        """Return the windows most similar to the lines around a draft. `repocoder` explains `partial` and `lines`."""
        join, first_only = partial == "join", lines == "first"
        text = draft_query(self.query, draft, self.size, start=self.before, join=join, first_only=first_only)
        return as_found(self._hits(text), self.folder)

    def _hits(self, text: str) -> tuple[WindowHit, ...]:
        return self.repo.similar_windows(text, top=RETRIEVED, size=self.size, stride=self.stride, before=self.before)


@strategy("lc.repocoder", kinds=(Kind.LINE, Kind.FUNCTION))
def repocoder(  # noqa: PLR0913 - one keyword for each choice that a run can make
    query: Query,
    repo: Repository,
    generate: Generate,
    *,
    iterations: Annotated[int, AtLeast(0)] = 2,
    window: Annotated[int, AtLeast(2)] = 20,
    stride: Annotated[int, AtLeast(1)] = 10,
    budget: Annotated[int, AtLeast(0)] = BUDGET,
    blocks: Annotated[int, AtLeast(0)] = BLOCKS,
    infile: Annotated[int, AtLeast(1)] = HALF,
    q2_partial: Literal["join", "drop"] = "join",
    q2_lines: Literal["all", "first"] = "all",
    empty_header: bool = False,
    own_file: bool = True,
) -> Prompt:
    """Show windows like the code before the cursor; then, with a draft, windows like the drafted code.

    The first round searches with `window` lines before the cursor line and shows what follows the windows found. Every
    further round asks the model for a draft and searches with the lines around it.

    Args:
        generate: the model, asked in each round but the last.
        iterations: rounds; 1 retrieves once without a draft, 0 shows only the file.
        window: lines of a window.
        stride: lines from one window to the next.
        budget: tokens for the similar code, header included.
        blocks: windows shown at most.
        infile: tokens for the in-file text.
        q2_partial: in the query, ``join`` the start of the cursor line to the draft, or ``drop`` it.
        q2_lines: lines of the draft in the query.
        empty_header: show the header of the similar code even without windows.
        own_file: also search the target file, above the part that the prompt shows.
    """
    if iterations == 0:
        return infile_prompt(query, infile)

    def prompt_for(fragments: list[Block]) -> Prompt:
        return similar_prompt(query, fragments, budget=budget, most=blocks, infile=infile, empty_header=empty_header)

    before = first_shown_line(query, infile) if own_file else 0
    windows = WindowSearch(query, repo, window, stride, before)
    prompt = prompt_for(windows.search_prefix())
    flags: list[str] = []
    for _ in range(iterations - 1):
        draft = generate(prompt, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
        if not draft.strip():
            flags.append("empty_draft")
        prompt = prompt_for(windows.search_draft(draft, q2_partial, q2_lines))
    return prompt.flagged(*flags)


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
    """Show the places that a context engine returns for the target file up to the cursor.

    Args:
        name: the engine: an installed one, ``file.py@Class`` or ``file.toml``.
        top: places to ask for.
        lines: lines of a place shown at most, from its first.
        budget: tokens for the places, header included.
        blocks: places shown at most.
        infile: tokens for the in-file text.
    """
    before = first_shown_line(query, infile)
    fragments = []
    for hit in repo.engine(name).search(query.prefix[-_MOST:], top=top, before=before):
        place = Place(path=hit.place.path, start=hit.place.start, end=min(hit.place.end, hit.place.start + lines))
        text = "\n".join(hit.text.split("\n")[:lines])
        if text.strip():
            fragments.append(fragment([place.path], text, (place,), hit.score))
    return similar_prompt(query, fragments, budget=budget, most=blocks, infile=infile)

"""RepoCoder: retrieve, draft, retrieve with the draft; on lines, and on function bodies as in RepoEval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from ctxbench.bench.parameters import AtLeast
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Kind, Query
from ctxbench.bench.windows import WindowHit
from ctxbench.strategies.api import Generate, Prompt
from ctxbench.strategies.layout import (
    BLOCKS,
    BUDGET,
    HALF,
    Fragment,
    as_found,
    draft_query,
    extended,
    first_shown_line,
    infile_prompt,
    similar_prompt,
    unfinished_query,
)
from ctxbench.strategies.registry import strategy

RETRIEVED = 20
"""How many windows are retrieved, of which the packing takes what fits."""
LINE_DRAFT, FUNCTION_DRAFT = 128, 1024
"""Most tokens of a draft."""


@dataclass(frozen=True, slots=True)
class WindowSearch:
    """Looks in a repository for windows of `size` lines, every `stride` lines."""

    query: Query
    repo: Repository
    size: int
    stride: int
    before: int
    """Windows of the target file count too if they end at or before this line, at which the text shown of it begins."""
    repo_paths: bool = False
    """Whether paths are shown with the repository's name before them."""

    def undrafted(self) -> list[Fragment]:
        """Return what follows the windows most like the lines before the cursor line."""
        hits = self._hits(unfinished_query(self.query, self.size))
        return self._named(extended(hits, self.repo, self.size, self.stride))

    def drafted(self, draft: str, partial: str, lines: str) -> list[Fragment]:
        """Return the windows most like the lines around a draft; see `repocoder` for `q2_partial` and `q2_lines`."""
        text = draft_query(self.query, draft, self.size, join=partial == "join", first_only=lines == "first")
        return self._named(as_found(self._hits(text)))

    def _named(self, fragments: list[Fragment]) -> list[Fragment]:
        if not self.repo_paths:
            return fragments
        return [
            replace(fragment, paths=tuple(f"{self.repo.name}/{p}" for p in fragment.paths)) for fragment in fragments
        ]

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
    """Show windows like the code before the cursor; then, with a draft, windows like the code it makes.

    The first round looks for the 20 lines before the cursor line and shows what follows the windows
    found. Every further round asks the model for a draft and looks for the lines around it.

    Args:
        query: the sample's query.
        repo: the repository.
        generate: the model, asked once less than there are rounds.
        iterations: rounds; 1 retrieves once and asks for no draft, 0 shows the file only.
        window: lines of a window.
        stride: lines from one window to the next.
        budget: tokens for the similar code, header included.
        blocks: windows shown at most.
        infile: tokens for the in-file text.
        q2_partial: whether the cursor line's start is joined to the draft in the query, or dropped.
        q2_lines: which lines of the draft enter the query.
        empty_header: print the header of the similar code even over none.
        own_file: look in the target file too, before the text that is shown of it.
    """
    if iterations == 0:
        return infile_prompt(query, infile)

    def prompt_for(fragments: list[Fragment]) -> Prompt:
        return similar_prompt(query, fragments, budget=budget, most=blocks, infile=infile, empty_header=empty_header)

    before = first_shown_line(query, infile) if own_file else 0
    windows = WindowSearch(query, repo, window, stride, before)
    prompt = prompt_for(windows.undrafted())
    flags: list[str] = []
    for _ in range(iterations - 1):
        draft = generate(prompt, role="draft", max_tokens=LINE_DRAFT if query.kind is Kind.LINE else FUNCTION_DRAFT)
        if not draft.strip():
            flags.append("empty_draft")
        prompt = prompt_for(windows.drafted(draft, q2_partial, q2_lines))
    return Prompt(blocks=prompt.blocks, dropped=prompt.dropped, flags=(*prompt.flags, *flags))

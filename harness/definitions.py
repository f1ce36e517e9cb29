"""Retrieval metrics: how well a prompt covers the definitions that the reference uses; see docs/metrics.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxbench.bench.code_tokens import count
from ctxbench.bench.types import Place, Use
from ctxbench.harness.metrics import BUDGETS, DENSITY, FIRST, FOUND
from ctxbench.strategies.api import Block, BlockKind, Prompt

Scores = dict[str, float | None]
RETRIEVED = (BlockKind.SIMILAR, BlockKind.API)
"""Kinds of retrieved blocks, which strategies may leave out of a prompt."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, class or variable of another file that a sample's reference uses."""

    name: str
    path: str
    lines: tuple[tuple[int, str], ...]
    """Line number, from 0, and stripped text of each line that names the definition. Includes a class's constructors
    and a Java method's overloads."""

    def is_within(self, places: Iterable[Place]) -> bool:
        """Return whether one of the places covers a line that names the definition."""
        return any(
            place.path == self.path and place.start <= at < place.end for place in places for at, _ in self.lines
        )

    def end_in(self, block: Block) -> int | None:
        """Return the character offset in the block's text where a line of the definition first ends; None without one.

        The block's places must cover a line of the definition, and its text must contain one. In an API block, the
        definition's name in the text is enough.
        """
        if not self.is_within(block.places):
            return None
        ends = [at + len(line) for _, line in self.lines if (at := block.text.find(line)) >= 0]
        if not ends and block.kind is BlockKind.API:
            ends = [match.end() for match in re.finditer(rf"\b{re.escape(self.name)}\b", block.text)]
        return min(ends, default=None)


def needed(uses: Iterable[Use]) -> tuple[Use, ...]:
    """Drop each use that another use extends: with ``rules`` and ``rules.round_up``, keep only the latter."""
    names = {use.name for use in uses}
    return tuple(use for use in uses if not any(longer.startswith(f"{use.name}.") for longer in names))


def definition_scores(definitions: Sequence[Definition], prompt: Prompt) -> Scores:
    """Return recall and precision of definitions at each token budget, and the reciprocal rank of the first found.

    Args:
        prompt: the prompt; its retrieved blocks, best first if all have scores, are truncated at each of `BUDGETS`.

    Returns:
        Values of `metrics.RETRIEVAL`; precision is the number of definitions per 1,000 tokens. All are None without a
        definition, and precision also without retrieved text.
    """
    ranked = retrieved(prompt)
    if all(block.score is not None for block in ranked):
        ranked.sort(key=lambda block: -(block.score or 0.0))
    first_at: dict[Definition, int] = {}
    best, used = 0.0, 0
    for rank, block in enumerate(ranked, 1):
        for definition in definitions:
            if definition not in first_at and (end := definition.end_in(block)) is not None:
                first_at[definition] = used + count(block.text[:end])
                best = best or 1 / rank
        used += count(block.text)
    scores: Scores = {FIRST: best if definitions else None}
    for budget in BUDGETS:
        hits, shown_tokens = sum(at <= budget for at in first_at.values()), min(used, budget)
        scores[f"{FOUND}@{budget}"] = hits / len(definitions) if definitions else None
        scores[f"{DENSITY}@{budget}"] = 1000 * hits / shown_tokens if definitions and shown_tokens else None
    return scores


def retrieved(prompt: Prompt) -> list[Block]:
    """Return the prompt's retrieved blocks: similar code and APIs."""
    return [block for block in prompt.blocks if block.kind in RETRIEVED]

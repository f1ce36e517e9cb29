"""Definitions in other files that an answer uses, and the measures of retrieval by them.

docs/metrics.md has their definitions, ranges and limits.
"""

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
"""Kinds of blocks that can be left out of a prompt."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in another file that an answer uses."""

    name: str
    """The unqualified name in the definition."""
    path: str
    lines: tuple[tuple[int, str], ...]
    """Lines that name the definition, with their numbers from 0. A class includes those of its constructors, and a Java
    method those of its overloads."""

    def is_within(self, places: Iterable[Place]) -> bool:
        """Return whether places cover a line that names the definition."""
        return any(
            place.path == self.path and place.start <= at < place.end for place in places for at, _ in self.lines
        )

    def end_in(self, block: Block) -> int | None:
        """Return the offset in a block's text at which the definition's line ends; None if it is not shown.

        A block must cover the place and contain the line. An API entry with a rewritten signature must contain the
        name.
        """
        if not self.is_within(block.places):
            return None
        ends = [at + len(line) for _, line in self.lines if (at := block.text.find(line)) >= 0]
        if not ends and block.kind is BlockKind.API:
            ends = [match.end() for match in re.finditer(rf"\b{re.escape(self.name)}\b", block.text)]
        return min(ends, default=None)


def needed(uses: Iterable[Use]) -> tuple[Use, ...]:
    """Return the uses that count. Of ``rules`` and ``rules.round_up`` only the latter counts."""
    names = {use.name for use in uses}
    return tuple(use for use in uses if not any(longer.startswith(f"{use.name}.") for longer in names))


def definition_scores(definitions: Sequence[Definition], prompt: Prompt) -> Scores:
    """Return recall and precision of definitions at each of `BUDGETS`, and the reciprocal rank of the first.

    Args:
        definitions: definitions that the answer uses.
        prompt: the prompt; its retrieved blocks, best first, are cut at each budget.

    Returns:
        Values of `RETRIEVAL`, whose declarations have the ranges. All are None without a definition, and precision is
        None without a retrieved block.
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
    """Return the blocks of a prompt that can be left out."""
    return [block for block in prompt.blocks if block.kind in RETRIEVED]

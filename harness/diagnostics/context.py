"""Measures of the retrieved blocks of a prompt against the target. Pure.

Retrieved are blocks of code from the repository and of APIs; the file itself and fixed text are not. Names are
compared as words, so that another thing of the same name counts too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ctxbench.bench.code_tokens import count
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Place, Use
from ctxbench.harness.metrics import identifiers
from ctxbench.strategies.api import Block, BlockKind, Prompt

_RETRIEVED = (BlockKind.SIMILAR, BlockKind.API)
_WORD = re.compile(r"[A-Za-z_]\w*")

Lines = Callable[[Place], Sequence[str]]
"""A place -> its lines in the repository."""


def api_recall(uses: Sequence[Use], prompt: Prompt) -> float | None:
    """Return the share of the target's internal APIs that a retrieved block names.

    Args:
        uses: the names that the target needs; of ``rules`` and ``rules.round_up`` only the latter counts.
        prompt: as the model read it.

    Returns:
        0..1; None if the sample does not record its uses.
    """
    names = {use.name for use in uses}
    apis = {name.rpartition(".")[2] for name in names if not any(longer.startswith(f"{name}.") for longer in names)}
    if not apis:
        return None
    words = {word for block in _retrieved(prompt) for word in _WORD.findall(block.text)}
    return len(apis & words) / len(apis)


def waste(prompt: Prompt, target: str, language: Language, lines: Lines) -> float | None:
    """Return the share of retrieved tokens that could not help to name what the target names.

    These are the tokens of blocks that were dropped, and of blocks without any identifier that the target has and
    the rest of the prompt (the file, fixed text) has not. A dropped block of code counts as its lines, as comments;
    a dropped API as the mean API that is shown, or its first line if none is.

    Args:
        prompt: as the model read it, with its dropped blocks.
        target: the answer behind the cursor.
        language: of the target.
        lines: gives the lines of a place.

    Returns:
        0..1; None if nothing was retrieved, or the target names nothing beyond the rest of the prompt.
    """
    blocks = _retrieved(prompt)
    dropped = [dropped_block for dropped_block in prompt.dropped if dropped_block.kind in _RETRIEVED]
    if not blocks and not dropped:
        return None
    needed = set(identifiers.extract(str(language), target))
    for block in prompt.blocks if needed else ():
        if block.kind not in _RETRIEVED:
            needed.difference_update(_WORD.findall(block.text))
    if not needed:
        return None
    costs = [(block, count(block.text)) for block in blocks]
    total = sum(cost for _, cost in costs)
    wasted = sum(cost for block, cost in costs if needed.isdisjoint(_WORD.findall(block.text)))
    apis = [cost for block, cost in costs if block.kind is BlockKind.API]
    mean_api = sum(apis) / len(apis) if apis else None
    left_out = 0.0
    for dropped_block in dropped:
        text = lines(dropped_block.places[0]) if dropped_block.places else ()
        if dropped_block.kind is BlockKind.API:
            left_out += mean_api if mean_api is not None else _tokens(text[:1])
        else:
            left_out += _tokens(text)
    return (wasted + left_out) / (total + left_out) if total + left_out else None


def _retrieved(prompt: Prompt) -> list[Block]:
    return [block for block in prompt.blocks if block.kind in _RETRIEVED]


def _tokens(lines: Sequence[str]) -> int:
    return count("".join(f"# {line}\n" for line in lines))

"""Cut a prompt that is longer than the model's window; the paper cuts nothing, so the rule is ours. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ctxbench.bench.code_tokens import count
from ctxbench.strategies.api import BlockKind, Dropped, Prompt
from ctxbench.strategies.icl.retrieved import ContextExcerpt

ANSWER = 1024
"""Tokens that are kept free for the answer."""
TRIMMED, FAILED = "overflow_trimmed", "overflow_failed"
Layout = Callable[[Sequence[ContextExcerpt]], Prompt]


def fit(excerpts: Sequence[ContextExcerpt], layout: Layout, *, window: int, overflow: str, mode: str) -> Prompt:
    """Return the prompt, cut to the window where it is over it.

    Retrieved excerpts go first, from the lowest rank; the last one is cut by whole lines, then the current file from
    its top; instruction, steps and target are never cut. A prompt that is still over the window is flagged too.

    Args:
        excerpts: the excerpts of the prompt, in order.
        layout: makes the prompt of excerpts.
        window: tokens of the model's window, by `bench.code_tokens`; 0 for no limit.
        overflow: ``trim``, or ``fail``: leave the prompt as it is, for the harness to fail it.
        mode: ``around`` cuts the lines farthest from the retrieved functions, whole functions first; ``tail`` cuts
            a file's end.
    """
    prompt = layout(excerpts)
    if not window or _fits(prompt, window):
        return prompt
    if overflow == "fail":
        return dataclasses.replace(prompt, flags=(*prompt.flags, FAILED))
    remaining = list(excerpts)
    dropped: list[Dropped] = []
    while not _fits(prompt, window) and (retrieved_excerpts := [excerpt for excerpt in remaining if excerpt.retrieved]):
        worst = retrieved_excerpts[-1]
        at = remaining.index(worst)
        if len(retrieved_excerpts) > 1 or not (less := _cut(remaining, at, _order(worst, mode), layout, window)):
            dropped.append(_dropped(worst))
            del remaining[at]
        else:
            remaining[at] = less
        prompt = layout(remaining)
    if remaining and not _fits(prompt, window):
        top = [frozenset([number]) for number in remaining[-1].lines.numbers]
        less = _cut(remaining, len(remaining) - 1, top, layout, window)
        if less:
            remaining[-1] = less
        else:
            dropped.append(_dropped(remaining.pop()))
        prompt = layout(remaining)
    return dataclasses.replace(prompt, dropped=(*prompt.dropped, *dropped), flags=(*prompt.flags, TRIMMED))


def _fits(prompt: Prompt, window: int) -> bool:
    return count(prompt.text) + ANSWER <= window


def _dropped(excerpt: ContextExcerpt) -> Dropped:
    return Dropped(
        kind=BlockKind.API if excerpt.documents else BlockKind.SIMILAR,
        places=excerpt.places,
        score=excerpt.score,
        reason="budget",
    )


def _cut(
    excerpts: Sequence[ContextExcerpt], at: int, order: Sequence[frozenset[int]], layout: Layout, window: int
) -> ContextExcerpt | None:
    """Return the block without as few lines, taken out in this order, as make the prompt fit; None if none do."""
    lines = excerpts[at].lines

    def without(steps: int) -> ContextExcerpt:
        gone = frozenset().union(*order[:steps])
        return dataclasses.replace(excerpts[at], lines=lines.without(gone), cut=True)

    def fits(steps: int) -> bool:
        return _fits(layout([*excerpts[:at], without(steps), *excerpts[at + 1 :]]), window)

    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    if not order or not fits(low) or without(low).lines.blank:
        return None
    return without(low)


def _order(excerpt: ContextExcerpt, mode: str) -> list[frozenset[int]]:
    """Return what is cut of a block, first what goes first."""
    last_first = list(reversed(excerpt.lines.numbers))
    if mode == "tail" or not excerpt.parts:
        return [frozenset([number]) for number in (last_first if mode == "tail" else _far(excerpt, last_first))]
    parts = sorted(excerpt.parts, key=lambda part: (-_distance(excerpt, part), part.start))
    in_parts = frozenset(number for part in parts for number in part)
    singly = _far(excerpt, [number for number in last_first if number not in in_parts])
    return [frozenset(part) for part in parts] + [frozenset([number]) for number in singly]


def _far(excerpt: ContextExcerpt, numbers: Sequence[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (-_distance(excerpt, range(number, number + 1)), -number))


def _distance(excerpt: ContextExcerpt, part: range) -> int:
    """Return how many lines lie between a part and the nearest function found; 0 inside of it."""
    return min(
        (0 if number in part else max(part.start - number, number - part.stop + 1) for number in excerpt.focus),
        default=0,
    )

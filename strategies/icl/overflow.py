"""What is left out where a prompt is over the model's window [decision; the paper cuts nothing]. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ctxbench.bench.code_tokens import count
from ctxbench.strategies.api import BlockKind, Dropped, Prompt
from ctxbench.strategies.icl.found import Shown

ANSWER = 1024
"""Tokens that are kept free for the answer."""
TRIMMED, FAILED = "overflow_trimmed", "overflow_failed"
Layout = Callable[[Sequence[Shown]], Prompt]


def fit(shown: Sequence[Shown], layout: Layout, *, window: int, overflow: str, mode: str) -> Prompt:
    """Return the prompt, cut to the window where it is over it.

    What was found goes first, from the lowest rank; the last of it is cut by whole lines, then the current file
    from its top; instruction, steps and target never are. A prompt that is over the window even so is flagged too.

    Args:
        shown: what stands in the prompt, in order.
        layout: makes the prompt of it.
        window: tokens of the model's window, by `bench.code_tokens`; 0 for no limit.
        overflow: ``trim``, or ``fail``: leave the prompt as it is, for the harness to fail it.
        mode: ``around`` cuts of a file what is farthest from the functions found, whole functions first; ``tail``
            cuts its end.
    """
    prompt = layout(shown)
    if not window or _fits(prompt, window):
        return prompt
    if overflow == "fail":
        return dataclasses.replace(prompt, flags=(*prompt.flags, FAILED))
    kept = list(shown)
    dropped: list[Dropped] = []
    while not _fits(prompt, window) and (found := [one for one in kept if one.retrieved]):
        worst = found[-1]
        at = kept.index(worst)
        if len(found) > 1 or not (less := _cut(kept, at, _order(worst, mode), layout, window)):
            dropped.append(_dropped(worst))
            del kept[at]
        else:
            kept[at] = less
        prompt = layout(kept)
    if kept and not _fits(prompt, window):
        top = [frozenset([number]) for number in kept[-1].lines.numbers]
        less = _cut(kept, len(kept) - 1, top, layout, window)
        if less:
            kept[-1] = less
        else:
            dropped.append(_dropped(kept.pop()))
        prompt = layout(kept)
    return dataclasses.replace(prompt, dropped=(*prompt.dropped, *dropped), flags=(*prompt.flags, TRIMMED))


def _fits(prompt: Prompt, window: int) -> bool:
    return count(prompt.text) + ANSWER <= window


def _dropped(one: Shown) -> Dropped:
    return Dropped(
        kind=BlockKind.API if one.documents else BlockKind.SIMILAR, places=one.places, score=one.score, reason="budget"
    )


def _cut(kept: Sequence[Shown], at: int, order: Sequence[frozenset[int]], layout: Layout, window: int) -> Shown | None:
    """Return the block without as few lines, taken out in this order, as make the prompt fit; None if none do."""
    lines = kept[at].lines

    def without(steps: int) -> Shown:
        gone = frozenset().union(*order[:steps])
        return dataclasses.replace(kept[at], lines=lines.without(gone), cut=True)

    def fits(steps: int) -> bool:
        return _fits(layout([*kept[:at], without(steps), *kept[at + 1 :]]), window)

    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle + 1, high)
    if not order or not fits(low) or without(low).lines.blank:
        return None
    return without(low)


def _order(one: Shown, mode: str) -> list[frozenset[int]]:
    """Return what is cut of a block, first what goes first."""
    last_first = list(reversed(one.lines.numbers))
    if mode == "tail" or not one.parts:
        return [frozenset([number]) for number in (last_first if mode == "tail" else _far(one, last_first))]
    parts = sorted(one.parts, key=lambda part: (-_distance(one, part), part.start))
    taken = frozenset(number for part in parts for number in part)
    singly = _far(one, [number for number in last_first if number not in taken])
    return [frozenset(part) for part in parts] + [frozenset([number]) for number in singly]


def _far(one: Shown, numbers: Sequence[int]) -> list[int]:
    return sorted(numbers, key=lambda number: (-_distance(one, range(number, number + 1)), -number))


def _distance(one: Shown, part: range) -> int:
    """Return how many lines lie between a part and the nearest function found; 0 inside of it."""
    return min(
        (0 if number in part else max(part.start - number, number - part.stop + 1) for number in one.focus), default=0
    )

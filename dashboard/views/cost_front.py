"""The Pareto front: what no other is both cheaper and better than. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float | None, float | None]], *, lower_is_better: bool = False) -> frozenset[int]:
    """Return the positions of the points that no other point dominates.

    One dominates another if it costs no more and is no worse, and is cheaper or better. Points that are equal in both
    do not dominate each other, so they are on the front together or not at all.

    Args:
        points: cost and value of each; with one of them missing a point is neither on the front nor dominates another.
        lower_is_better: whether a lower value is the better one. A lower cost always is.
    """
    sign = -1.0 if lower_is_better else 1.0
    known = [
        (cost, sign * value, at) for at, (cost, value) in enumerate(points) if cost is not None and value is not None
    ]
    kept: set[int] = set()
    # Cheapest first, of equal cost the best first: then a point is dominated exactly by what stands before it.
    known.sort(key=lambda one: (one[0], -one[1]))
    best: tuple[float, float] | None = None
    for cost, value, at in known:
        if best is None or value > best[1] or (cost, value) == best:
            best = (cost, value)
            kept.add(at)
    return frozenset(kept)

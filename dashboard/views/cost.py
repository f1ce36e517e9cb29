"""From a group of the leaderboard to what its strategies reach and what that costs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from ctxbench.dashboard.theme import SERIES
from ctxbench.dashboard.views.compare import Row
from ctxbench.dashboard.views.compare_choice import labels
from ctxbench.dashboard.views.cost_front import front
from ctxbench.dashboard.views.figure import Figure
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.rows import Group
from ctxbench.harness.leaderboard.rows import Row as BoardRow

COSTS: Mapping[str, str] = {
    "tokens_in": "tokens in",
    "tokens_out": "tokens out",
    "tokens_cached": "cached tokens",
    "context_tokens": "context tokens",
    "calls": "calls",
    "seconds": "seconds",
    "price": "price (US$)",
}
"""What a sample costs -> how it is called; means over the samples that count."""


_LOOKS = {
    "on the front": (SERIES[0], "circle"),
    "not on the front": (SERIES[1], "square"),
    "control": (SERIES[7], "cross"),
}
"""What a point is -> its colour and its shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One strategy of a group: what it costs and what it reaches."""

    name: str
    run: str
    cost: float | None
    """Mean a sample, None where nobody knows."""
    mean: float | None
    low: float | None
    high: float | None
    control: bool
    """Made with the answer, or not ranked for another reason: shown, and never on the front."""
    front: bool


def cost(row: BoardRow, name: str) -> float | None:
    """Return a cost of a row (`COSTS`, or a stage's seconds), None where nobody knows."""
    if name in {"context_tokens", "calls", "seconds"}:
        found: float | None = getattr(row, name)
        return found
    return row.costs.get(name)


def known(group: Group) -> list[str]:
    """Return those of `COSTS` that at least one row has."""
    return [name for name in COSTS if any(cost(row, name) is not None for row in group.rows)]


def points(group: Group, metric: str, name: str) -> tuple[Point, ...]:
    """Return each row's cost and value; the front is of ranked rows only.

    Args:
        group: rows that may be compared with each other.
        metric: the value, with its 95% interval.
        name: one of `COSTS`.
    """
    rows, names = group.rows, labels([row.run for row in group.rows])
    found = [row.metrics.get(metric) for row in rows]
    ranked = [
        (cost(row, name), one.mean if one else None) if row.run.ranked else (None, None)
        for row, one in zip(rows, found, strict=True)
    ]
    lower = metric in group.scales and group.scales[metric].lower_is_better
    best = front(ranked, lower_is_better=lower)
    return tuple(
        Point(
            name=label,
            run=row.run.id,
            cost=cost(row, name),
            mean=one.mean if one else None,
            low=one.low if one else None,
            high=one.high if one else None,
            control=not row.run.ranked,
            front=at in best,
        )
        for at, (row, label, one) in enumerate(zip(rows, names, found, strict=True))
    )


def left_out(found: Sequence[Point]) -> list[str]:
    """Return the strategies that cannot be drawn, because their cost or their value is not known."""
    return [one.name for one in found if one.cost is None or one.mean is None]


def rows(found: Sequence[Point], metric: str, name: str) -> list[Row]:
    """Return one row a point, the cheapest first, those of unknown cost last."""
    numbered = _numbered(found)
    return [
        {
            "point": numbered.get(one.run),
            "strategy": one.name,
            COSTS[name]: amount(one.cost, name),
            metric: None if one.mean is None else Figure(numbers.value(one.mean, _half(one))),
            "95% interval": _interval(one),
            "front": "control" if one.control else "on the front" if one.front else "",
        }
        for one in _ordered(found)
    ]


def _ordered(found: Sequence[Point]) -> list[Point]:
    return sorted(found, key=lambda one: (one.cost is None, one.cost or 0.0, one.name))


def _numbered(found: Sequence[Point]) -> dict[str, int]:
    """Return run -> the number beside its point: a name has no room there. From left to right, as the table's rows."""
    drawn = [one.run for one in _ordered(found) if one.cost is not None and one.mean is not None]
    return {run: number for number, run in enumerate(drawn, 1)}


def chart(found: Sequence[Point], metric: str, unit: str, name: str) -> alt.LayerChart:
    """Return value against cost: intervals as bars, the front as filled points joined by steps."""
    numbered = _numbered(found)
    drawn: list[Row] = [
        {
            "number": numbered[one.run],
            "name": one.name,
            "cost": one.cost,
            "mean": one.mean,
            "low": one.low,
            "high": one.high,
            "kind": "control" if one.control else "on the front" if one.front else "not on the front",
            "shown": f"{numbers.interval(one.mean, one.low, one.high)} {unit}",
            "costs": (numbers.dollars if name == "price" else numbers.amount)(one.cost),
        }
        for one in found
        if one.cost is not None and one.mean is not None
    ]
    looks = {one: look for one, look in _LOOKS.items() if any(row["kind"] == one for row in drawn)}
    kinds, colours, shapes = list(looks), [one for one, _ in looks.values()], [one for _, one in looks.values()]
    base = alt.Chart(alt.InlineData(values=drawn)).encode(
        x=alt.X("cost:Q", title=f"{COSTS[name]} a sample", scale=alt.Scale(zero=False, nice=True)),
        tooltip=[
            alt.Tooltip("name:N", title="strategy"),
            alt.Tooltip("shown:N", title=metric),
            alt.Tooltip("costs:N", title=COSTS[name]),
            alt.Tooltip("kind:N", title="Pareto front"),
        ],
    )
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=colours),
        legend=alt.Legend(title=None, orient="top", direction="vertical", symbolOpacity=1),
    )
    up = alt.Y("mean:Q", title=f"{metric} ({unit})", scale=alt.Scale(zero=False))
    steps = (
        alt.Chart(alt.InlineData(values=[row for row in drawn if row["kind"] == "on the front"]))
        .mark_line(interpolate="step-after", strokeDash=[5, 4], color=SERIES[0])
        .encode(x="cost:Q", y=up)
    )
    bars = base.mark_rule(strokeWidth=3, opacity=0.55).encode(y=alt.Y("low:Q"), y2="high:Q", color=colour)
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        y=up, color=colour, shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=shapes), legend=None)
    )
    beside = base.mark_text(align="left", dx=8, dy=-9, fontSize=13).encode(y=up, text="number:N")
    return alt.LayerChart(layer=[steps, bars, dots, beside]).properties(height=380)


def amount(number: float | None, name: str = "") -> Figure | None:
    """Return a cost that sorts as a number, with three significant digits; `name` is one of `COSTS`, or a stage."""
    return None if number is None else Figure((numbers.dollars if name == "price" else numbers.amount)(number))


def _half(one: Point) -> float | None:
    return numbers.half_width(one.low, one.high)


def _interval(one: Point) -> str:
    half = _half(one)
    return numbers.UNKNOWN if half is None else f"[{numbers.value(one.low, half)}, {numbers.value(one.high, half)}]"

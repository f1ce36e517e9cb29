"""Charts and tables of a metric against cost (points and their Pareto front) and over budgets (curves)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from ctxbench.dashboard.views import SERIES, Figure, estimated
from ctxbench.dashboard.views.compare import Row, labels
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import INTERVAL
from ctxbench.harness.leaderboard.curves import Curves
from ctxbench.harness.leaderboard.rows import Group

COSTS: Mapping[str, str] = {
    "tokens_in": "tokens in",
    "tokens_out": "tokens out",
    "tokens_cached": "cached tokens",
    "context_tokens": "context tokens",
    "calls": "calls",
    "seconds": "seconds",
    "strategy_seconds": "seconds of the strategy",
    "generator_seconds": "seconds of the model",
    "test_seconds": "seconds of the tests",
    "price": "price (US$)",
    "index_seconds": "index seconds of engines",
    "query_seconds": "query seconds of engines",
}
"""Cost per sample -> its displayed name. A row's cost is the mean over the samples that count."""
_LOOKS = {
    "on the front": (SERIES[0], "circle"),
    "not on the front": (SERIES[1], "square"),
    "control": (SERIES[7], "cross"),
}
"""Kind of a point -> its colour and shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPoint:
    """A strategy's mean cost per sample, and its mean value of the metric with the interval."""

    name: str
    run: str
    cost: float | None
    """Mean cost per sample; None if unknown."""
    mean: float | None
    low: float | None
    high: float | None
    control: bool
    """Whether the row is unranked, such as a control. Such points are never on the front."""
    front: bool


def available_costs(group: Group) -> list[str]:
    """Return the keys of `COSTS` with a value in at least one row, in the order of `COSTS`."""
    return [name for name in COSTS if any(row.costs.get(name) is not None for row in group.rows)]


def points(group: Group, metric: str, name: str) -> tuple[CostPoint, ...]:
    """Return each row's cost (`name`, a key of `COSTS`) and `metric`. Only ranked rows can be on the Pareto front."""
    rows, names = group.rows, labels([row.run for row in group.rows])
    values = [row.metrics.get(metric) for row in rows]
    ranked = [
        (row.costs.get(name), value.mean if value else None) if row.run.ranked else (None, None)
        for row, value in zip(rows, values, strict=True)
    ]
    lower = metric in group.scales and group.scales[metric].lower_is_better
    best = front(ranked, lower_is_better=lower)
    return tuple(
        CostPoint(
            name=label,
            run=row.run.id,
            cost=row.costs.get(name),
            mean=value.mean if value else None,
            low=value.low if value else None,
            high=value.high if value else None,
            control=not row.run.ranked,
            front=at in best,
        )
        for at, (row, label, value) in enumerate(zip(rows, names, values, strict=True))
    )


def headline(points: Sequence[CostPoint], metric: str, unit: str, name: str) -> str:
    """Return a sentence about the best and the cheapest strategy on the front."""
    on_front = sorted((point for point in points if point.front), key=lambda point: point.cost or 0.0)
    if not on_front:
        return f"No ranked strategy here has both {metric} and {COSTS[name]}."
    write = scales.dollars if name == "price" else scales.amount
    cheapest, best = (
        f"{point.name} reaches {scales.interval(point.mean, point.low, point.high)} {unit} of {metric} "
        f"at {write(point.cost)} {COSTS[name]} per sample"
        for point in (on_front[0], on_front[-1])
    )
    if len(on_front) == 1:
        return f"{best}: no other strategy is better or cheaper."
    return f"{best}; {cheapest}, and is the cheapest on the Pareto front."


def undrawn(points: Sequence[CostPoint]) -> list[str]:
    """Return the strategies that the chart leaves out, because their cost or value is unknown."""
    return [point.name for point in points if point.cost is None or point.mean is None]


def rows(points: Sequence[CostPoint], metric: str, name: str) -> list[Row]:
    """Return one row per point, the cheapest first. Unknown costs come last."""
    numbered = _numbered(points)
    return [
        {
            "point": numbered.get(point.run),
            "strategy": point.name,
            COSTS[name]: amount(point.cost, name),
            f"{metric} {INTERVAL}": estimated(point.mean, point.low, point.high),
            "front": "control" if point.control else "on the front" if point.front else "",
        }
        for point in _ordered(points)
    ]


def _ordered(points: Sequence[CostPoint]) -> list[CostPoint]:
    return sorted(points, key=lambda point: (point.cost is None, point.cost or 0.0, point.name))


def _numbered(points: Sequence[CostPoint]) -> dict[str, int]:
    drawn = [point.run for point in _ordered(points) if point.cost is not None and point.mean is not None]
    return {run: number for number, run in enumerate(drawn, 1)}


def chart(points: Sequence[CostPoint], metric: str, unit: str, name: str) -> alt.LayerChart:
    """Return the chart of value against cost: strategies as points, intervals as bars, the front joined by steps."""
    numbered = _numbered(points)
    drawn: list[Row] = [
        {
            "number": numbered[point.run],
            "name": point.name,
            "cost": point.cost,
            "mean": point.mean,
            "low": point.low,
            "high": point.high,
            "kind": "control" if point.control else "on the front" if point.front else "not on the front",
            "shown": f"{scales.interval(point.mean, point.low, point.high)} {unit}",
            "costs": (scales.dollars if name == "price" else scales.amount)(point.cost),
        }
        for point in points
        if point.cost is not None and point.mean is not None
    ]
    looks = {kind: look for kind, look in _LOOKS.items() if any(row["kind"] == kind for row in drawn)}
    kinds, colours, shapes = list(looks), [mark for mark, _ in looks.values()], [mark for _, mark in looks.values()]
    base = alt.Chart(alt.InlineData(values=drawn)).encode(
        x=alt.X("cost:Q", title=f"{COSTS[name]}, mean per sample", scale=alt.Scale(zero=False, nice=True)),
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
    """Return the cell of a cost, rounded to at least three digits; None if unknown. `name` is a key of `COSTS`."""
    return None if number is None else Figure((scales.dollars if name == "price" else scales.amount)(number))


def front(points: Sequence[tuple[float | None, float | None]], *, lower_is_better: bool = False) -> frozenset[int]:
    """Return the indices of the points on the Pareto front, which no other point dominates.

    A point dominates another if it is better in cost or value, and not worse in the other. Points with equal cost and
    value do not dominate each other, so both or neither are on the front.

    Args:
        points: cost and value of each point; points that lack either one are ignored.
    """
    sign = -1.0 if lower_is_better else 1.0
    candidates = [
        (cost, sign * value, at) for at, (cost, value) in enumerate(points) if cost is not None and value is not None
    ]
    undominated: set[int] = set()
    # Sorted by cost, then best first, a point can only be dominated by earlier points.
    candidates.sort(key=lambda candidate: (candidate[0], -candidate[1]))
    best: tuple[float, float] | None = None
    for cost, value, at in candidates:
        if best is None or value > best[1] or (cost, value) == best:
            best = (cost, value)
            undominated.add(at)
    return frozenset(undominated)


_LABEL, _LINE, _PLOT, _AIR = 280, 30, 320, 24
"""Sizes in pixels: a name in the legend, a line of the legend, the plot, and the margins beside the dots."""


def curves_chart(picture: Curves) -> alt.LayerChart:
    """Return the chart of `picture`: one line per strategy, with the intervals of its means."""
    rows = []
    for number, curve in enumerate(picture.curves):
        for point in curve.points:
            part = point.row.metrics[picture.metric]
            mean = part.mean or 0.0
            rows.append(
                {
                    "strategy": curve.strategy,
                    "at": point.at,
                    "x": picture.beside(point.at, number),
                    "mean": mean,
                    "low": mean if part.low is None else part.low,
                    "high": mean if part.high is None else part.high,
                    "shown": f"{scales.interval(part.mean, part.low, part.high)} {picture.unit}",
                }
            )
    names = [curve.strategy for curve in picture.curves]
    colours = [SERIES[at % len(SERIES)] for at in range(len(names))]
    kind = {"type": "log", "base": 2} if picture.logarithmic else {"zero": False}
    scale = alt.Scale(**kind, nice=False, padding=_AIR)
    across = alt.X(
        "x:Q",
        title=picture.parameter,
        scale=scale,
        axis=alt.Axis(values=list(picture.values), format=".6~g", labelOverlap="greedy"),
    )
    colour = alt.Color(
        "strategy:N",
        sort=names,
        scale=alt.Scale(domain=names, range=colours),
        legend=alt.Legend(title=None, orient="top", direction="vertical", labelLimit=_LABEL),
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=across,
        color=colour,
        tooltip=[
            alt.Tooltip("strategy:N"),
            alt.Tooltip("at:Q", title=picture.parameter),
            alt.Tooltip("shown:N", title=picture.metric),
        ],
    )
    up = alt.Y("mean:Q", title=f"{picture.metric} ({picture.unit})", scale=alt.Scale(zero=False))
    # Lines of similar grey get different dashes.
    lines = base.mark_line(strokeWidth=2).encode(y=up, strokeDash=alt.StrokeDash("strategy:N", sort=names, legend=None))
    bars = base.mark_rule(strokeWidth=2, opacity=0.55).encode(y=alt.Y("low:Q"), y2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(y=up)
    return alt.LayerChart(layer=[lines, bars, dots]).properties(height=_PLOT + _LINE * len(names))

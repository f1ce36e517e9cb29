"""Curves over a parameter as a chart of a page. Pure."""

from __future__ import annotations

import altair as alt

from ctxbench.dashboard.theme import SERIES
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.sections import Curves

_LABEL, _LINE, _PLOT, _AIR = 280, 30, 320, 24
"""Pixels of a name in the legend, of its line, of what is drawn below it, and to the left and right of the dots."""


def chart(picture: Curves) -> alt.LayerChart:
    """Return a line a strategy with the intervals of its means."""
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
                    "shown": f"{numbers.interval(part.mean, part.low, part.high)} {picture.unit}",
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
    # Lines that look alike in grey differ in their dashes.
    lines = base.mark_line(strokeWidth=2).encode(y=up, strokeDash=alt.StrokeDash("strategy:N", sort=names, legend=None))
    bars = base.mark_rule(strokeWidth=2, opacity=0.55).encode(y=alt.Y("low:Q"), y2="high:Q")
    dots = base.mark_point(filled=True, size=80, opacity=1).encode(y=up)
    return alt.LayerChart(layer=[lines, bars, dots]).properties(height=_PLOT + _LINE * len(names))

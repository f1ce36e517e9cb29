"""Means with their 95% intervals as bars, one a row of a group. Pure: returns a chart."""

from __future__ import annotations

from typing import Any

import altair as alt

from ctxbench.dashboard.views.leaderboard import heading, label, share_a_tier
from ctxbench.harness.leaderboard import Group, Row, numbers

_BEST, _OTHER, _APART = "shares the best tier", "behind", "not ranked"
_COLOURS = {_BEST: "#0072B2", _OTHER: "#B58900", _APART: "#8A9499"}
_ROW = 30
_AROUND = 95
"""Pixels of the axis, and of a line of the legend, which a phone has no room for side by side."""
_LEGEND = 18
_LONGEST = 280
"""Pixels of a name; the whole one is in the hover text."""


def chart(group: Group) -> alt.LayerChart | alt.FacetChart | None:
    """Return the chart of the ranking metric, None if no row has a mean.

    A bar from the interval's lower to its upper end, a point at the mean, a dashed line at the baseline's mean. Colours
    say what the test says, not what the eye makes of overlapping bars.
    """
    points = [point for row in group.rows if (point := _point(group, row)) is not None]
    if not points:
        return None
    states = [one for one in _COLOURS if any(point["state"] == one for point in points)]
    base = alt.Chart(alt.InlineData(values=points))
    y = alt.Y(
        "label:N", sort=None, title=None, axis=alt.Axis(labelLimit=_LONGEST, labelOverlap=False, labelFlush=False)
    )
    colour = alt.Color(
        "state:N",
        title=None,
        scale=alt.Scale(domain=states, range=[_COLOURS[one] for one in states]),
        legend=alt.Legend(orient="top", direction="vertical", symbolOpacity=1),
    )
    hover = [alt.Tooltip(f"{name}:N") for name in ("strategy", "rank", "tier", "mean", "n", "origin")]
    scale = alt.Scale(zero=False, nice=True)
    # Ending where the axis ends, a title that is longer than a phone's axis has room to its left.
    under = alt.Axis(titleAnchor="end", titleAlign="right")
    axis: dict[str, Any] = {"title": f"{heading(group, group.metric)}, 95% interval", "scale": scale, "axis": under}
    bars = base.mark_bar(height=8, opacity=0.55).encode(
        y=y, x=alt.X("low:Q", **axis), x2="high:Q", color=colour, tooltip=hover
    )
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        y=y, x=alt.X("value:Q", **axis), color=colour, tooltip=hover
    )
    layers: list[Any] = [bars, dots]
    baseline = next((point for point in points if point["baseline"]), None)
    if baseline is not None:
        line = alt.Chart(alt.InlineData(values=[{"value": baseline["value"]}]))
        layers.insert(0, line.mark_rule(strokeDash=[4, 4], color="#8A9499").encode(x=alt.X("value:Q", **axis)))
    return alt.layer(*layers).properties(height=_ROW * len(points) + _LEGEND * len(states) + _AROUND)


def _point(group: Group, row: Row) -> dict[str, Any] | None:
    found = row.metrics.get(group.metric)
    if found is None or found.mean is None:
        return None
    leaders = next((one.tier for one in group.rows if one.rank_low is not None), "")
    state = _APART if row.rank_low is None else _BEST if share_a_tier(row.tier, leaders) else _OTHER
    rank = "-" if row.rank_low is None else f"{row.rank_low}-{row.rank_high}"
    return {
        "label": label(row),
        "strategy": row.run.strategy,
        "rank": rank,
        "tier": row.tier or "-",
        "value": found.mean,
        "low": found.mean if found.low is None else found.low,
        "high": found.mean if found.high is None else found.high,
        "mean": numbers.interval(found.mean, found.low, found.high),
        "n": row.n,
        "origin": str(row.run.origin),
        "state": state,
        "baseline": row.run.strategy == group.baseline,
    }

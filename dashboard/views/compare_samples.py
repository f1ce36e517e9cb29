"""Two runs sample by sample: how their differences are spread, which differ most, one against the other. Pure."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import numpy as np

from ctxbench.dashboard.theme import SERIES
from ctxbench.dashboard.views.compare import Row
from ctxbench.dashboard.views.tables import Figure
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.compare import Compared, GapSpread, spread
from ctxbench.harness.leaderboard.grids import Blank

MOST_POINTS, MOST_ROWS = 2000, 100
"""Samples that are drawn, and that the table of the largest differences holds."""
_FEWEST_PLACES = 9
"""Of a drawing with fewer places for its points, e.g. right or wrong by right or wrong, no point could be hit."""
_SIDES = {"better": SERIES[0], "worse": SERIES[1]}


def spread_rows(pair: Compared) -> list[Row]:
    """Return how many samples differ by how much, the worst first; those without a difference in a row of their own."""
    drawn = spread(pair)
    rows: list[Row] = [{"from": part.low, "to": part.high, "samples": part.n} for part in drawn.bins]
    equal: Row = {"from": 0.0, "to": 0.0, "samples": drawn.equal}
    below = sum(part.high <= 0 for part in drawn.bins)
    return [*rows[:below], equal, *rows[below:]]


def spread_chart(pair: Compared) -> alt.LayerChart | Blank:
    """Return the differences of single samples as a histogram, the better ones blue."""
    drawn: GapSpread = spread(pair)
    if not drawn.bins:
        return Blank("GapSpread of the differences", "Both have the same value at every sample.")
    rows = [
        {
            "low": part.low,
            "high": part.high,
            "n": part.n,
            "side": "worse" if (part.low >= 0) is pair.lower_is_better else "better",
            "shown": f"{part.low:g} to {part.high:g} {pair.unit}",
        }
        for part in drawn.bins
    ]
    sides = [side for side in _SIDES if any(row["side"] == side for row in rows)]
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(binSpacing=1)
        .encode(
            x=alt.X("low:Q", title=f"difference of a sample ({pair.unit})", axis=alt.Axis(format=".4~g")),
            x2="high:Q",
            y=alt.Y("n:Q", title="samples"),
            y2=alt.datum(0),
            color=alt.Color(
                "side:N",
                title=None,
                scale=alt.Scale(domain=sides, range=[_SIDES[side] for side in sides]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[alt.Tooltip("shown:N", title="difference"), alt.Tooltip("n:Q", title="samples")],
        )
    )
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule(strokeDash=[4, 4], color=SERIES[7])
    return alt.LayerChart(layer=[bars, zero.encode(x="zero:Q")]).properties(height=240)


def scatter_chart(pair: Compared, address: Callable[[str], str], names: tuple[str, str]) -> alt.LayerChart | Blank:
    """Return a point a sample: one run's value against the other's; a click opens it.

    Args:
        pair: the two.
        address: sample -> where it is shown.
        names: what the run and the baseline are called.
    """
    of_pair, title = pair.paired, "Sample against sample"
    for name, of_run in zip(names, (of_pair.this, of_pair.other), strict=True):
        if len(set(of_run.tolist())) == 1:
            return Blank(title, f"{name} has the same value at every sample.")
    places = len(set(zip(of_pair.this.tolist(), of_pair.other.tolist(), strict=True)))
    if places < _FEWEST_PLACES:
        return Blank(title, f"{pair.metric} has so few values here that all points would lie on {places} places.")
    rows = [
        {
            "other": float(of_pair.other[at]),
            "this": float(of_pair.this[at]),
            "sample": of_pair.samples[at],
            "repository": of_pair.repos[at],
            "href": address(of_pair.samples[at]),
        }
        for at in _farthest(pair)[:MOST_POINTS]
    ]
    both = [*of_pair.this.tolist(), *of_pair.other.tolist()]
    line = (
        alt.Chart(alt.InlineData(values=[{"other": end, "this": end} for end in (min(both), max(both))]))
        .mark_line(strokeDash=[4, 4], color=SERIES[7])
        .encode(x="other:Q", y="this:Q")
    )
    points = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=45, opacity=0.55, color=SERIES[0], cursor="pointer")
        .encode(
            x=alt.X("other:Q", title=f"{names[1]}: {pair.metric} ({pair.unit})", axis=alt.Axis(format=".4~g")),
            y=alt.Y("this:Q", title=f"{names[0]}: {pair.metric} ({pair.unit})", axis=alt.Axis(format=".4~g")),
            href="href:N",
            tooltip=[
                alt.Tooltip("sample:N"),
                alt.Tooltip("repository:N"),
                alt.Tooltip("other:Q", title="baseline", format=".4~g"),
                alt.Tooltip("this:Q", title="this run", format=".4~g"),
            ],
        )
    )
    return alt.LayerChart(layer=[line, points]).properties(height=420)


def sample_rows(pair: Compared, address: Callable[[str], str]) -> list[Row]:
    """Return the samples that differ, those that differ most first, at most `MOST_ROWS`."""
    of_pair = pair.paired
    return [
        {
            "open": address(of_pair.samples[at]),
            "sample": of_pair.samples[at],
            "repository": of_pair.repos[at],
            "baseline": Figure(numbers.value(float(of_pair.other[at]), None)),
            "this run": Figure(numbers.value(float(of_pair.this[at]), None)),
            "difference": Figure(numbers.value(float(of_pair.this[at] - of_pair.other[at]), None, sign=True)),
        }
        for at in _farthest(pair)[:MOST_ROWS]
        if of_pair.this[at] != of_pair.other[at]
    ]


def _farthest(pair: Compared) -> list[int]:
    """Return the places of the samples, those that differ most first."""
    order: list[int] = np.argsort(-np.abs(pair.paired.this - pair.paired.other), kind="stable").tolist()
    return order

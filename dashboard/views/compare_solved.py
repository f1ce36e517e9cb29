"""Which runs solve which samples: Venn diagrams of two or three runs, tables of more. Pure.

Drawings hold letters and counts only; which run a letter is, a table beside them says.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from ctxbench.dashboard.theme import SERIES
from ctxbench.harness.leaderboard.compare import Solved, SolvedRegion

Row = dict[str, object]

_POINTS = 96
_OUTSIDE = 2.75
"""Times a circle's distance from the middle: where its letter stands."""


@dataclass(frozen=True, slots=True)
class Circle:
    """One run's circle, in units of its radius."""

    x: float
    y: float
    radius: float = 1.0

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is inside."""
        return math.hypot(x - self.x, y - self.y) < self.radius


@dataclass(frozen=True, slots=True)
class CountPlace:
    """Where the count of a region stands."""

    runs: tuple[int, ...]
    x: float
    y: float


def letters(count: int) -> tuple[str, ...]:
    """Return the letters that stand for the runs of a drawing."""
    return tuple(string.ascii_uppercase[:count])


def region_name(region: SolvedRegion, count: int) -> str:
    """Return which samples a region holds, in words: ``only A and B``."""
    if not region.runs:
        return "none of them"
    if len(region.runs) == count:
        return "all of them"
    return "only " + " and ".join(letters(count)[run] for run in region.runs)


def region_key(region: SolvedRegion) -> str:
    """Return the letters of a region, as they stand in an address; ``none`` for the region outside."""
    return "".join(string.ascii_uppercase[run] for run in region.runs) or "none"


def run_rows(outcome: Solved, names: Sequence[str]) -> list[Row]:
    """Return one row a run: its letter, how much it solves, and how much only it does."""
    return [
        {"letter": letter, "strategy": name, "solved": total, "only this one": only}
        for letter, name, total, only in zip(
            letters(outcome.count), names, outcome.totals(), outcome.only(), strict=True
        )
    ]


def remarks(outcome: Solved) -> list[str]:
    """Return what a reader must know of the drawing."""
    sentences = [f"Of the {outcome.n} samples that all of these runs completed."]
    if outcome.count < 4:
        sentences.append("Areas mean nothing, counts do.")
    return sentences


def circles(count: int) -> tuple[Circle, ...]:
    """Return the circles of two or three runs, placed so that every region has room for its count.

    Raises:
        ValueError: for another number: circles cannot show the regions of four runs.
    """
    if count == 2:
        return Circle(-0.6, 0.0), Circle(0.6, 0.0)
    if count == 3:
        turns = (math.pi / 2 + turn * 2 * math.pi / 3 for turn in (0, 1, 2))
        # The first on top, the others left and right below it.
        return tuple(Circle(0.65 * math.cos(turn), 0.65 * math.sin(turn)) for turn in turns)
    raise ValueError(f"a Venn diagram has two or three circles, not {count}")


def places(count: int) -> tuple[CountPlace, ...]:
    """Return where the count of each region stands: the middle of its room, and below all for what none solves."""
    around = circles(count)
    points: dict[tuple[int, ...], list[tuple[float, float]]] = {}
    steps = [index / 40 for index in range(-72, 73)]
    for x in steps:
        for y in steps:
            inside = tuple(run for run, circle in enumerate(around) if circle.holds(x, y))
            if inside:
                points.setdefault(inside, []).append((x, y))
    middle = [
        CountPlace(runs, sum(x for x, _ in inside) / len(inside), sum(y for _, y in inside) / len(inside))
        for runs, inside in sorted(points.items())
    ]
    return (*middle, CountPlace((), 0.0, min(circle.y for circle in around) - 1.25))


def venn(outcome: Solved) -> alt.LayerChart:
    """Return circles of equal size with the number of samples in each region: areas mean nothing, counts do."""
    around, run_letters = circles(outcome.count), letters(outcome.count)
    outline = [
        {"run": letter, "x": circle.x + math.cos(turn), "y": circle.y + math.sin(turn), "at": at}
        for letter, circle in zip(run_letters, around, strict=True)
        for at in range(_POINTS + 1)
        for turn in [2 * math.pi * at / _POINTS]
    ]
    counts = [
        {"x": place.x, "y": place.y, "shown": f"{'' if place.runs else 'none: '}{outcome.size(*place.runs)}"}
        for place in places(outcome.count)
    ]
    heads = [
        {
            "run": letter,
            "x": circle.x * (_OUTSIDE if outcome.count == 3 else 2),
            "y": circle.y * _OUTSIDE if outcome.count == 3 else 1.15,
        }
        for letter, circle in zip(run_letters, around, strict=True)
    ]
    across = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-2, 2]))
    up = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-2, 2] if outcome.count == 3 else [-1.5, 1.5]))
    colour = alt.Color(
        "run:N", scale=alt.Scale(domain=list(run_letters), range=list(SERIES[: outcome.count])), legend=None
    )
    disc = (
        alt.Chart(alt.InlineData(values=outline))
        .mark_line(filled=True, fillOpacity=0.25, strokeWidth=2)
        .encode(x=across, y=up, order="at:Q", stroke=colour, fill=colour, detail="run:N")
    )
    count = alt.Chart(alt.InlineData(values=counts)).mark_text(fontSize=16).encode(x=across, y=up, text="shown:N")
    head = (
        alt.Chart(alt.InlineData(values=heads))
        .mark_text(fontSize=18, fontWeight="bold")
        .encode(x=across, y=up, text="run:N", color=colour)
    )
    return alt.LayerChart(layer=[disc, count, head]).properties(width=300, height=300 if outcome.count == 3 else 225)


def region_rows(outcome: Solved) -> list[Row]:
    """Return one row a region, most samples first: the runs that solve it, and how many samples it holds."""
    return [
        {"solved by": region_name(region, outcome.count), "samples": len(region.samples)} for region in outcome.regions
    ]

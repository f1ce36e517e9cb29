"""Curves as an SVG drawing: where each line, interval and tick stands. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.sections import Curves

WIDTH, HEIGHT = 640, 320
"""Of the drawing, in its own unit."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 16, 12, 40
_TICKS = 5
_LABEL = 40
"""From one label to the next."""
_AIR = 0.05
LOOKS = 8
"""Looks of lines that the style sheet tells apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AxisMark:
    """A round number of an axis and its place."""

    place: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A mean and the ends of its interval; without an interval both ends are the mean's."""

    x: float
    y: float
    low: float
    high: float
    text: str
    """For who points at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One strategy."""

    name: str
    look: int
    """From 1 on."""
    dots: tuple[Dot, ...]

    @property
    def path(self) -> str:
        """The points of the line, as SVG writes them."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """All that the template writes."""

    lines: tuple[Line, ...]
    across: tuple[AxisMark, ...]
    up: tuple[AxisMark, ...]
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def drawing(picture: Curves) -> Drawing:
    """Return where everything stands."""
    scale = math.log if picture.logarithmic else float
    first, last = scale(picture.values[0]), scale(picture.values[-1])

    def across(value: float) -> float:
        return _place(scale(value), first, last, _LEFT + 24, WIDTH - _RIGHT - 24)

    estimates = [point.row.metrics[picture.metric] for curve in picture.curves for point in curve.points]
    ends = [end for part in estimates for end in (part.mean, part.low, part.high) if end is not None]
    air = (max(ends) - min(ends)) * _AIR or 0.5
    low, high = min(ends) - air, max(ends) + air

    def up(value: float) -> float:
        return _place(value, low, high, HEIGHT - _BOTTOM, _TOP)

    lines = []
    for number, curve in enumerate(picture.curves):
        dots = []
        for point in curve.points:
            part = point.row.metrics[picture.metric]
            mean = part.mean or 0.0
            dots.append(
                Dot(
                    x=across(picture.beside(point.at, number)),
                    y=up(mean),
                    low=up(mean if part.low is None else part.low),
                    high=up(mean if part.high is None else part.high),
                    text=f"{curve.strategy}, {picture.parameter} {point.at:g}: "
                    f"{numbers.interval(mean, part.low, part.high)} {picture.unit}",
                )
            )
        lines.append(Line(name=curve.strategy, look=number % LOOKS + 1, dots=tuple(dots)))
    return Drawing(
        lines=tuple(lines),
        across=_apart([AxisMark(place=across(value), label=f"{value:g}") for value in picture.values]),
        up=tuple(AxisMark(place=up(value), label=f"{value:.6g}") for value in _round(low, high)),
    )


def _apart(marks: Sequence[AxisMark]) -> tuple[AxisMark, ...]:
    """Return the marks whose labels do not run into that of the one before."""
    legible: list[AxisMark] = []
    for mark in marks:
        if not legible or mark.place - legible[-1].place >= _LABEL:
            legible.append(mark)
    return tuple(legible)


def _place(value: float, least: float, most: float, start: float, end: float) -> float:
    return round(start + (value - least) / (most - least) * (end - start), 1)


def _round(low: float, high: float) -> Sequence[float]:
    step = numbers.round_step((high - low) / _TICKS)
    return [multiple * step for multiple in range(math.ceil(low / step), math.floor(high / step) + 1)]

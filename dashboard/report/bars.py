"""Positions of intervals on a common axis. Pure numbers; the template draws them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH = 240
"""Of the axis, in the drawing's own unit."""
_MARGIN = 8
_AIR = 0.04
_TICKS = 4

Interval = tuple[float, float | None, float | None]
"""Mean, low, high in the unit shown; no interval where the two are None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A round number and its place."""

    x: float
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One interval's places; without an interval both ends are the mean's."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What all bars of one group share."""

    least: float
    most: float
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float:
        """Return where a value stands, to a tenth of the drawing's unit."""
        return _place(value, self.least, self.most)

    def bar(self, interval: Interval) -> Bar:
        """Return where an interval stands."""
        mean, low, high = interval
        ends = (mean if low is None else low, mean if high is None else high)
        return Bar(mean=self.place(mean), low=self.place(ends[0]), high=self.place(ends[1]))


def axis(intervals: Sequence[Interval]) -> Axis | None:
    """Return the axis that holds all intervals, and None if there is none. It need not begin at zero: it has ticks."""
    ends = [end for interval in intervals for end in interval if end is not None]
    if not ends:
        return None
    least, most = min(ends), max(ends)
    air = (most - least) * _AIR or max(abs(most) * _AIR, 0.5)
    least, most = least - air, most + air
    return Axis(least=least, most=most, ticks=_ticks(least, most))


def _place(value: float, least: float, most: float) -> float:
    return round(_MARGIN + (value - least) / (most - least) * (WIDTH - 2 * _MARGIN), 1)


def _ticks(least: float, most: float) -> tuple[Tick, ...]:
    """Return round numbers within the axis: multiples of 1, 2 or 5 times a power of ten."""
    rough = (most - least) / _TICKS
    power = float(f"1e{Decimal(rough).adjusted()}")
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    numbers = range(math.ceil(least / step), math.floor(most / step) + 1)
    return tuple(Tick(x=_place(multiple * step, least, most), label=f"{multiple * step:.6g}") for multiple in numbers)

"""Curves of a metric over the values of a parameter, such as a token budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Spec, parse
from ctxbench.harness.leaderboard import scales
from ctxbench.harness.leaderboard.columns import INTERVAL, ColumnHead, TextTable, heading, interval_of, label, mean
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.strategies.registry import default_of

BUDGET = "budget"
_WIDE = 8
_SHIFT = 0.006
"""Distance between the intervals of two strategies at the same value, as a share of the axis."""


@dataclass(frozen=True, slots=True)
class Blank:
    """The title of a chart that has no data, and the reason."""

    title: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """A row of the board, and the value of the curve's parameter in its strategy."""

    at: float
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The points of one strategy, at two or more values of the parameter."""

    strategy: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The curves of all strategies of a group that were run at several values of a parameter."""

    title: str
    parameter: str
    metric: str
    unit: str
    heading: str
    curves: tuple[Curve, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """Values of the parameter, ascending."""
        return tuple(sorted({point.at for curve in self.curves for point in curve.points}))

    @property
    def logarithmic(self) -> bool:
        """Whether the parameter's axis is logarithmic."""
        return self.values[0] > 0 and self.values[-1] >= _WIDE * self.values[0]

    def beside(self, value: float, number: int) -> float:
        """Return a dot's position on the axis: `value`, shifted a little for curve `number` to keep intervals apart."""
        low, high = self.values[0], self.values[-1]
        shift = _SHIFT * (number - (len(self.curves) - 1) / 2)
        return value * (high / low) ** shift if self.logarithmic else value + (high - low) * shift

    def table(self) -> TextTable:
        """Return the curves as text: one line per strategy, one column per value of the parameter."""
        heads = [ColumnHead(f"{self.parameter} {value:g}") for value in self.values]
        lines = []
        for curve in self.curves:
            rows = {point.at: point.row for point in curve.points}
            lines.append(
                [
                    curve.strategy,
                    *(
                        interval_of(rows[value], self.metric) if value in rows else scales.UNKNOWN
                        for value in self.values
                    ),
                ]
            )
        first = ColumnHead(
            f"{self.heading} {INTERVAL}",
            "The strategy, without the parameter whose values are the columns.",
            is_text=True,
        )
        return TextTable((first, *heads), lines)


def curves(group: Group, parameter: str = BUDGET, *, metric: str | None = None) -> Curves | Blank:
    """Return the curves of a metric over a parameter, in the order of the group's rows; `Blank` without curves."""
    metric = metric or group.metric
    title = f"{metric} over {parameter}"
    points: dict[str, list[CurvePoint]] = defaultdict(list)
    unspoken: list[tuple[Spec, Row]] = []
    for row in group.rows:
        spec = None if row.run.control or mean(row, metric) is None else spec_of(row)
        value = spec.arguments.get(parameter) if spec else None
        if spec and isinstance(value, int | float) and not isinstance(value, bool):
            points[_without(spec, parameter, row)].append(CurvePoint(at=value, row=row))
        elif spec and value is None:
            unspoken.append((spec, row))
    for spec, row in unspoken:
        # Canonical specs omit defaults.
        if (name := label(row)) in points and (at := default_of(spec.name, parameter)) is not None:
            points[name].append(CurvePoint(at=at, row=row))
    drawn = tuple(
        Curve(strategy=name, points=tuple(sorted(members, key=lambda point: point.at)))
        for name, members in points.items()
        if len({point.at for point in members}) > 1
    )
    if not drawn:
        return Blank(
            title, f"No strategy here was run with two values of {parameter}, such as name({parameter}={{256,512}})."
        )
    scale = group.scales[metric]
    return Curves(
        title=title, parameter=parameter, metric=metric, unit=scale.unit, heading=heading(group, metric), curves=drawn
    )


def parameters(groups: Collection[Group]) -> list[str]:
    """Return the names of the parameters for which a curve can be drawn in at least one group, sorted."""
    specs = [spec for group in groups for row in group.rows if (spec := spec_of(row)) is not None]
    names = {name for spec in specs for name in spec.arguments if name}
    return sorted(name for name in names if any(isinstance(curves(group, name), Curves) for group in groups))


def spec_of(row: Row) -> Spec | None:
    """Return the spec of a row's strategy; None if its label is not a spec, as for some imported runs."""
    try:
        return parse(row.run.strategy)
    except InputFault:
        return None


def _without(spec: Spec, parameter: str, row: Row) -> str:
    bare = replace(spec, arguments={key: value for key, value in spec.arguments.items() if key != parameter})
    return label(replace(row, run=replace(row.run, strategy=str(bare))))

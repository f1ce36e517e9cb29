"""Curves over a parameter: what strategies reach that differ in nothing else, e.g. ``budget={256,512,1024}``. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Spec, parse
from ctxbench.harness.leaderboard import numbers
from ctxbench.harness.leaderboard.columns import INTERVAL, ColumnHead, TextTable, heading, interval_of, label, mean
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.strategies.registry import default_of

BUDGET = "budget"
"""The parameter whose curves are drawn unasked."""
_WIDE = 8
"""From so many times the least value on an axis is logarithmic."""
_BESIDE = 0.006
"""Of the axis, from one strategy's interval to the next one's at the same value."""

Default = Callable[[str, str], float | None]
"""(strategy's name, parameter) -> the number that a spec without it means; None if nobody knows."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A picture that would say nothing."""

    title: str
    why: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """One value of the parameter."""

    at: float
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A strategy at two values of the parameter or more."""

    strategy: str
    """Its spec without the parameter."""
    points: tuple[CurvePoint, ...]
    """By the parameter, rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """All strategies of a group that were run at several values of a parameter."""

    title: str
    parameter: str
    metric: str
    unit: str
    heading: str
    """Of the metric."""
    curves: tuple[Curve, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The values of the parameter, rising."""
        return tuple(sorted({point.at for curve in self.curves for point in curve.points}))

    @property
    def logarithmic(self) -> bool:
        """Whether equal factors of the parameter stand equally far apart."""
        return self.values[0] > 0 and self.values[-1] >= _WIDE * self.values[0]

    def beside(self, value: float, number: int) -> float:
        """Return where the dot of a curve stands on the axis: intervals at one value must not hide each other."""
        low, high = self.values[0], self.values[-1]
        shift = _BESIDE * (number - (len(self.curves) - 1) / 2)
        return value * (high / low) ** shift if self.logarithmic else value + (high - low) * shift

    def table(self) -> TextTable:
        """Return the curves as text: a line a strategy, a column a value of the parameter."""
        heads = [ColumnHead(f"{self.parameter} {value:g}") for value in self.values]
        lines = []
        for curve in self.curves:
            rows = {point.at: point.row for point in curve.points}
            lines.append(
                [
                    curve.strategy,
                    *(
                        interval_of(rows[value], self.metric) if value in rows else numbers.UNKNOWN
                        for value in self.values
                    ),
                ]
            )
        first = ColumnHead(
            f"{self.heading} {INTERVAL}", "A strategy without the parameter of the columns.", is_text=True
        )
        return TextTable((first, *heads), lines)


def curves(
    group: Group, parameter: str = BUDGET, *, metric: str | None = None, default: Default = default_of
) -> Curves | Blank:
    """Return what the group's strategies reach over a parameter, the strategy whose best row ranks best first.

    Args:
        group: whose rows, but for controls.
        parameter: a number in the strategies' specs.
        metric: what they reach; None: the ranking metric.
        default: what a spec without the parameter means.
    """
    metric = metric or group.metric
    title = f"{metric} over {parameter}"
    points: dict[str, list[CurvePoint]] = defaultdict(list)
    unspoken: list[tuple[Spec, Row]] = []
    for row in group.rows:
        spec = None if row.run.control or mean(row, metric) is None else _spec(row)
        value = spec.arguments.get(parameter) if spec else None
        if spec and isinstance(value, int | float) and not isinstance(value, bool):
            points[_without(spec, parameter, row)].append(CurvePoint(at=value, row=row))
        elif spec and value is None:
            unspoken.append((spec, row))
    for spec, row in unspoken:
        # Canonical specs leave defaults out.
        if (name := label(row)) in points and (at := default(spec.name, parameter)) is not None:
            points[name].append(CurvePoint(at=at, row=row))
    drawn = tuple(
        Curve(strategy=name, points=tuple(sorted(members, key=lambda point: point.at)))
        for name, members in points.items()
        if len({point.at for point in members}) > 1
    )
    if not drawn:
        return Blank(
            title, f"No strategy here was run at two values of {parameter}, as name({parameter}={{256,512}}) is."
        )
    scale = group.scales[metric]
    return Curves(
        title=title, parameter=parameter, metric=metric, unit=scale.unit, heading=heading(group, metric), curves=drawn
    )


def parameters(groups: Collection[Group], *, default: Default = default_of) -> list[str]:
    """Return the parameters over which there is a curve, sorted."""
    specs = [spec for group in groups for row in group.rows if (spec := _spec(row)) is not None]
    names = {name for spec in specs for name in spec.arguments if name}
    return sorted(
        name for name in names if any(isinstance(curves(group, name, default=default), Curves) for group in groups)
    )


def _spec(row: Row) -> Spec | None:
    try:
        return parse(row.run.strategy)
    except InputFault:
        # Labels of imported runs need not be specs.
        return None


def _without(spec: Spec, parameter: str, row: Row) -> str:
    """Return what the row would be called without the parameter."""
    bare = replace(spec, arguments={key: value for key, value in spec.arguments.items() if key != parameter})
    return label(replace(row, run=replace(row.run, strategy=str(bare))))

"""Converts metrics to the units of boards, selects the samples that count, and formats numbers as text."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ctxbench.bench.errors import InputFault
from ctxbench.harness import metrics
from ctxbench.harness.results import RunTable, Status, samples_label, value_cases

UNKNOWN = "-"
_UNDATED_CURE = "repeat the same `ctxbench run`, which adds the set's dates, if it has any, without asking a model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The unit and range of a metric on boards."""

    factor: float
    worst: float | None
    """Value of a model-failed sample; None to use its own value."""
    bounds: tuple[float, float] | None
    """Lowest and highest value, infinite on an open side; None if both sides are open."""
    unit: str
    lower_is_better: bool = False
    help: str = ""
    source: str = ""

    @property
    def explained(self) -> str:
        """The help text, followed by the metric's source."""
        return f"{self.help} Source: {self.source}." if self.source else self.help

    @property
    def range(self) -> tuple[float, float] | None:
        """Both bounds; None if a side is open."""
        return self.bounds if self.bounds is not None and all(map(math.isfinite, self.bounds)) else None

    def heading(self, metric: str) -> str:
        """Return the heading of a column: the metric and, unless its name ends with the unit, the unit."""
        return metric if metric.endswith(self.unit) else f"{metric} {self.unit}"


def scale_of(profile: str, metric: str) -> Scale:
    """Return the scale of a metric, from its declaration.

    Raises:
        UnknownName: if the profile has no such metric.
    """
    info = metrics.info(profile, metric)
    low, high = (None if bound is None else bound * info.factor for bound in info.bounds)
    is_open = low is None and high is None
    return Scale(
        factor=info.factor,
        worst=None if info.worst is None else info.worst * info.factor,
        bounds=None if is_open else (-math.inf if low is None else low, math.inf if high is None else high),
        unit=info.unit,
        lower_is_better=info.lower_is_better,
        help=info.description,
        source=info.source,
    )


class Outcomes:
    """The values that a run's samples count as, given the status of each sample."""

    def __init__(self, table: RunTable) -> None:
        self._table = table
        self._scored, self._failed = (_are(table, status) for status in (Status.SCORED, Status.MODEL_FAILED))
        self.excluded = _are(table, Status.EXCLUDED)

    def own(self, metric: str, scale: Scale) -> NDArray[np.float64]:
        """Return each sample's own value in the scale's unit, whatever its status; NaN without a value."""
        column = self._table.metrics.get(metric, (None,) * len(self._table.sample))
        return np.array(column, dtype=np.float64) * scale.factor

    def counting(self, own: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
        """Return the value that each sample counts as, given its own value; NaN if it does not count."""
        cases = value_cases(scored=self._scored, model_failed=self._failed, own=own, worst=scale.worst)
        return np.select([holds for holds, _ in cases], [value for _, value in cases], default=np.nan)


def _are(table: RunTable, status: Status) -> NDArray[np.bool_]:
    if status not in table.status:
        return np.zeros(len(table.status), dtype=np.bool_)
    return np.fromiter((actual is status for actual in table.status), dtype=np.bool_, count=len(table.status))


def completed(table: RunTable) -> list[int]:
    """Return the positions of the samples that count: scored or model-failed."""
    return [index for index, status in enumerate(table.status) if status in (Status.SCORED, Status.MODEL_FAILED)]


def values(table: RunTable, metric: str, scale: Scale) -> dict[str, float]:
    """Return the values of the samples that count, by sample, in the scale's unit. Undefined values are left out."""
    if metric not in table.metrics:
        return {}
    outcomes = Outcomes(table)
    counting = outcomes.counting(outcomes.own(metric, scale), scale).tolist()
    return {sample: value for sample, value in zip(table.sample, counting, strict=True) if not math.isnan(value)}


def repositories(table: RunTable) -> Mapping[str, str]:
    """Return the repository of each sample, by sample."""
    return dict(zip(table.sample, table.repo, strict=True))


def at_level(table: RunTable, level: str) -> RunTable:
    """Return a table of the samples of one level."""
    return at_levels(table, (level,))


def at_levels(table: RunTable, levels: Collection[str]) -> RunTable:
    """Return a table of the samples of some levels."""
    return _at(table, [index for index, level in enumerate(table.level) if level in levels])


def restrict(table: RunTable, samples: Collection[str]) -> RunTable:
    """Return a table of only these samples."""
    return _at(table, [index for index, sample in enumerate(table.sample) if sample in samples])


def dated_after(table: RunTable, day: str) -> RunTable:
    """Return a table of samples whose code is dated after a day (``YYYY-MM-DD``); its set's label states the day."""
    days = table.dated or (None,) * len(table.sample)
    unknown = days.count(None)
    samples = "1 sample" if unknown == 1 else f"{unknown} samples"
    remarks = (f"Left out: {samples} without a known date, possibly older than {day}.",) if unknown else ()
    name, is_part, earlier = table.run.samples.rpartition("[after ")
    if is_part and earlier[-1:] == "]" and "[" not in earlier:
        # The name is the same whether the run or its reader excluded older samples.
        label = samples_label(name, after=max(day, earlier[:-1]))
    else:
        label = samples_label(table.run.samples, after=day)
    run = replace(table.run, samples=label, remarks=(*table.run.remarks, *remarks))
    return replace(_at(table, [index for index, of in enumerate(days) if of is not None and of > day]), run=run)


def tables_dated_after(tables: Sequence[RunTable], day: date) -> list[RunTable]:
    """Keep only samples dated after `day`, and drop the tables that become empty.

    Raises:
        InputFault: if no sample remains.
    """
    parts = [part for table in tables if (part := dated_after(table, day.isoformat())).sample]
    if tables and not parts:
        days = [of_sample for table in tables for of_sample in table.dated if of_sample is not None]
        newest = f"the newest is dated {max(days)}" if days else "no sample has a known date"
        cure = "give an earlier day" if days else _UNDATED_CURE
        raise InputFault(f"no sample of the stored runs is dated after {day}: {newest}", cure=cure)
    return parts


def _at(table: RunTable, keep: Sequence[int]) -> RunTable:
    def kept(column: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(column[i] for i in keep) if column else ()

    columns: dict[str, Any] = {
        name: {key: kept(part) for key, part in column.items()} if isinstance(column, Mapping) else kept(column)
        for field in fields(table)
        if (name := field.name) != "run"
        for column in [getattr(table, name)]
    }
    return replace(table, **columns)


def half_width(low: float | None, high: float | None) -> float | None:
    """Return half the width of an interval; None without an interval."""
    return None if low is None or high is None else (high - low) / 2


def written(number: float | None, half: float | None, *, sign: bool = False) -> str:
    """Format a number with 0 decimals if the interval's half width is 10 or more, 2 if between 0 and 1, otherwise 1."""
    if number is None:
        return UNKNOWN
    decimals = 1 if not half else 0 if half >= 10 else 1 if half >= 1 else 2
    text = f"{number:{'+' if sign else ''}.{decimals}f}"
    # A negative number that is rounded to 0 loses its sign.
    return text.replace("-", "+" if sign else "") if not float(text) else text


def _end(number: float, half: float, *, sign: bool) -> str:
    """Format an end of an interval. For differences, an end that rounds to 0 becomes ``>0`` or ``<0``."""
    text = written(number, half, sign=sign)
    return text if float(text) or not sign or not number else ">0" if number > 0 else "<0"


def interval(number: float | None, low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Format ``mean [low, high]``, with ``inf`` for one unknown end, or the mean alone if both are unknown."""
    half = half_width(low, high)
    if number is None or (low is None and high is None):
        return written(number, None, sign=sign)
    if half is None:
        # With one unknown end, the other decides the number of digits.
        end = low if low is not None else high
        half = abs(number - (end or 0.0))
        least = "-inf" if low is None else _end(low, half, sign=sign)
        most = ("+" * sign + "inf") if high is None else _end(high, half, sign=sign)
        return f"{written(number, half, sign=sign)} [{least}, {most}]"
    assert low is not None and high is not None
    return f"{written(number, half, sign=sign)} [{_end(low, half, sign=sign)}, {_end(high, half, sign=sign)}]"


def p_value(p: float | None) -> str:
    """Format a p-value to three decimals, or ``<0.001``. A p above 0.05 gets more decimals if it rounds to 0.05."""
    if p is None:
        return UNKNOWN
    if p < 0.001:
        return "<0.001"
    decimals = 3
    while p > 0.05 >= float(f"{p:.{decimals}f}"):
        decimals += 1
    return f"{p:.{decimals}f}"


def dollars(number: float | None) -> str:
    """Format a mean price in dollars: three significant digits, at least cents, never an exponent."""
    if number is None:
        return UNKNOWN
    decimals = 2 - Decimal(number).adjusted() if number else 0
    return f"{number:.{max(2, decimals)}f}"


def amount(number: float | None) -> str:
    """Format a mean count or time: three significant digits, no decimals from 100 on."""
    if number is None:
        return UNKNOWN
    return f"{number:.0f}" if abs(number) >= 100 else f"{number:.3g}"


def round_step(rough: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power = float(f"1e{Decimal(rough).adjusted()}")
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def percent(number: float | None) -> str:
    """Format a share from 0 to 1 in percent."""
    return UNKNOWN if number is None else f"{100 * number:.1f}"

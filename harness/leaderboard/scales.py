"""The scale of a metric, and the values of a run in it: what each status counts as. Pure.

Every sample is exactly one of scored, model-failed (the worst value), infra-failed (missing, counted apart)
or excluded (by a certificate, counted apart).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ctxbench.harness import metrics
from ctxbench.harness.results import RunTable, Status

_COMPLETED = (Status.SCORED, Status.MODEL_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How to show and compare one metric, in the unit shown: what its declaration says, in that unit."""

    factor: float
    """From the profile's own scale to the unit shown."""
    worst: float | None
    """What a model-failed sample counts as; None: its own value, where it has one."""
    bounds: tuple[float, float] | None
    """Lowest and highest value, infinite on an open side; None if both are open."""
    unit: str
    lower_is_better: bool = False
    help: str = ""
    """A sentence or two for whoever reads a number: what it is, its unit, its direction."""

    @property
    def range(self) -> tuple[float, float] | None:
        """Both bounds, None if a side is open."""
        return self.bounds if self.bounds is not None and all(map(math.isfinite, self.bounds)) else None

    def heading(self, metric: str) -> str:
        """Return the heading of a column: the metric and its unit, once where they are the same word."""
        return metric if metric == self.unit else f"{metric} {self.unit}"


ScaleOf = Callable[[str, str], Scale]
"""(profile, metric) -> scale."""


def scale_of(profile: str, metric: str) -> Scale:
    """Return the scale of a metric as its declaration has it.

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
    )


def completed(table: RunTable) -> list[int]:
    """Return the positions of the samples that count: scored or model-failed."""
    return [index for index, status in enumerate(table.status) if status in _COMPLETED]


def values(table: RunTable, metric: str, scale: Scale) -> dict[str, float]:
    """Return sample -> value in the unit shown, of completed samples at which the metric is defined."""
    column = table.metrics.get(metric, ())
    by_sample: dict[str, float] = {}
    for index in completed(table) if column else ():
        value = column[index]
        if table.status[index] is Status.MODEL_FAILED and scale.worst is not None:
            by_sample[table.sample[index]] = scale.worst
        elif value is not None:
            by_sample[table.sample[index]] = value * scale.factor
    return by_sample


def repositories(table: RunTable) -> Mapping[str, str]:
    """Return sample -> repository."""
    return dict(zip(table.sample, table.repo, strict=True))


def at_level(table: RunTable, level: str) -> RunTable:
    """Return the samples of one level only."""
    return at_levels(table, (level,))


def at_levels(table: RunTable, levels: Collection[str]) -> RunTable:
    """Return the samples of some levels only."""
    keep = [index for index, level in enumerate(table.level) if level in levels]
    return replace(
        table,
        sample=tuple(table.sample[i] for i in keep),
        repo=tuple(table.repo[i] for i in keep),
        level=tuple(table.level[i] for i in keep),
        status=tuple(table.status[i] for i in keep),
        metrics={name: tuple(column[i] for i in keep) for name, column in table.metrics.items()},
        context_tokens=tuple(table.context_tokens[i] for i in keep),
        calls=tuple(table.calls[i] for i in keep),
        seconds=tuple(table.seconds[i] for i in keep),
        mark=tuple(table.mark[i] for i in keep) if table.mark else (),
        costs={name: tuple(column[i] for i in keep) for name, column in table.costs.items()},
    )

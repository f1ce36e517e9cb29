"""The scale of a metric, and the values of a run in it: what each status counts as. Pure.

Every sample is exactly one of scored, model-failed (the worst value), infra-failed (missing, counted apart)
or excluded (by a certificate, counted apart).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from ctxbench.harness.results import RunTable, Status

BLOCK_GAIN = "block_gain"
CONTEXT_METRICS = ("context_gain", "bits", BLOCK_GAIN)
DIAGNOSTICS = {"api_recall": False, "context_waste": True, "hallucinated": True}
"""Shares measured of contexts and completions -> whether lower is better."""
MADE_UP = "made_up_names"
_COMPLETED = (Status.SCORED, Status.MODEL_FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How to show and compare one metric."""

    factor: float
    """From the profile's own scale to the unit shown."""
    worst: float | None
    """What a model-failed sample counts as, in the unit shown; None: its own value, where it has one."""
    bounds: tuple[float, float] | None
    """The range in the unit shown, or None."""
    unit: str
    """``%``, ``bits`` or ``names``."""
    lower_is_better: bool = False


PERCENT = Scale(factor=100.0, worst=0.0, bounds=(0.0, 100.0), unit="%")
BITS = Scale(factor=1.0, worst=None, bounds=None, unit="bits")

ScaleOf = Callable[[str, str], Scale]
"""(profile, metric) -> scale."""


def scale_of(profile: str, metric: str) -> Scale:
    """Return the scale of a metric: percent, bits for what measures the context, or a count of names.

    Raises:
        UnknownName: if the profile has no such metric.
    """
    if metric in CONTEXT_METRICS:
        return replace(BITS, lower_is_better=metric == "bits")
    if metric in DIAGNOSTICS:
        # An empty completion makes nothing up, and a context is what it is whatever the model made of it.
        return replace(PERCENT, worst=None, lower_is_better=DIAGNOSTICS[metric])
    if metric == MADE_UP:
        return Scale(factor=1.0, worst=None, bounds=None, unit="names", lower_is_better=True)
    if metric.startswith("pass@"):
        return PERCENT
    from ctxbench.harness import metrics  # noqa: PLC0415 - scorers and their grammars are not needed for the two above

    info = metrics.info(profile, metric)
    return replace(PERCENT, factor=info.factor_to_percent, worst=info.worst * info.factor_to_percent)


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

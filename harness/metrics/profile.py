"""Metric profiles: a name, the metrics, and a pure function from texts to values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

Values = dict[str, float | None]
"""Metric -> value in the profile's own scale; None where the profile leaves it undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """The scale and the meaning of one metric of one profile."""

    factor_to_percent: float
    """Multiply a value by this to get percent."""
    worst: float
    """The value of a completion that is certainly wrong; counted for samples at which the model failed."""
    unit: str
    """``share`` (0..1) or ``points`` (0..100)."""
    definition: str
    """One sentence for tables and documentation."""


class ScoreFunction(Protocol):
    """Scores one completion."""

    def __call__(self, language: str, prompt: str, prediction: str, ground_truth: str, /) -> Values:
        """Return every metric of the profile."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Completion unit x formulas: what makes two scores comparable."""

    name: str
    summary: str
    metrics: Mapping[str, MetricInfo]
    score: ScoreFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One completion to score."""

    language: str
    """``python`` or ``java``."""
    prompt: str
    """The file before the cursor; its last line is where the completion goes on."""
    prediction: str
    ground_truth: str


def share(definition: str) -> MetricInfo:
    """Describe a metric that runs from 0 (worst) to 1."""
    return MetricInfo(factor_to_percent=100.0, worst=0.0, unit="share", definition=definition)


def points(definition: str) -> MetricInfo:
    """Describe a metric that runs from 0 (worst) to 100."""
    return MetricInfo(factor_to_percent=1.0, worst=0.0, unit="points", definition=definition)

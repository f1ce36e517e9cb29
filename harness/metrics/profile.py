"""A metric profile: its name, its metrics, and a pure function from texts to values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ctxbench.bench.errors import InputFault

Values = dict[str, float | None]
"""Metric -> value in the profile's own scale; None where the profile leaves it undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricInfo:
    """A metric as its author declares it: tables, pages, charts, reports and help texts take all of this from here.

    Raises:
        InputFault: if a text is empty, or the bounds are not in order.
    """

    name: str
    help: str
    """One sentence that ends with a full stop; unit and direction are added where it is shown."""
    source: str
    """Whose definition it is: a paper, released code, or this project."""
    unit: str
    """As shown: ``%``, ``bits``, ``edits``."""
    lower_is_better: bool = False
    bounds: tuple[float | None, float | None] = (None, None)
    """Lowest and highest value in the profile's own scale; None where there is none. Intervals are cut to them."""
    factor: float = 1.0
    """From the profile's own scale to the unit shown."""
    failure_is_worst: bool = True
    """Whether a sample at which the model failed counts as the worst value; False where it counts as its own value,
    because the metric says something of the context."""

    def __post_init__(self) -> None:
        """Check the declaration."""
        low, high = self.bounds
        empty = [name for name in ("name", "help", "source", "unit") if not getattr(self, name).strip()]
        if empty:
            raise InputFault(f"the metric {self.name!r} declares no {empty[0]}", cure=f"give {empty[0]}=…")
        if low is not None and high is not None and low >= high:
            raise InputFault(f"the metric {self.name!r} has the bounds {low}, {high}", cure="give the lower one first")

    @property
    def worst(self) -> float | None:
        """The value of a completion that is certainly wrong; None: its own value, also where no bound is the worst."""
        return self.bounds[self.lower_is_better] if self.failure_is_worst else None

    @property
    def description(self) -> str:
        """The help with the unit and, where less is better, the direction."""
        unit = "percent" if self.unit == "%" else self.unit
        return f"{self.help} In {unit}{'; lower is better' if self.lower_is_better else ''}."


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
    metrics: Sequence[MetricInfo]
    """In the order in which they are shown; the first one ranks, unless there is ``es`` or ``em``."""
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


def share(name: str, help: str, *, source: str) -> MetricInfo:  # noqa: A002 - as the field is called
    """Declare a metric that runs from 0 (worst) to 1 and is shown in percent."""
    return MetricInfo(name=name, help=help, source=source, unit="%", bounds=(0.0, 1.0), factor=100.0)


def points(name: str, help: str, *, source: str) -> MetricInfo:  # noqa: A002 - as the field is called
    """Declare a metric that runs from 0 (worst) to 100 and is shown in percent."""
    return MetricInfo(name=name, help=help, source=source, unit="%", bounds=(0.0, 100.0))

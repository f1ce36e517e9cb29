"""Metric profiles: what a profile and its metrics declare, their registry, and the metrics that every board has.

All profiles, ours too, come in by the entry-point group ``ctxbench.metrics``: a plug-in's module calls `profile` when
it is imported, and it is imported when its name is first asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ctxbench.bench.errors import InputFault
from ctxbench.bench.registry import Registry

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

    def values(self, case: Case) -> Values:
        """Score one completion, for whoever asks.

        Raises:
            InputFault: if a value is infinite: no mean, interval or file could hold it.
        """
        values = self.score(case.language, case.prompt, case.prediction, case.ground_truth)
        for name, value in values.items():
            if value is not None and math.isinf(value):
                raise InputFault(
                    f"the metric {name!r} of profile {self.name!r} is infinite for a completion",
                    cure="let its score function return a number, or None where it is undefined",
                )
        return values


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


PASS = "pass"  # noqa: S105 - no password
"""The stored score of one completion's tests, from which pass@k is computed."""
BLOCK_GAIN, MADE_UP = "block_gain", "made_up_names"
_OURS = "ctxbench"


def _bits(name: str, text: str, *, lower_is_better: bool = False, source: str = _OURS) -> MetricInfo:
    return MetricInfo(
        name=name, help=text, source=source, unit="bits", lower_is_better=lower_is_better, failure_is_worst=False
    )


def _diagnostic(name: str, text: str, *, lower_is_better: bool) -> MetricInfo:
    # An empty completion makes nothing up, and a context is what it is whatever the model made of it.
    return replace(share(name, text, source=_OURS), lower_is_better=lower_is_better, failure_is_worst=False)


BITS = (
    _bits("context_gain", "How much cheaper the context makes the reference to write than the file alone does."),
    _bits("bits", "What the reference costs to write, given the context.", lower_is_better=True),
    _bits(BLOCK_GAIN, "What one retrieved block saves, on the mean."),
)
"""Measured by a model that codes the reference: those of two models are two units."""
DIAGNOSTICS = (
    _diagnostic(
        "api_recall",
        "Share of the repository's names the reference needs that the context shows.",
        lower_is_better=False,
    ),
    _diagnostic("context_waste", "Share of the context that nothing in the reference uses.", lower_is_better=True),
    _diagnostic("hallucinated", "Share of completions that use a name which is nowhere.", lower_is_better=True),
    # No bound: intervals of stored boards were never cut at 0.
    MetricInfo(
        name=MADE_UP,
        help="Names in a completion that are nowhere, on the mean.",
        source=_OURS,
        unit="names",
        lower_is_better=True,
        failure_is_worst=False,
    ),
)
_BY_NAME = {metric.name: metric for metric in (*BITS, *DIAGNOSTICS)}
BIT_METRICS = tuple(metric.name for metric in BITS)
"""Names of `BITS`."""


def common_metric(name: str) -> MetricInfo | None:
    """Return the metric of that name which every board may have; None if it is a profile's own, or nobody's."""
    k = name.removeprefix("pass@")
    if k != name and k.isdecimal():
        tries = "the first try" if k == "1" else f"one of {k} tries"
        return share(name, f"Share of functions whose tests pass at {tries}.", source="HumanEval")
    return _BY_NAME.get(name)


_REGISTRY: Registry[Profile] = Registry("metric profile", group="ctxbench.metrics", command="ctxbench score --help")
DEFAULT = "ctxbench"


def profile(definition: Profile) -> Profile:
    """Register a profile under its own name.

    Raises:
        InputFault: if another profile has the name, or one of its metrics the name of one that every board has.
    """
    for metric in definition.metrics:
        if metric.name == PASS or common_metric(metric.name) is not None:
            raise InputFault(
                f"the metric {metric.name!r} of profile {definition.name!r} has the name of one that every board has",
                cure="give it another name",
            )
    return _REGISTRY.add(definition.name, definition, origin=f"{definition.score.__module__}")


def load(name: str) -> Profile:
    """Return the profile called `name`.

    Raises:
        UnknownName: if there is none; the message names the nearest.
        InputFault: if its plugin cannot be imported.
    """
    return _REGISTRY.get(name)


PROFILES: tuple[str, ...] = (DEFAULT, *(name for name in _REGISTRY.names() if name != DEFAULT))
"""The default first; the published ones are exact to the official code, its bugs included."""

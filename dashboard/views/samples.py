"""Metrics, filters and rows of the list of samples. Pure."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.errors import InputFault
from ctxbench.harness.leaderboard import choices
from ctxbench.harness.leaderboard.scales import Scale, scale_of
from ctxbench.harness.metrics import context
from ctxbench.harness.results import Status
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.search import Differs, Facets, FoundSample, Measure, Order, RunChoice
from ctxbench.harness.store.verdicts import PASS

PAGE = 25
"""Samples of one page of a listing."""
ANY = "any"
"""A filter that lets everything through."""
NONE = "none"
PASSES = "pass@1"
HELP: Mapping[str, str] = {
    "": "The sample that is shown below.",
    "sample": "The sample's id, as in samples.jsonl and in exported results.",
    "repository": "Where the code is from.",
    "place": "The file, and the line of the cursor, counted from 1.",
    "level": "A kind of task: where a line was cut, or how much of its repository a function uses.",
    "status": "scored; model-failed: nothing usable, the worst value; infra-failed: missing; excluded: marked.",
    "A": "Value of run A, the mean over its completions; empty where the sample does not count.",
    "B": "Value of run B.",
    "A - B": "The value of run A minus that of run B.",
}
NUMBERS: Mapping[str, str] = {"A": "%.1f", "B": "%.1f", "A - B": "%+.1f"}
"""Columns of numbers, which a table sorts as numbers -> how they are written: one sample has no interval."""
STATUS: Mapping[Status, str] = {
    Status.SCORED: "It counts.",
    Status.MODEL_FAILED: "The model gave nothing usable: it counts as the worst value.",
    Status.INFRA_FAILED: "The machine failed or the run is not done: the sample is missing, and the next run does it.",
    Status.EXCLUDED: "It is marked, so no score rests on it.",
}
"""Status -> what it means for the numbers."""
DIFFERS: Mapping[str, Differs] = {ANY: "", "A and B differ": "any", "A is better": "first", "B is better": "second"}
ORDERS: Mapping[str, Order] = {"as planned": "plan", "lowest of A": "lowest", "highest of A": "highest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric as the page shows it, and as the store keeps it."""

    name: str
    measure: Measure
    scale: Scale

    def in_unit(self, value: float | None) -> float | None:
        """Return a stored value in the unit shown."""
        return None if value is None else value * self.scale.factor


def metrics(facets: Facets, profile: str) -> tuple[Metric, ...]:
    """Return the metrics of a profile that a run has, and with any profile those of contexts and of tests."""
    return tuple(_metric(named(kind), *kind, profile) for kind in facets.measures if belongs(kind, profile))


def belongs(kind: tuple[str, str], profile: str) -> bool:
    """Return whether a (profile, metric) is shown with a profile: its own, those of contexts, the tests' verdict."""
    stored_profile, metric = kind
    of_context = stored_profile == CONTEXT and context.find(metric) is not None
    return metric == PASS or stored_profile == profile or of_context


def named(kind: tuple[str, str]) -> str:
    """Return a stored metric's name on the leaderboard."""
    return PASSES if kind[1] == PASS else kind[1]


def _metric(name: str, stored_profile: str, metric: str, profile: str) -> Metric:
    scale = scale_of(profile, name)
    worst = None if scale.worst is None else scale.worst / scale.factor
    measure = Measure(profile=stored_profile, metric=metric, worst=worst, lower_is_better=scale.lower_is_better)
    return Metric(name=name, measure=measure, scale=scale)


def preferred(available: Sequence[Metric], generator: str) -> Metric | None:
    """Return the metric that ranks, as the leaderboard chooses it; None if there is none."""
    ranking = (PASSES, *(["context_gain"] if choices.measures_context(generator) else []), "es", "em")
    named = {metric.name: metric for metric in available}
    own = sorted(available, key=lambda metric: metric.measure.profile == CONTEXT)
    return next((named[name] for name in ranking if name in named), own[0] if own else None)


def spelled(run: RunChoice) -> str:
    """Return a run as an option: its strategy, and its id to tell it from others."""
    return f"{run.strategy} · {run.id}"


def bound(text: str, scale: Scale) -> float | None:
    """Return a bound that a reader wrote in the unit shown, in the profile's own scale; None if there is none.

    Raises:
        InputFault: if it is no number.
    """
    if not text.strip():
        return None
    with contextlib.suppress(ValueError):
        number = float(text.strip().removesuffix("%"))
        if not math.isnan(number):
            return number / scale.factor
    raise InputFault(f"{text[:40]!r} is no number", cure="write it as 12.5, or leave the field empty")


def sample_rows(
    samples: Sequence[FoundSample], metric: Metric, opened: str, *, compared: bool
) -> list[dict[str, object]]:
    """Return a row for each sample that was found; `compared` with the values of a second run."""
    rows: list[dict[str, object]] = []
    for sample in samples:
        values: dict[str, object] = {"A": metric.in_unit(sample.value)}
        if compared:
            values["B"] = metric.in_unit(sample.other)
            both = sample.value is not None and sample.other is not None
            values["A - B"] = metric.in_unit((sample.value or 0) - (sample.other or 0)) if both else None
        # Values before names and places: those are long, and a table is cut at the right.
        row: dict[str, object] = {"": "▸" if sample.id == opened else "", **values, "sample": sample.id}
        row |= {"status": str(sample.status), "level": sample.level, "repository": sample.repo}
        row["place"] = f"{sample.path}:{sample.line + 1}"
        rows.append(row)
    return rows


def steps_hint(*, compared: bool, differing: bool) -> str:
    """Return how one goes on to the next sample without a mouse, and how to the next disagreement of two runs."""
    if differing:
        return "Key n opens the next disagreement, p the previous one."
    how = 'Show "A and B differ"' if compared else "choose a Run B"
    return f"Key n opens the next one, p the previous one; to step through disagreements, {how}."


def pages(total: int) -> int:
    """Return how many pages so many samples take; one at least."""
    return max(1, -(-total // PAGE))

"""Metrics that belong to no profile: those of contexts, of names that a model made up, and of tests.

They are on the board of every profile, so that no profile may have a metric of these names.
"""

from __future__ import annotations

from ctxbench.harness.metrics.profile import MetricInfo

PASS = "pass"  # noqa: S105 - no password
"""The stored score of one completion's tests, from which pass@k is computed."""
BLOCK_GAIN, MADE_UP = "block_gain", "made_up_names"
_OURS = "ctxbench"


def _bits(name: str, text: str, *, lower_is_better: bool = False) -> MetricInfo:
    return MetricInfo(
        name=name, help=text, source=_OURS, unit="bits", lower_is_better=lower_is_better, failure_is_worst=False
    )


def _diagnostic(name: str, text: str, *, lower_is_better: bool) -> MetricInfo:
    # An empty completion makes nothing up, and a context is what it is whatever the model made of it.
    return MetricInfo(
        name=name,
        help=text,
        source=_OURS,
        unit="%",
        lower_is_better=lower_is_better,
        bounds=(0.0, 1.0),
        factor=100.0,
        failure_is_worst=False,
    )


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


def find(name: str) -> MetricInfo | None:
    """Return the metric of that name which every board may have; None if it is a profile's own, or nobody's."""
    k = name.removeprefix("pass@")
    if k != name and k.isdecimal():
        tries = "the first try" if k == "1" else f"one of {k} tries"
        return MetricInfo(
            name=name,
            help=f"Share of functions whose tests pass at {tries}.",
            source="HumanEval",
            unit="%",
            bounds=(0.0, 1.0),
            factor=100.0,
        )
    return _BY_NAME.get(name)

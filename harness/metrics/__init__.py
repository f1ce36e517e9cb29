"""Metrics of one completion under a named profile (completion unit x formula), and pass@k. Pure functions.

A score means something only together with its profile: the same predictions get EM 0.3 or 6.2 percent
from two published scorers. Scores of different profiles are never compared.
"""

from __future__ import annotations

from ctxbench.bench import languages
from ctxbench.bench.errors import UnknownName
from ctxbench.harness.metrics.profile import (
    PROFILES,
    Case,
    MetricInfo,
    Values,
    aggregate,
    common_metric,
    load,
    mean_pass_at_k,
    pass_at_k,
    score_many,
)

__all__ = [
    "FUNCTIONS",
    "PROFILES",
    "Case",
    "MetricInfo",
    "Values",
    "aggregate",
    "info",
    "load",
    "mean_pass_at_k",
    "metrics",
    "pass_at_k",
    "score",
    "score_body",
    "score_many",
]

FUNCTIONS = "ctxbench"
"""The profile under which whole functions are scored."""


def score(profile: str, language: str, *, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Score one completion.

    Args:
        profile: one of `PROFILES`.
        language: a registered one, such as ``python``.
        prompt: the file before the cursor (not what a strategy put in front of it).
        prediction: the generated text, as it continues the prompt.
        ground_truth: what stands there.

    Returns:
        Metric -> value in the profile's own scale (`info` declares it), None where the profile leaves it undefined.

    Raises:
        UnknownName: if there is no such profile or language.
        InputFault: if a value is infinite.
    """
    languages.get(language)
    case = Case(language=str(language), prompt=prompt, prediction=prediction, ground_truth=ground_truth)
    return load(profile).values(case)


def score_body(language: str, *, prediction: str, ground_truth: str) -> Values:
    """Score the body of a function under the profile `FUNCTIONS`, all of it: no other is defined for more than lines.

    Args:
        language: a registered one, such as ``python``.
        prediction: the body of the completion, without signature and documentation string.
        ground_truth: the body of the reference.
    """
    # Imported late, as the profiles are: their module registers itself.
    from ctxbench.harness.metrics import ctxbench  # noqa: PLC0415

    return ctxbench.compare(str(language), "", prediction, ground_truth)


def metrics(profile: str) -> tuple[str, ...]:
    """Return the names of a profile's metrics, in the order in which they are shown."""
    return tuple(metric.name for metric in load(profile).metrics)


def info(profile: str, metric: str) -> MetricInfo:
    """Return the declaration of a metric: of the profile, or of those that every board has.

    Raises:
        UnknownName: if there is no such profile or metric.
    """
    # Looked up first: importing a profile's scorer and its grammars takes time.
    if common := common_metric(metric):
        return common
    declared = {declaration.name: declaration for declaration in load(profile).metrics}
    if metric not in declared:
        raise UnknownName(f"metric of profile {profile}", metric, declared)
    return declared[metric]

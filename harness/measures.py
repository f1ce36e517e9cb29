"""`Measurement`: what a run computes of its samples at once, or leaves to `ctxbench rescore`.

It is no part of a run's identity. Scores under the default profile are always computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from ctxbench.harness.metrics.profile import DEFAULT, DIAGNOSTICS


class Measurement(StrEnum):
    """Something that can be computed of a stored sample later."""

    GAIN = "gain"
    """Context gain: what the reference costs in bits, with the context and without."""
    DIAGNOSTICS = "diagnostics"
    """Use and cost of the context, and invented names."""
    PROFILES = "profiles"
    """Scores under the published profiles beside the default one."""

    @property
    def remark(self) -> str:
        """The remark on a run that has left it out; a board shows it until every sample has it."""
        return (
            f"{_NAMES[self]} not measured for every sample, and not shown: "
            f"`ctxbench rescore --measure {self}` does it; no model is asked to write."
        )


SCORES = "scores"
"""In a list of measures: nothing but the scores that every run has."""
EVERY = frozenset(Measurement)
_NAMES = {
    Measurement.GAIN: "Context gain is",
    Measurement.DIAGNOSTICS: "Diagnostics are",
    Measurement.PROFILES: "Scores of published profiles are",
}
ALWAYS = "em"
"""A metric that every sample with a known answer has under the default profile."""
GAINS = ("context_gain", "bits")
CHECKS = tuple(metric.name for metric in DIAGNOSTICS)
"""Names of what `Measurement.DIAGNOSTICS` computes."""


def left_out(remarks: Collection[str]) -> list[Measurement]:
    """Return what a run left out at some time, by its remarks."""
    return [measure for measure in Measurement if measure.remark in remarks]


def without_parts(
    columns: Mapping[str, Mapping[str, float | None]],
    scored: Collection[str],
    remarks: tuple[str, ...],
    *,
    profile: str,
) -> tuple[dict[str, Mapping[str, float | None]], tuple[str, ...]]:
    """Leave out columns that only a part of a run's samples has, and remarks on what has been made up for.

    Args:
        columns: metric -> sample -> value, None where a metric is undefined.
        scored: the samples that have scores under the default profile.
        remarks: of the run.
        profile: whose metrics are among the columns.
    """
    whole = dict(columns)
    for measure in left_out(remarks):
        if measure is Measurement.PROFILES:
            own = [name for name in columns if name not in (*GAINS, *CHECKS)]
            names = [] if profile == DEFAULT else own or [""]
        else:
            names = list(GAINS if measure is Measurement.GAIN else CHECKS)
        if all(set(scored) <= columns.get(name, {}).keys() for name in names):
            remarks = tuple(remark for remark in remarks if remark != measure.remark)
            continue
        for name in names:
            whole.pop(name, None)
    return whole, remarks

"""Profile `infercom`: equal to the scorer released with InferCom: RepoCoder's EM and ES, and identifier match.

For identifiers, comment lines are dropped before the prediction is reduced to the target's number of
lines, and the lines are joined with nothing between them, so that words at line ends can merge.
"""

from __future__ import annotations

from ctxbench.bench.languages.base import Language
from ctxbench.harness.metrics import repocoder
from ctxbench.harness.metrics.lexing import identifiers, match_identifiers
from ctxbench.harness.metrics.profile import Profile, Values, profile, share

_SOURCE = "InferCom's released scorer"


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em``, ``es``, ``id_em`` and ``id_f1`` in 0..1; ``es`` is None for a blank target."""
    target = _code_lines(language, ground_truth)
    predicted = _code_lines(language, prediction)[: len(target)]
    names = match_identifiers(identifiers(language, "".join(predicted)), identifiers(language, "".join(target)))
    line_values = repocoder.score(language, prompt, prediction, ground_truth)
    return {**line_values, "id_em": names.em, "id_f1": names.f1}


def _code_lines(language: str, text: str) -> list[str]:
    sign = Language(language).comment
    return [line for line in repocoder.lines(text) if not line.startswith(sign)]


profile(
    Profile(
        name="infercom",
        summary="InferCom's scorer: RepoCoder's lines, identifiers without comment lines",
        metrics=(
            *repocoder.METRICS,
            share("id_em", "The identifiers are those of the reference, in the same order.", source=_SOURCE),
            share("id_f1", "F1 of the identifiers, as sets; 0 if neither text has any.", source=_SOURCE),
        ),
        score=score,
    )
)

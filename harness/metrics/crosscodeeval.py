"""Profile `crosscodeeval`: equal to the scorer released with CrossCodeEval, its quirks included.

The prediction is cut to one statement, comments are removed from both texts by pattern (``#…`` and
``//…``, also inside strings), then the texts and their identifiers are compared.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from rapidfuzz.distance import Indel

from ctxbench.harness.metrics import identifiers
from ctxbench.harness.metrics.profile import Profile, Values, points, share
from ctxbench.harness.metrics.profiles import profile
from ctxbench.harness.metrics.statement import cut

_SOURCE = "CrossCodeEval's released scorer"
_HASH = re.compile(r"#[^\n]*")
_SLASHES = re.compile(r"//[^\n]*")


def clean(text: str) -> str:
    """Delete from ``#``, then from ``//``, to the end of the line, in any language; block comments stay."""
    return _SLASHES.sub("", _HASH.sub("", text))


def cleaned(language: str, prompt: str, prediction: str, ground_truth: str) -> tuple[str, str]:
    """Return (prediction, target) as they are compared; the target is never cut."""
    return clean(cut(language, prompt, prediction)), clean(ground_truth)


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``id_*`` in 0..1, ``es`` and ``es_difflib`` as whole points 0..100."""
    predicted, target = cleaned(language, prompt, prediction, ground_truth)
    names = identifiers.match(identifiers.extract(language, predicted), identifiers.extract(language, target))
    predicted_text, target_text = predicted.strip(), target.strip()
    return {
        "em": float(_lines(predicted) == _lines(target)),
        "es": float(_points(predicted_text, target_text, _levenshtein_ratio)),
        "es_difflib": float(_points(predicted_text, target_text, _difflib_ratio)),
        "id_em": names.em,
        "id_precision": names.precision,
        "id_recall": names.recall,
        "id_f1": names.f1,
    }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _points(predicted: str, target: str, ratio: Callable[[str, str], float]) -> int:
    """Return a similarity in whole points, ties to the even one."""
    if predicted == target:
        return 100
    if not predicted or not target:
        return 0
    return round(100 * ratio(predicted, target))


def _levenshtein_ratio(predicted: str, target: str) -> float:
    """Return 1 - (insertions + deletions) / (sum of lengths), in this order of operations."""
    return 1.0 - Indel.distance(predicted, target) / (len(predicted) + len(target))


def _difflib_ratio(predicted: str, target: str) -> float:
    """Return difflib's ratio, its popularity heuristic ("autojunk") on."""
    return difflib.SequenceMatcher(None, predicted, target).ratio()


profile(
    Profile(
        name="crosscodeeval",
        summary="CrossCodeEval's scorer: first statement, comments removed by pattern",
        metrics=(
            share(
                "em",
                "Exact match of the first statement and the reference, comments removed.",
                source=_SOURCE,
            ),
            points(
                "es",
                "Edit similarity of the first statement and the reference, in whole points (with python-Levenshtein).",
                source=_SOURCE,
            ),
            points(
                "es_difflib",
                "Edit similarity by difflib, which the released code uses where python-Levenshtein is missing.",
                source=_SOURCE,
            ),
            share("id_em", "The identifiers are those of the reference, in the same order.", source=_SOURCE),
            share("id_precision", "Share of the predicted identifiers that the reference has.", source=_SOURCE),
            share("id_recall", "Share of the reference's identifiers that were predicted.", source=_SOURCE),
            share(
                "id_f1", "Harmonic mean of identifier precision and recall; 0 if neither text has any.", source=_SOURCE
            ),
        ),
        score=score,
    )
)

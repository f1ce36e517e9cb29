"""Profile `repocoder`: equal to the line scorer released with RepoCoder, its quirks included.

Both texts become their stripped, non-blank lines; the prediction keeps as many as the target has. The
prompt and the language are not looked at, comments stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

from ctxbench.harness.metrics.profile import Profile, Values, profile, share

_SOURCE = "RepoCoder's released scorer"


def score(_language: str, _prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``es`` in 0..1."""
    return {"em": float(exact_match(prediction, ground_truth)), "es": edit_similarity(prediction, ground_truth)}


def score_first(predictions: Sequence[str], ground_truth: str, k: int) -> Values:
    """Return the best ``em`` and ``es`` of the first `k` predictions (fewer, if there are fewer)."""
    rows = [score("", "", prediction, ground_truth) for prediction in predictions[:k]]
    best: Values = {}
    for metric in ("em", "es"):
        best[metric] = max((value for row in rows if (value := row[metric]) is not None), default=None)
    return best


def exact_match(prediction: str, ground_truth: str) -> bool:
    """Say whether the kept lines are equal; always, if the target has no non-blank line."""
    predicted, target = _compared_lines(prediction, ground_truth)
    return predicted == target


def edit_similarity(prediction: str, ground_truth: str) -> float | None:
    """Return 1 - Levenshtein distance / greater length.

    None if the target has no non-blank line: the official code divides by zero there.
    """
    predicted, target = _compared_lines(prediction, ground_truth)
    if not target:
        return None
    predicted_text, target_text = "\n".join(predicted), "\n".join(target)
    return 1 - Levenshtein.distance(predicted_text, target_text) / max(len(predicted_text), len(target_text))


def _compared_lines(prediction: str, ground_truth: str) -> tuple[list[str], list[str]]:
    target = lines(ground_truth)
    return lines(prediction)[: len(target)], target


def lines(text: str) -> list[str]:
    """Return the stripped non-blank lines; everything that `str.splitlines` splits at ends a line."""
    return [stripped for line in text.splitlines() if (stripped := line.strip())]


METRICS = (
    share("em", "Exact match of as many non-blank lines as the reference has.", source=_SOURCE),
    share("es", "Edit similarity of those lines: 1 - Levenshtein distance / greater length.", source=_SOURCE),
)

profile(
    Profile(
        name="repocoder", summary="RepoCoder's scorer: as many lines as the target has", metrics=METRICS, score=score
    )
)

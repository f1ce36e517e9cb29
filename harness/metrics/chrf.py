"""Profile `context_collection`: chrF as in the Context Collection Competition of ASE 2025.

The whole completion is compared with the whole reference, nothing of either cut off or stripped of comments. chrF is
Popović's (2015), with the defaults of sacreBLEU's sentence score, which the organisers' package ``codegen_metrics``
wraps: n-grams of 1 to 6 characters, blanks left out, recall weighing twice as much as precision, means over the orders
that both texts have.
"""

from __future__ import annotations

from collections import Counter

from ctxbench.bench.elementary import running_sum
from ctxbench.harness.metrics.profile import Profile, Values, profile, share

_ORDER, _BETA = 6, 2


def chrf(prediction: str, ground_truth: str) -> float:
    """Return chrF in 0..1; 0 where one of the texts is blank."""
    predicted, target = ("".join(text.split()) for text in (prediction, ground_truth))
    orders = [_shares(predicted, target, order) for order in range(1, min(_ORDER, len(predicted), len(target)) + 1)]
    if not orders:
        return 0.0
    precision = running_sum(precision for precision, _ in orders) / len(orders)
    recall = running_sum(recall for _, recall in orders) / len(orders)
    weighed = _BETA**2 * precision + recall
    return (1 + _BETA**2) * precision * recall / weighed if weighed else 0.0


def _shares(predicted: str, target: str, order: int) -> tuple[float, float]:
    """Return precision and recall of the n-grams of one order."""
    ours, theirs = (
        Counter(text[start : start + order] for start in range(len(text) - order + 1)) for text in (predicted, target)
    )
    matches = (ours & theirs).total()
    return matches / ours.total(), matches / theirs.total()


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:  # noqa: ARG001 - texts alone
    """Return ``chrf`` in 0..1."""
    return {"chrf": chrf(prediction, ground_truth)}


profile(
    Profile(
        name="context_collection",
        summary="chrF of the whole completion, as in the Context Collection Competition of 2025",
        metrics=(
            share(
                "chrf",
                "Character n-gram F-score, recall twice as heavy as precision, blanks left out.",
                source="Popović 2015, with sacreBLEU's defaults",
            ),
        ),
        score=score,
    )
)

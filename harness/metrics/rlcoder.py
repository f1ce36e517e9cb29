"""Profile `rlcoder_repoeval`: RLCoder's RepoEval figures, CrossCodeEval's clean texts under RepoCoder's EM and ES."""

from __future__ import annotations

from ctxbench.harness.metrics import repocoder
from ctxbench.harness.metrics.crosscodeeval import cleaned
from ctxbench.harness.metrics.profile import Profile, Values, profile


def score(language: str, prompt: str, prediction: str, ground_truth: str) -> Values:
    """Return ``em`` and ``es`` in 0..1; ``es`` is None where nothing of the target is left."""
    predicted, target = cleaned(language, prompt, prediction, ground_truth)
    return repocoder.score(language, prompt, predicted, target)


profile(
    Profile(
        name="rlcoder_repoeval",
        summary="RLCoder's RepoEval scorer: CrossCodeEval's clean statement under RepoCoder's formulas",
        metrics=repocoder.METRICS,
        score=score,
    )
)

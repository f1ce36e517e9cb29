"""Score stored completions under profiles that were added since; no model is asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ctxbench.bench.samples import SampleSet
from ctxbench.harness import metrics
from ctxbench.harness.bits import has_answer
from ctxbench.harness.scoring import profiles_of, text_scores
from ctxbench.harness.store.scores import UnscoredCompletion, add_scores, unscored
from ctxbench.harness.store.store import Store

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], Any]]]
_CHUNK = 100
"""Completions whose scores are stored together: as many are lost at most when the work is interrupted."""


def rescore(store: Store, run: str, sample_set: SampleSet, profile: str, *, progress: Progress) -> int:
    """Give the completions of a run the metrics of a profile that they lack; return how many got some.

    Interrupted, it goes on with the next call where it stopped. Nothing is stored where the profile is not defined for
    a sample, or the sample has no answer to compare with.

    Args:
        store: where the run is.
        run: its id.
        sample_set: the set that it is over.
        profile: a name of `harness.metrics.PROFILES`.
        progress: shows how far it is.
    """
    names = metrics.metrics(profile)
    samples = {sample.id: sample for sample in sample_set.samples}
    lacking = [
        completion
        for completion in unscored(store, run, profile, names)
        if profiles_of(samples[completion.sample_id], (profile,))
        and has_answer(sample_set.references[completion.sample_id])
    ]

    if not lacking:
        return 0

    def scores(completion: UnscoredCompletion) -> dict[str, float | None]:
        sample, reference = samples[completion.sample_id], sample_set.references[completion.sample_id]
        values = text_scores(sample, reference, completion.text, (profile,))
        # What a scorer leaves out is undefined: stored as such, it is not asked for again.
        return {name: values.get((profile, name)) for name in names}

    with progress(f"{run} {profile}", len(lacking)) as tick:
        for start in range(0, len(lacking), _CHUNK):
            chunk = lacking[start : start + _CHUNK]
            add_scores(
                store,
                run,
                profile,
                {(completion.sample_id, completion.idx): scores(completion) for completion in chunk},
            )
            tick(len(chunk))
    return len(lacking)

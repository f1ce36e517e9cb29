"""Judge completions: those of a running attempt, and those of stored runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.asking import AnsweredSample
from ctxbench.harness.execution import Executor, Rejudgement
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import JudgedCompletion, UnjudgedCompletion
from ctxbench.harness.store.write import StoredVerdict


def judged(answered: AnsweredSample, executor: Executor | None) -> AnsweredSample:
    """Return an answered sample with the verdicts of its completions; empty completions need none.

    Raises:
        MachineFault: if one of them fails; the others are kept in the store.
    """
    if executor is None or not answered.sample.tested:
        return answered
    futures = [
        executor.submit(answered.sample, completion.text) if completion.text.strip() else None
        for completion in answered.completions
    ]
    completions = [
        completion if future is None else dataclasses.replace(completion, verdict=executor.wait(future))
        for completion, future in zip(answered.completions, futures, strict=True)
    ]
    return dataclasses.replace(answered, completions=tuple(completions))


def judge_stored(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnjudgedCompletion]
) -> Iterator[tuple[UnjudgedCompletion, StoredVerdict | MachineFault]]:
    """Judge completions of a stored run, and store the score of each as soon as it is known; in their order.

    Args:
        store: where the run is.
        executor: gives verdicts.
        sample_set: the run's samples.
        run: its id.
        lacking: the completions to judge, see `verdicts.unjudged`.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    futures = [(completion, executor.submit(samples[completion.sample_id], completion.text)) for completion in lacking]
    for completion, future in futures:
        try:
            verdict = executor.wait(future)
        except MachineFault as fault:
            yield completion, fault
            continue
        verdicts.link(store, run, completion.sample_id, {completion.idx: verdict})
        yield completion, verdict


def judge_again(
    executor: Executor, sample_set: SampleSet, judged_completions: Sequence[JudgedCompletion]
) -> Iterator[tuple[JudgedCompletion, Rejudgement | MachineFault]]:
    """Judge completions of a stored run once more, equal ones once; in their order.

    Args:
        executor: gives verdicts.
        sample_set: the run's samples.
        judged_completions: the completions to judge, see `verdicts.judged`.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    begun: dict[str, Future[Rejudgement]] = {}
    for completion in judged_completions:
        if completion.key not in begun:
            begun[completion.key] = executor.again(samples[completion.sample_id], completion.text, completion.key)
    for completion in judged_completions:
        try:
            yield completion, executor.wait(begun[completion.key])
        except MachineFault as fault:
            yield completion, fault

"""Completions get their verdicts: those just made, and those that a stored run lacks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.samples import SampleSet
from ctxbench.harness.asking import Made
from ctxbench.harness.execution import Again, Executor
from ctxbench.harness.store import verdicts
from ctxbench.harness.store.records import StoredVerdict
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import JudgedCompletion, UnjudgedCompletion


def judged(made: Made, executor: Executor | None) -> Made:
    """Return what was made with the verdicts of its functions; an empty one needs none.

    Raises:
        MachineFault: if one of them cannot be had; the others are kept in the store.
    """
    if executor is None or not made.sample.tested:
        return made
    begun = [executor.submit(made.sample, one.text) if one.text.strip() else None for one in made.completions]
    completions = [
        one if future is None else dataclasses.replace(one, verdict=executor.wait(future))
        for one, future in zip(made.completions, begun, strict=True)
    ]
    return dataclasses.replace(made, completions=tuple(completions))


def judge_stored(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnjudgedCompletion]
) -> Iterator[tuple[UnjudgedCompletion, StoredVerdict | MachineFault]]:
    """Judge completions of a stored run, and give each its score as soon as it is known; in their order.

    Args:
        store: where the run is.
        executor: who gives verdicts.
        sample_set: the run's samples.
        run: its id.
        lacking: what to judge, see `verdicts.unjudged`.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    begun = [(one, executor.submit(samples[one.sample_id], one.text)) for one in lacking]
    for one, future in begun:
        try:
            verdict = executor.wait(future)
        except MachineFault as fault:
            yield one, fault
            continue
        verdicts.link(store, run, one.sample_id, {one.idx: verdict})
        yield one, verdict


def judge_again(
    executor: Executor, sample_set: SampleSet, known: Sequence[JudgedCompletion]
) -> Iterator[tuple[JudgedCompletion, Again | MachineFault]]:
    """Judge completions of a stored run once more, equal ones once; in their order.

    Args:
        executor: who gives verdicts.
        sample_set: the run's samples.
        known: what to judge, see `verdicts.judged`.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    begun: dict[str, Future[Again]] = {}
    for completion in known:
        if completion.key not in begun:
            begun[completion.key] = executor.again(samples[completion.sample_id], completion.text, completion.key)
    for completion in known:
        try:
            yield completion, executor.wait(begun[completion.key])
        except MachineFault as fault:
            yield completion, fault

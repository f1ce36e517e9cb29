"""Completions that come from a file: read strictly, judged, written as `exec` writes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.files import read_jsonl
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing.types import Verdict
from ctxbench.bench.types import Sample
from ctxbench.harness.execution import Again, Executor
from ctxbench.harness.imported.ctxbench import completions
from ctxbench.harness.judging import judge_again, judge_stored
from ctxbench.harness.store.records import StoredFault, StoredVerdict
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import JudgedCompletion, UnjudgedCompletion

_CURE = 'write {"sample": "…", "text": "…"}, and if wanted index (a whole number), strategy, generator'
_EMPTY: Mapping[str, Any] = {
    "verdict": "FAILED",
    "reason": "empty",
    "tests_run": 0,
    "seconds": 0.0,
    "peak_bytes": 0,
    "flags": [],
}
"""A completion of nothing but blanks needs no test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One completion of a file."""

    sample: Sample
    text: str
    index: int
    labels: Mapping[str, str]
    """``strategy`` and ``generator``, where the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What `exec` says of one completion."""

    record: Mapping[str, Any]
    fault: MachineFault | None = None
    """Why there is no verdict."""
    changed: bool = False
    """Whether another score counts since it was judged again."""


def read(file: Path, sample_set: SampleSet) -> list[Given]:
    """Read completions; nothing is judged if one line is wrong.

    Raises:
        InputFault: naming file, line and field.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    given: list[Given] = []
    for where, completion, index in completions((f"{file}:{number}", record) for number, record in read_jsonl(file)):
        sample = samples.get(completion.sample)
        if sample is None:
            fault = UnknownName(f"sample of {sample_set.name!r}", completion.sample, samples)
            raise InputFault(fault.what, where=where, cure=fault.cure)
        if not sample.tested:
            raise InputFault(f"{sample.id!r} is a {sample.kind} sample: it has no tests", where=where, cure=_CURE)
        # Verdict, reason and flags of judged runs are passed over here, where the tests say anew.
        labels = completion.model_dump(include={"strategy", "generator"}, exclude_unset=True)
        given.append(Given(sample=sample, text=completion.text, index=index, labels=labels))
    if not given:
        raise InputFault("no completion in the file", where=str(file), cure=_CURE)
    return given


def judge(executor: Executor, given: Sequence[Given]) -> Generator[Row]:
    """Give what the tests say of each, in order; all are begun at once."""
    begun = [executor.submit(one.sample, one.text) if one.text.strip() else None for one in given]
    for one, future in zip(given, begun, strict=True):
        fault: MachineFault | None = None
        said = _EMPTY
        if future is not None:
            try:
                said = _said(executor.wait(future))
            except MachineFault as error:
                fault, said = error, _broken(error)
        yield Row(record={"sample": one.sample.id, "index": one.index, **said, **one.labels}, fault=fault)


def judge_all_again(executor: Executor, given: Sequence[Given]) -> Generator[Row]:
    """Give what the tests say now of completions of a file, in order; those that have no verdict get their first."""
    begun: dict[tuple[str, str], Future[Again]] = {}
    for one in given:
        if one.text.strip() and (one.sample.id, one.text) not in begun:
            begun[one.sample.id, one.text] = executor.again(one.sample, one.text)
    for one in given:
        labels = {"sample": one.sample.id, "index": one.index}
        future = begun.get((one.sample.id, one.text))
        row = Row(record={**labels, **_EMPTY})
        if future is not None:
            try:
                row = _again(labels, executor.wait(future))
            except MachineFault as error:
                row = _again(labels, error)
        yield dataclasses.replace(row, record={**row.record, **one.labels})


def judge_run_again(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, known: Sequence[JudgedCompletion]
) -> Generator[Row]:
    """Give what the tests say now of completions of a stored run that have verdicts; what they said stays stored."""
    done, reason = 0, "interrupted"
    with store.claims() as claims:
        attempt = store.start_attempt(run, f"tests again in {executor.sandbox}", claims=claims)
        try:
            for completion, again in judge_again(executor, sample_set, known):
                row = _again({"sample": completion.sample_id, "index": completion.idx}, again)
                if row.fault is not None:
                    fault = StoredFault(sample_id=completion.sample_id, kind="machine", message=str(row.fault))
                    store.add_fault(attempt, fault)
                done += row.fault is None
                yield row
            reason = "done" if done == len(known) else "faults"
        finally:
            store.end_attempt(attempt, reason=reason, finished=done, missing=len(known) - done)


def _again(labels: Mapping[str, Any], found: Again | MachineFault) -> Row:
    if isinstance(found, MachineFault):
        return Row(record={**labels, **_broken(found)}, fault=found)
    more = {"before": found.before.verdict, "anew": [verdict.verdict for verdict in found.anew]}
    return Row(record={**labels, **_said(found.counts), **more}, changed=found.changed)


def judge_run(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnjudgedCompletion]
) -> Generator[Row]:
    """Give what the tests say of completions of a stored run, which get their scores."""
    if not lacking:
        return
    done, reason = 0, "interrupted"
    with store.claims() as claims:
        attempt = store.start_attempt(run, f"tests in {executor.sandbox}", claims=claims)
        try:
            for one, found in judge_stored(store, executor, sample_set, run, lacking):
                fault = found if isinstance(found, MachineFault) else None
                if fault is not None:
                    store.add_fault(attempt, StoredFault(sample_id=one.sample_id, kind="machine", message=str(fault)))
                done += fault is None
                said = _broken(found) if isinstance(found, MachineFault) else _said(found)
                yield Row(record={"sample": one.sample_id, "index": one.idx, **said}, fault=fault)
            reason = "done" if done == len(lacking) else "faults"
        finally:
            store.end_attempt(attempt, reason=reason, finished=done, missing=len(lacking) - done)


def _said(verdict: StoredVerdict) -> Mapping[str, Any]:
    return {
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "tests_run": verdict.tests_run,
        "seconds": verdict.seconds,
        "peak_bytes": verdict.peak_bytes,
        "flags": list(verdict.flags),
        **({"earlier": verdict.earlier} if verdict.earlier else {}),
    }


def _broken(fault: MachineFault) -> Mapping[str, Any]:
    return {**_EMPTY, "verdict": str(Verdict.BROKEN), "reason": str(fault)}

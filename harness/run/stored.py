"""Work on completions after their run: judge those of files and of stored runs, and score stored ones anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.files import read_jsonl
from ctxbench.bench.formats.ctxbench import completions
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.testing.types import Verdict
from ctxbench.bench.types import Sample
from ctxbench.harness import metrics
from ctxbench.harness.run.attempt import Progress
from ctxbench.harness.run.judging import Executor, Rejudgement, judge_stored
from ctxbench.harness.run.scoring import has_answer, profiles_of, text_scores
from ctxbench.harness.store.scores import UnscoredCompletion, add_scores, unscored
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import JudgedCompletion, UnjudgedCompletion
from ctxbench.harness.store.write import StoredFault, StoredVerdict

_CURE = 'write {"sample": "…", "text": "…"}, and if wanted index (a whole number), strategy, generator'
_EMPTY: Mapping[str, Any] = {
    "verdict": "FAILED",
    "reason": "empty",
    "tests_run": 0,
    "seconds": 0.0,
    "peak_bytes": 0,
    "flags": [],
}
"""Verdict of a completion of nothing but blanks, which needs no test."""
_CHUNK = 100
"""Completions whose scores are stored together: as many are lost at most when the work is interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCompletion:
    """One completion of a file."""

    sample: Sample
    text: str
    index: int
    labels: Mapping[str, str]
    """``strategy`` and ``generator``, where the file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One line of `exec`: a completion and its verdict."""

    record: Mapping[str, Any]
    fault: MachineFault | None = None
    """Why there is no verdict."""
    changed: bool = False
    """Whether judging it again changed its score."""
    verdict: StoredVerdict | None = None
    """The verdict as it is kept; None without one, and where it was judged again."""


def read(file: Path, sample_set: SampleSet) -> list[FileCompletion]:
    """Read completions; a single wrong line refuses the whole file.

    Raises:
        InputFault: naming file, line and field.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    file_completions: list[FileCompletion] = []
    for where, completion, index in completions((f"{file}:{number}", record) for number, record in read_jsonl(file)):
        sample = samples.get(completion.sample)
        if sample is None:
            fault = UnknownName(f"sample of {sample_set.name!r}", completion.sample, samples)
            raise InputFault(fault.what, where=where, cure=fault.cure)
        if not sample.tested:
            raise InputFault(f"{sample.id!r} is a {sample.kind} sample: it has no tests", where=where, cure=_CURE)
        # The tests give verdict, reason and flags anew: those of the file are ignored.
        labels = completion.model_dump(include={"strategy", "generator"}, exclude_unset=True)
        file_completions.append(FileCompletion(sample=sample, text=completion.text, index=index, labels=labels))
    if not file_completions:
        raise InputFault("no completion in the file", where=str(file), cure=_CURE)
    return file_completions


def judge_file(
    executor: Executor, completions_of_file: Sequence[FileCompletion], *, again: bool = False
) -> Generator[VerdictRow]:
    """Yield the verdict of each completion of a file, in order; all are submitted at once, equal ones once.

    With `again` those that have a verdict are judged once more.
    """
    submit: Callable[[Sample, str], Future[Any]] = executor.again if again else executor.submit
    futures: dict[tuple[str, str], Future[Any]] = {}
    for completion in completions_of_file:
        key = (completion.sample.id, completion.text)
        if completion.text.strip() and key not in futures:
            futures[key] = submit(completion.sample, completion.text)
    for completion in completions_of_file:
        labels = {"sample": completion.sample.id, "index": completion.index}
        future = futures.get((completion.sample.id, completion.text))
        row = VerdictRow(record={**labels, **_EMPTY}) if future is None else _row(labels, _outcome(executor, future))
        yield dataclasses.replace(row, record={**row.record, **completion.labels})


def judge_run(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnjudgedCompletion]
) -> Generator[VerdictRow]:
    """Yield verdicts of completions of a stored run, which get their scores."""
    outcomes = judge_stored(store, executor, sample_set, run, lacking)
    return _attempted(store, run, f"tests in {executor.sandbox}", outcomes, len(lacking))


def judge_run_again(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, judged: Sequence[JudgedCompletion]
) -> Generator[VerdictRow]:
    """Yield new verdicts of completions of a stored run that have verdicts; the old ones stay stored."""
    samples = {sample.id: sample for sample in sample_set.samples}
    futures: dict[str, Future[Rejudgement]] = {}
    for completion in judged:
        if completion.key not in futures:
            futures[completion.key] = executor.again(samples[completion.sample_id], completion.text, completion.key)
    outcomes = ((completion, _outcome(executor, futures[completion.key])) for completion in judged)
    return _attempted(store, run, f"tests again in {executor.sandbox}", outcomes, len(judged))


def _attempted(
    store: Store,
    run: str,
    words: str,
    outcomes: Iterable[tuple[UnjudgedCompletion | JudgedCompletion, StoredVerdict | Rejudgement | MachineFault]],
    total: int,
) -> Generator[VerdictRow]:
    """Yield rows as an attempt at a run, with its faults and its end recorded."""
    finished, reason = 0, "interrupted"
    with store.claims() as claims:
        attempt = store.start_attempt(run, words, claims=claims)
        try:
            for completion, outcome in outcomes:
                row = _row({"sample": completion.sample_id, "index": completion.idx}, outcome)
                if row.fault is not None:
                    fault = StoredFault(sample_id=completion.sample_id, kind="machine", message=str(row.fault))
                    store.add_fault(attempt, fault)
                finished += row.fault is None
                yield row
            reason = "done" if finished == total else "faults"
        finally:
            store.end_attempt(attempt, reason=reason, finished=finished, missing=total - finished)


def _outcome(executor: Executor, future: Future[Any]) -> Any:
    """Return the verdict or the rejudgement that a future brings, or the fault in its place."""
    try:
        return executor.wait(future)
    except MachineFault as fault:
        return fault


def _row(labels: Mapping[str, Any], outcome: StoredVerdict | Rejudgement | MachineFault) -> VerdictRow:
    if isinstance(outcome, MachineFault):
        broken = {"verdict": str(Verdict.BROKEN), "reason": str(outcome)}
        return VerdictRow(record={**labels, **_EMPTY, **broken}, fault=outcome)
    if isinstance(outcome, StoredVerdict):
        return VerdictRow(record={**labels, **_verdict_fields(outcome)}, verdict=outcome)
    more = {"before": outcome.before.verdict, "anew": [verdict.verdict for verdict in outcome.anew]}
    return VerdictRow(record={**labels, **_verdict_fields(outcome.counts), **more}, changed=outcome.changed)


def _verdict_fields(verdict: StoredVerdict) -> Mapping[str, Any]:
    return {
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "tests_run": verdict.tests_run,
        "seconds": verdict.seconds,
        "peak_bytes": verdict.peak_bytes,
        "flags": list(verdict.flags),
        **({"earlier": verdict.earlier} if verdict.earlier else {}),
    }


def rescore(store: Store, run: str, sample_set: SampleSet, profile: str, *, progress: Progress) -> int:
    """Give the completions of a run the metrics of a profile that they lack; return how many got some.

    Interrupted, it goes on with the next call where it stopped. Nothing is stored where the profile is not defined for
    a sample, or the sample has no answer to compare with.

    `run` is an id, and `profile` a name of `harness.metrics.PROFILES`.
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

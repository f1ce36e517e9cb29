"""Work after a run: judges completions in files or stored runs, adds missing scores, and measures gains of blocks."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.concurrency import Progress, Tick
from ctxbench.bench.errors import InputFault, MachineFault, UnknownName
from ctxbench.bench.files import read_jsonl
from ctxbench.bench.formats.ctxbench import completions
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Verdict
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness import metrics
from ctxbench.harness.definitions import RETRIEVED
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Generator as Coder
from ctxbench.harness.generators.fim import strategy_prompt
from ctxbench.harness.results import BITS, CHECKS, Measurement
from ctxbench.harness.run.execution import Executor, judge_stored
from ctxbench.harness.run.scheduling import NothingWorks, isolate_faults
from ctxbench.harness.run.scoring import (
    Bits,
    LikelihoodModel,
    SampleScorer,
    Scores,
    gain,
    goes_on,
    has_answer,
    profiles_of,
    target_after_cursor,
    text_scores,
)
from ctxbench.harness.store.details import prompts_of
from ctxbench.harness.store.runs import CONTEXT, SET_BACK, StoredRun, check_set
from ctxbench.harness.store.scores import Gain, add_gains, add_scores, gains_of, unscored
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import UnscoredCompletion
from ctxbench.harness.store.write import StoredFault, StoredVerdict
from ctxbench.strategies.api import Prompt

_CURE = 'write {"sample": "…", "text": "…"}; index (a whole number), strategy and generator are optional'
_EMPTY: Mapping[str, Any] = {
    "verdict": "FAILED",
    "reason": "empty",
    "tests_run": 0,
    "seconds": 0.0,
    "peak_bytes": 0,
    "flags": [],
}
"""Fields of the verdict on a blank completion, which needs no test."""
Measured = Callable[[Sequence[UnscoredCompletion]], Sequence[Scores]]
Works = Callable[[MachineFault], bool]
"""Fault -> whether other completions can still be measured after it."""
_CHUNK = 100
"""Number of completions whose scores are stored together, and so the most that an interrupt can lose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCompletion:
    """A completion from a file, with its sample."""

    sample: Sample
    text: str
    index: int
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One output line of `ctxbench exec`: a completion with its verdict, or with the fault of judging it."""

    record: Mapping[str, Any]
    fault: MachineFault | None = None
    verdict: StoredVerdict | None = None


def read(file: Path, sample_set: SampleSet) -> list[FileCompletion]:
    """Read completions from a file. A single invalid line makes the whole file invalid.

    Raises:
        InputFault: if a line is invalid, or the file contains no completion. The message names the invalid line.
    """
    samples = {sample.id: sample for sample in sample_set.samples}
    file_completions: list[FileCompletion] = []
    for where, completion, index in completions((f"{file}:{number}", record) for number, record in read_jsonl(file)):
        sample = samples.get(completion.sample)
        if sample is None:
            fault = UnknownName(f"sample of {sample_set.name!r}", completion.sample, samples)
            raise InputFault(fault.what, where=where, cure=fault.cure)
        if not sample.tested:
            raise InputFault(
                f"{sample.id!r} is a {sample.kind} sample without tests", where=where, cure="remove this line"
            )
        # Ignore verdicts, reasons and flags in the file: the tests produce new ones.
        labels = completion.model_dump(include={"strategy", "generator"}, exclude_unset=True)
        file_completions.append(FileCompletion(sample=sample, text=completion.text, index=index, labels=labels))
    if not file_completions:
        raise InputFault("the file contains no completion", where=str(file), cure=_CURE)
    return file_completions


def judge_file(executor: Executor, completions_of_file: Sequence[FileCompletion]) -> Generator[VerdictRow]:
    """Yield a row with the verdict or fault of each completion, in order. Equal completions are judged once."""
    futures: dict[tuple[str, str], Future[StoredVerdict]] = {}
    for completion in completions_of_file:
        key = (completion.sample.id, completion.text)
        if completion.text.strip() and key not in futures:
            futures[key] = executor.submit(completion.sample, completion.text)
    for completion in completions_of_file:
        labels = {"sample": completion.sample.id, "index": completion.index}
        future = futures.get((completion.sample.id, completion.text))
        row = VerdictRow(record={**labels, **_EMPTY}) if future is None else _row(labels, _outcome(executor, future))
        yield dataclasses.replace(row, record={**row.record, **completion.labels})


def judge_run(
    store: Store, executor: Executor, sample_set: SampleSet, run: str, lacking: Sequence[UnscoredCompletion]
) -> Generator[VerdictRow]:
    """Judge completions of a stored run in a new attempt. Store their scores, and yield a row for each, in order."""
    outcomes = judge_stored(store, executor, sample_set, run, lacking)
    return _attempted(store, run, f"tests in {executor.sandbox}", outcomes, len(lacking))


def _attempted(
    store: Store,
    run: str,
    words: str,
    outcomes: Iterable[tuple[UnscoredCompletion, StoredVerdict | MachineFault]],
    total: int,
) -> Generator[VerdictRow]:
    finished, reason = 0, "interrupted"
    with store.run_lock(run) as locked:
        attempt = store.start_attempt(run, words, locked=locked)
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


def _outcome(executor: Executor, future: Future[StoredVerdict]) -> StoredVerdict | MachineFault:
    try:
        return executor.wait(future)
    except MachineFault as fault:
        return fault


def _row(labels: Mapping[str, Any], outcome: StoredVerdict | MachineFault) -> VerdictRow:
    if isinstance(outcome, MachineFault):
        broken = {"verdict": str(Verdict.BROKEN), "reason": str(outcome)}
        return VerdictRow(record={**labels, **_EMPTY, **broken}, fault=outcome)
    return VerdictRow(record={**labels, **_verdict_fields(outcome)}, verdict=outcome)


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
    """Add a profile's missing metrics to the completions of a run. Return the number of changed completions.

    `profile` is a name in `harness.metrics.PROFILES`. A sample gets no scores if it has no reference, or the profile is
    not defined for it. After an interrupt, the next call continues.
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
        # A metric that the scorer leaves out is undefined. Store None, so that the metric is not computed again.
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


def measure(
    home: Home,
    store: Store,
    run: StoredRun,
    sample_set: SampleSet,
    kind: Measurement,
    *,
    progress: Progress,
    resolve: Callable[[str], Coder] = base.resolve,
) -> tuple[int, dict[str, MachineFault]]:
    """Add missing gains or diagnostics to the completions of a run. `rescore` adds the scores of profiles.

    Undefined values are stored as undefined. After an interrupt, the next call continues.

    Returns:
        The number of changed completions, and the faults, by sample, of samples that could not be measured while others
        could.

    Raises:
        InputFault: if a repository is not fetched, or the coder that measured the run is missing or has changed.
        MachineFault: if the coder was lost. Earlier measurements are kept.
    """
    names = (metrics.gain_of(run.coder), BITS) if kind is Measurement.GAIN else CHECKS
    lacking = [
        completion
        for completion in unscored(store, run.id, CONTEXT, names)
        if has_answer(sample_set.references[completion.sample_id])
    ]
    if not lacking:
        return 0, {}
    opens = (
        _gains(store, run, sample_set, resolve) if kind is Measurement.GAIN else _checks(home, store, run, sample_set)
    )
    measured_count = 0
    faults: dict[str, MachineFault] = {}
    with opens as (measured, works), progress(f"{run.strategy} {kind}", len(lacking)) as tick:
        for start in range(0, len(lacking), _CHUNK):
            for chunk, outcome in isolate_faults(measured, lacking[start : start + _CHUNK], works):
                if isinstance(outcome, NothingWorks):
                    raise outcome
                if isinstance(outcome, MachineFault):
                    faults |= {completion.sample_id: outcome for completion in chunk}
                    continue
                rows = {
                    (completion.sample_id, completion.idx): {name: scores.get((CONTEXT, name)) for name in names}
                    for completion, scores in zip(chunk, outcome, strict=True)
                }
                add_scores(store, run.id, CONTEXT, rows)
                measured_count += len(rows)
                tick(len(chunk))
    return measured_count, faults


@contextlib.contextmanager
def _gains(
    store: Store, run: StoredRun, sample_set: SampleSet, resolve: Callable[[str], Coder]
) -> Iterator[tuple[Measured, Works]]:
    """Provide the coder that measured the run; raise `InputFault` if its version has changed."""
    samples = {sample.id: sample for sample in sample_set.samples}
    prompts = prompts_of(store, run.id)
    with open_likelihood_model(run, resolve) as likelihood:
        if likelihood.name != run.coder:
            raise InputFault(
                f"{run.coder} measured the run {run.id}, but {likelihood.name} is installed",
                cure="install the versions of ctxbench and of the model that wrote the run, or repeat the run",
            )
        bits = Bits(store, sample_set.references, likelihood)

        def measured(chunk: Sequence[UnscoredCompletion]) -> list[Scores]:
            pairs = [(samples[completion.sample_id], prompts[completion.sample_id]) for completion in chunk]
            return [gain(costs, likelihood.name) if costs else {} for costs in bits.of_prompts(pairs)]

        yield measured, functools.partial(bits.can_measure, {samples[id_].language for id_ in prompts})


@contextlib.contextmanager
def _checks(home: Home, store: Store, run: StoredRun, sample_set: SampleSet) -> Iterator[tuple[Measured, Works]]:
    samples = {sample.id: sample for sample in sample_set.samples}
    prompts = prompts_of(store, run.id)
    repos = {samples[id_].repo for id_ in prompts}
    scorer = SampleScorer(
        sample_set.references, None, Diagnostics(functools.cache(lambda: sets.snapshots(home, sample_set, repos)))
    )

    def measured(chunk: Sequence[UnscoredCompletion]) -> list[Scores]:
        return [
            scorer.checks(samples[completion.sample_id], prompts[completion.sample_id], completion.text)
            for completion in chunk
        ]

    # Diagnostics only read repositories, so no single completion can fail.
    yield measured, lambda _: False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiagnosis:
    """The gains of a run's blocks after a call of `diagnose`."""

    run: StoredRun
    new: int
    over_limit: int
    unmeasurable: int
    """Number of samples with retrieved blocks whose reference is unknown or whose prompt does not end at the cursor."""
    blocks: Mapping[str, tuple[Gain, ...]]
    """Gains of each sample's measured blocks, by sample id, in the order of the prompt."""
    faults: Mapping[str, MachineFault] = field(default_factory=dict)
    """Faults of samples that could not be measured while others could, by sample."""


def diagnose(
    home: Home,
    store: Store,
    run: StoredRun,
    *,
    limit: int | None,
    progress: Progress,
    resolve: Callable[[str], Coder] = base.resolve,
) -> RunDiagnosis:
    """Measure the gains of blocks in a run's stored prompts, one sample per transaction.

    At most `limit` samples are measured; None for all. Samples that cannot be measured do not count towards the limit.

    Raises:
        InputFault: as in `open_likelihood_model`, and if the sample set is missing or has changed.
        MachineFault: if the coder was lost. Finished samples are kept.
    """
    sample_set = sets.load(home, run.samples)
    check_set(run.id, run.samples_digest, sample_set, cure=SET_BACK)
    samples = {sample.id: sample for sample in sample_set.samples}
    prompts = [
        (sample, prompt)
        for sample, prompt in prompts_of(store, run.id).items()
        if any(block.kind in RETRIEVED for block in prompt.blocks)
    ]
    usable = [
        (sample, prompt)
        for sample, prompt in prompts
        if has_answer(sample_set.references[sample]) and goes_on(samples[sample], prompt)
    ]
    with open_likelihood_model(run, resolve) as likelihood:
        measured = gains_of(store, run.id, likelihood.name)
        waiting = deque((samples[id_], prompt) for id_, prompt in usable if id_ not in measured)
        most = len(waiting) if limit is None else min(limit, len(waiting))
        with progress(run.strategy, most) as tick:
            new, faults = _measure_blocks(store, run, sample_set, likelihood, waiting, most, tick)
        blocks = {sample: tuple(gains) for sample, gains in gains_of(store, run.id, likelihood.name).items()}
    return RunDiagnosis(
        run=run,
        new=new,
        over_limit=len(waiting),
        unmeasurable=len(prompts) - len(usable),
        blocks=blocks,
        faults=faults,
    )


def _measure_blocks(
    store: Store,
    run: StoredRun,
    sample_set: SampleSet,
    likelihood: LikelihoodModel,
    waiting: deque[tuple[Sample, Prompt]],
    most: int,
    tick: Tick,
) -> tuple[int, dict[str, MachineFault]]:
    new, faults = 0, dict[str, MachineFault]()
    while waiting and new < most:
        sample, prompt = waiting.popleft()
        target = target_after_cursor(sample, sample_set.references[sample.id])
        try:
            gains = block_gains(likelihood.coder, prompt, target, sample.language)
        except MachineFault as fault:
            if not likelihood.can_measure([sample.language], fault):
                raise
            faults[sample.id] = fault
            continue
        new += add_gains(store, run.id, sample.id, likelihood.name, gains)
        tick(1)
    return new, faults


def block_gains(coder: Coder, prompt: Prompt, target: str, language: Language) -> dict[int, float]:
    """Return the additional bits that the target costs without each retrieved block, by the index of the block."""
    ordinals = [at for at, block in enumerate(prompt.blocks) if block.kind in RETRIEVED]
    shorter = [Prompt(blocks=(*prompt.blocks[:at], *prompt.blocks[at + 1 :])) for at in ordinals]
    whole, *without = coder.bits(
        list(map(strategy_prompt, (prompt, *shorter))), [target] * (1 + len(shorter)), language
    )
    return {at: bits - whole for at, bits in zip(ordinals, without, strict=True)}


@contextlib.contextmanager
def open_likelihood_model(run: StoredRun, resolve: Callable[[str], Coder]) -> Iterator[LikelihoodModel]:
    """Provide the installed version of the coder that measured a run's context gain.

    Raises:
        InputFault: if no coder measured the run, or the coder cannot measure bits.
    """
    spec = run.coder.rpartition(" ")[0]
    if not spec:
        raise InputFault(f"no model measured the bits of the run {run.id}", cure="choose a run with a context gain")
    model = resolve(spec)
    try:
        if not model.capabilities.log_likelihoods:
            raise InputFault(f"{spec} returns no log-likelihoods", cure="choose a run that another generator measured")
        yield LikelihoodModel(name=f"{spec} {model.version}", coder=model)
    finally:
        model.close()

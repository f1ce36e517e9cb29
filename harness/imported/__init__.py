"""Stores results from elsewhere as runs: files of recorded predictions and verdicts, and the records of packages.

A whole file is read and checked before anything is stored. A run's id depends on the file's digest, so
importing a file again continues the same run: after an interruption, only the missing samples are stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from ctxbench.bench import formats
from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.codereval.predictions import NO_RESULT
from ctxbench.bench.concurrency import Progress, silent
from ctxbench.bench.dates import dates_of
from ctxbench.bench.files import sha256
from ctxbench.bench.formats import RecordedAnswer, Table
from ctxbench.bench.languages.base import Language
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Kind, Sample
from ctxbench.harness.generators.base import Response, Sampling
from ctxbench.harness.imported.matching import Labels, MatchedRun, match_runs
from ctxbench.harness.results import Status
from ctxbench.harness.run.batching import Answer as ModelAnswer
from ctxbench.harness.run.sample import FINAL, AnsweredSample, Completion
from ctxbench.harness.run.scoring import EMPTY, SampleScorer
from ctxbench.harness.run.spec import RunSpec, planned_samples, samples_after
from ctxbench.harness.store import notes
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE, passed
from ctxbench.harness.store.write import Finished, Imported, Mark, StoredCompletion, StoredGeneration, StoredVerdict
from ctxbench.harness.submissions import records as form
from ctxbench.strategies.api import Prompt

_Scored = tuple[AnsweredSample, Finished]
SANDBOX = "imported"
"""Sandbox name in verdicts that come from a file."""
_UNKNOWN: dict[str, Any] = {"context_tokens": 0, "flags": (), "strategy_seconds": 0.0, "generator_seconds": 0.0}
"""Costs of a sample if its file states none."""
_PROMPT = Prompt(blocks=())
"""An empty prompt, because files do not contain prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """The id, labels, sample counts and remarks of one imported run."""

    run: str
    samples: str
    strategy: str
    generator: str
    n: int
    planned: int
    new: int
    """Number of samples that this import stored; 0 if all were stored before."""
    remarks: tuple[str, ...]


def import_results(
    store: Store,
    table: Table,
    format_name: str,
    *,
    labels: Labels | None = None,
    sample_set: SampleSet | None = None,
    language: Language | None = None,
    progress: Progress = silent,
) -> list[ImportSummary]:
    """Store the predictions and verdicts of one file.

    Args:
        store: receives the runs.
        table: the opened file.
        format_name: a name of `bench.formats.prediction_names`.
        labels: strategy and generator; default: the file's, or ``recorded`` and the file's name up to its first dot.
        sample_set: the set that contains the file's sample ids; None if the file describes its samples (CoderEval).
        language: the only language that the samples may have; None for any.
        progress: shows how many samples are scored.

    Returns:
        A summary per run; a file in ctxbench's own format may contain several runs.

    Raises:
        InputFault: if the file is invalid or does not match the samples. Nothing is stored.
    """
    shape = formats.predictions(format_name)
    runs = match_runs(
        shape.read(table.rows),
        shape,
        file=table.source,
        stem=table.name.partition(".")[0] or table.name,
        labels=labels or Labels(),
        sample_set=sample_set,
        language=language,
    )
    source = Imported(format=format_name, source=table.source, sha256=table.digest)
    prepared = [(run, spec_of(run, source)) for run in runs]
    # Score before storing anything, so that a failed import leaves nothing behind.
    scored = [_scored(run, new_samples(run, spec, source, store.finished(spec.id)), progress) for run, spec in prepared]
    return [_stored(store, run, spec, source, new) for (run, spec), new in zip(prepared, scored, strict=True)]


def _scored(run: MatchedRun, completed: Sequence[AnsweredSample], progress: Progress) -> list[_Scored]:
    if run.basis.references is None:
        return [(sample, unscored(sample)) for sample in completed]
    scorer = SampleScorer(run.basis.references)
    scored: list[_Scored] = []
    with progress(f"score {run.generator}", len(completed)) if completed else silent("", 0) as tick:
        for sample in completed:
            scored += [(sample, finished) for finished in scorer.finish([sample])]
            tick(1)
    return scored


def _stored(store: Store, run: MatchedRun, spec: RunSpec, source: Imported, new: Sequence[_Scored]) -> ImportSummary:
    remark_texts = remarks(run, source)
    id_ = store.add_run(spec, run.basis.samples, run.basis.days)
    notes.add_imported(store, id_, source)
    notes.add_remarks(store, id_, remark_texts)
    completions = [completion for sample, _ in new for completion in sample.completions]
    add_samples(
        store,
        spec,
        [finished for _, finished in new],
        generations=[_generation(spec, completion.answer) for completion in completions],
        verdicts=[completion.verdict for completion in completions if completion.verdict],
    )
    return ImportSummary(
        run=id_,
        samples=run.basis.name,
        strategy=run.strategy,
        generator=run.generator,
        n=run.n,
        planned=len(run.basis.samples),
        new=len(new),
        remarks=remark_texts,
    )


def add_samples(
    store: Store,
    spec: RunSpec,
    finished: Sequence[Finished],
    *,
    generations: Sequence[StoredGeneration],
    verdicts: Sequence[StoredVerdict] = (),
) -> None:
    """Store samples of an imported run with their answers and verdicts, all or none, as one attempt at the run."""
    if not finished:
        return
    attempt = store.start_attempt(spec.id, "imported")
    stored_count, reason = 0, "interrupted"
    try:
        stored_count = store.add_all_finished(spec.id, spec.coder, finished, generations=generations, verdicts=verdicts)
        reason = "done"
    finally:
        store.end_attempt(attempt, reason=reason, finished=stored_count, missing=len(finished) - stored_count)


def spec_of(run: MatchedRun, source: Imported) -> RunSpec:
    """Return the spec that identifies the run by labels, samples, file and, if scored here, ctxbench's version."""
    # This version of ctxbench computes the scores, so another version must be another run.
    code = version("ctxbench") if run.basis.references is not None else ""
    return RunSpec(
        samples=run.basis.name,
        samples_digest=run.basis.digest,
        set_size=len(run.basis.samples),
        strategy=run.strategy,
        strategy_version=f"{source.format} {source.sha256} of {len(run.basis.samples)}",
        generator=run.generator,
        generator_version="",
        coder="",
        sampling=Sampling(),
        n=run.n,
        tokenizer=TOKENIZER,
        code=code,
    )


def new_samples(run: MatchedRun, spec: RunSpec, source: Imported, stored_ids: Collection[str]) -> list[AnsweredSample]:
    """Return the run's samples that have answers but are not stored yet, with each answer as a model's response."""
    samples = {sample.id: sample for sample in run.basis.samples}
    return [
        _sample(
            samples[id_], [_completion(spec, source, samples[id_], idx, answer) for idx, answer in enumerate(answers)]
        )
        for id_, answers in run.answers.items()
        if id_ not in stored_ids
    ]


def _sample(sample: Sample, completions: Sequence[Completion]) -> AnsweredSample:
    return AnsweredSample(
        sample=sample,
        prompt=_PROMPT,
        calls=tuple((FINAL, recorded.answer) for recorded in completions),
        completions=tuple(completions),
        strategy_seconds=0.0,
    )


def _completion(spec: RunSpec, source: Imported, sample: Sample, idx: int, recorded: RecordedAnswer) -> Completion:
    key = sha256(f"imported\0{spec.id}\0{sample.id}\0{idx}")
    answer = ModelAnswer(key, Response(text=recorded.text, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0))
    return Completion(
        answer=answer, text=recorded.text, flags=recorded.flags, verdict=_verdict(source, key, sample.id, recorded)
    )


def _verdict(source: Imported, key: str, sample: str, answer: RecordedAnswer) -> StoredVerdict | None:
    if answer.verdict is None:
        return None
    # The key does not depend on the text, because other harnesses may judge equal texts differently.
    image = f"{SANDBOX} {source.sha256}"
    return _recorded_verdict(key, sample, answer.text, image, str(answer.verdict), answer.reason, flags=answer.reached)


def _recorded_verdict(
    key: str, sample: str, text: str, image: str, verdict: str, reason: str, **facts: Any
) -> StoredVerdict:
    """Return the record of a verdict from elsewhere. Its `key` must differ from the keys of verdicts made here."""
    return StoredVerdict(
        key=key,
        sample_digest=sha256(sample),
        text_digest=sha256(text),
        image=image,
        sandbox=SANDBOX,
        verdict=verdict,
        reason=reason,
        output="",
        seconds=0.0,
        peak_bytes=0,
        **{"tests_run": 0, **facts},
    )


def unscored(sample: AnsweredSample) -> Finished:
    """Return the record of an imported sample without a reference. Its only scores are test verdicts."""
    completions = tuple(
        StoredCompletion(
            generation_id=completion.answer.id,
            status=Status.SCORED if completion.text.strip() else Status.MODEL_FAILED,
            text=completion.text,
            flags=completion.flags if completion.text.strip() else (*completion.flags, EMPTY),
            scores={(PROFILE, PASS): passed(completion.verdict)} if completion.verdict else {},
            verdict=completion.verdict.key if completion.verdict else None,
        )
        for completion in sample.completions
    )
    failed = all(completion.status is Status.MODEL_FAILED for completion in completions)
    calls = tuple((role, answer.id) for role, answer in sample.calls)
    return _recorded_sample(
        sample.sample.id, Status.MODEL_FAILED if failed else Status.SCORED, calls=calls, completions=completions
    )


def _recorded_sample(id_: str, status: Status, **facts: Any) -> Finished:
    """Return the record of a sample whose prompt is unknown; `facts` are fields of `Finished`."""
    return Finished(
        sample_id=id_,
        status=status,
        prompt_digest=_PROMPT.digest,
        prompt=_PROMPT.text,
        blocks=(),
        bits=(),
        **(_UNKNOWN | facts),
    )


def _generation(spec: RunSpec, answer: ModelAnswer) -> StoredGeneration:
    return _recorded_answer(spec, answer.id, answer.response.text, answer.response.finish)


def _recorded_answer(spec: RunSpec, key: str, text: str, finish: str, **usage: Any) -> StoredGeneration:
    """Return the record of an answer to an unknown prompt. Its `key` must differ from the keys of models' answers."""
    return StoredGeneration(
        id=key,
        generator=spec.generator,
        version=f"{SANDBOX} {spec.strategy_version}",
        prompt_digest=_PROMPT.digest,
        prompt=_PROMPT.text,
        sampling="{}",
        idx=0,
        text=text,
        finish=finish,
        **({"tokens_in": 0, "tokens_out": 0, "seconds": 0.0} | usage),
    )


def remarks(run: MatchedRun, source: Imported) -> tuple[str, ...]:
    """Return a run's remarks as sentences: its sample set's, then counts of results and samples that the file lacks."""
    file = PurePath(source.source).name
    answers = [answer for sample_answers in run.answers.values() for answer in sample_answers]
    lacking = sum(NO_RESULT in answer.flags for answer in answers)
    absent = len(run.basis.samples) - len(run.answers)
    sentences = list(run.basis.remarks)
    if lacking:
        sentences.append(f"{file} lacks {lacking} of {len(answers)} results; they count as failed.")
    if absent:
        sentences.append(f"{file} lacks {absent} of {len(run.basis.samples)} samples; they are missing.")
    return tuple(sentences)


def sample_records(
    sample_set: SampleSet, limit: int | None, after: str | None, marks: Sequence[Mark] = ()
) -> tuple[form.SampleRecord, ...]:
    """Return what a package publishes about each sample planned for a run, without the samples' texts."""
    days, day = dates_of(sample_set), None if after is None else date.fromisoformat(after)
    eligible = samples_after(sample_set.samples, day, days)
    return tuple(
        form.SampleRecord(
            **{name: getattr(sample, name) for name in ("id", "benchmark", "repo", "path")},
            language=str(sample.language),
            level=sample.subkind,
            line=sample.cursor.line,
            column=sample.cursor.column,
            day=days[sample.id].isoformat() if sample.id in days else None,
            marks=tuple(mark.mark for mark in marks if mark.sample_id == sample.id),  # type: ignore[misc]
        )
        for sample in planned_samples(eligible, limit)
    )


def samples_of(records: Iterable[form.SampleRecord], kind: Kind) -> tuple[list[Sample], dict[str, date]]:
    """Return the samples in `records`, without texts, and the known dates of their code by sample id."""
    records = list(records)
    samples = [
        Sample(
            **{name: getattr(record, name) for name in ("id", "benchmark", "repo", "path")},
            language=Language(record.language),
            kind=kind,
            subkind=record.level,
            cursor=Cursor(line=record.line, column=record.column),
            prefix="",
        )
        for record in records
    ]
    return samples, {record.id: date.fromisoformat(record.day) for record in records if record.day}


def add_records(
    store: Store, spec: RunSpec, records: Sequence[form.AnsweredRecord], scores: Iterable[form.ScoreRecord]
) -> None:
    """Store samples and answers of a run that was made elsewhere, with their scores and verdicts."""
    lines = {(line.sample, line.completion): line for line in scores}
    judged = {key: _claimed(spec.id, key, line.verdict) for key, line in lines.items() if line.verdict}
    add_samples(
        store,
        spec,
        [_finished(spec, record, lines, judged) for record in records],
        generations=[answer for record in records for answer in _answers(spec, record)],
        verdicts=list(judged.values()),
    )


def _claimed(run: str, key: tuple[str, int], verdict: str) -> StoredVerdict:
    own = f"package\0{run}\0{key}"
    return _recorded_verdict(sha256(own), key[0], own, "package", verdict, "", run=run)


def _key(run: str, sample: str, ordinal: int) -> str:
    return sha256(f"package\0{run}\0{sample}\0{ordinal}")


def _answers(spec: RunSpec, record: form.AnsweredRecord) -> Iterator[StoredGeneration]:
    answers: list[form.CallRecord | form.AnswerRecord] = [*record.calls, *record.completions]
    for ordinal, answer in enumerate(answers):
        usage = {name: getattr(answer, name) for name in ("tokens_in", "tokens_out", "seconds")}
        yield _recorded_answer(spec, _key(spec.id, record.sample, ordinal), answer.written, answer.finish, **usage)


def _finished(
    spec: RunSpec,
    record: form.AnsweredRecord,
    lines: Mapping[tuple[str, int], form.ScoreRecord],
    judged: Mapping[tuple[str, int], StoredVerdict],
) -> Finished:
    def values(idx: int) -> dict[tuple[str, str], float | None]:
        profiles = lines[record.sample, idx].scores if (record.sample, idx) in lines else {}
        return {(profile, metric): value for profile, own in profiles.items() for metric, value in own.items()}

    roles = [call.role for call in record.calls] + [FINAL] * len(record.completions)
    calls = [(role, _key(spec.id, record.sample, ordinal)) for ordinal, role in enumerate(roles)]
    return _recorded_sample(
        record.sample,
        Status(record.status),
        **{name: getattr(record, name) for name in _UNKNOWN},
        calls=tuple(calls),
        completions=tuple(
            StoredCompletion(
                generation_id=calls[len(record.calls) + idx][1],
                status=Status(answer.status),
                text=answer.text,
                flags=(),
                scores=values(idx),
                verdict=judged[record.sample, idx].key if (record.sample, idx) in judged else None,
            )
            for idx, answer in enumerate(record.completions)
        ),
        scores=values(0) if not record.completions else {},
    )

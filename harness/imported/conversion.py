"""Convert matched predictions into the store's records. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version
from pathlib import PurePath

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.files import sha256
from ctxbench.bench.types import Sample
from ctxbench.harness.generators.base import Response, Sampling
from ctxbench.harness.imported.codereval import NO_RESULT
from ctxbench.harness.imported.matching import Matched
from ctxbench.harness.imported.types import RecordedAnswer
from ctxbench.harness.results import Status
from ctxbench.harness.run.batching import Answer as ModelAnswer
from ctxbench.harness.run.sample import FINAL, AnsweredSample, Completion, completion
from ctxbench.harness.run.scoring import EMPTY
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store.verdicts import PASS, PROFILE, passed
from ctxbench.harness.store.write import Finished, Imported, StoredCompletion, StoredGeneration, StoredVerdict
from ctxbench.strategies.api import Prompt

SANDBOX = "imported"
"""Stands for a back end's name: the verdict is the file's, nothing was run here."""
_PROMPT = Prompt(blocks=())
"""The file does not say what prompt the model was shown."""


def spec_of(run: Matched, source: Imported) -> RunSpec:
    """Return the spec that identifies the run: its labels, its samples and the file."""
    # Scores that are computed here are ours: another version of ctxbench makes another run of them.
    code = version("ctxbench") if run.basis.references is not None else ""
    return RunSpec(
        samples=run.basis.name,
        samples_digest=run.basis.digest,
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


def new_samples(run: Matched, spec: RunSpec, source: Imported, stored_ids: Collection[str]) -> list[AnsweredSample]:
    """Return the samples of the file that are not stored yet, as if a model had just made their completions."""
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
    if recorded.behind:
        return completion(sample, answer)
    return Completion(
        answer=answer, text=recorded.text, flags=recorded.flags, verdict=_verdict(source, key, sample.id, recorded)
    )


def _verdict(source: Imported, key: str, sample: str, answer: RecordedAnswer) -> StoredVerdict | None:
    if answer.verdict is None:
        return None
    return StoredVerdict(
        # Not by content: others' harnesses may judge equal texts in different ways.
        key=key,
        sample_digest=sha256(sample),
        text_digest=sha256(answer.text),
        image=f"{SANDBOX} {source.sha256}",
        sandbox=SANDBOX,
        verdict=str(answer.verdict),
        reason=answer.reason,
        tests_run=0,
        output="",
        seconds=0.0,
        peak_bytes=0,
        flags=answer.reached,
    )


def unscored(sample: AnsweredSample) -> Finished:
    """Return the record of a sample whose reference is not known: only its verdicts count."""
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
    return Finished(
        sample_id=sample.sample.id,
        status=Status.MODEL_FAILED if failed else Status.SCORED,
        prompt_digest=sample.prompt.digest,
        prompt=sample.prompt.text,
        context_tokens=0,
        flags=(),
        strategy_seconds=0.0,
        generator_seconds=0.0,
        calls=tuple((role, answer.id) for role, answer in sample.calls),
        blocks=(),
        completions=completions,
        bits=(),
    )


def generation(spec: RunSpec, source: Imported, recorded: Completion) -> StoredGeneration:
    """Return the generation that a completion was taken of, under a key that no model's answer has."""
    return StoredGeneration(
        id=recorded.answer.id,
        generator=spec.generator,
        version=f"{SANDBOX} {source.sha256}",
        prompt_digest=_PROMPT.digest,
        prompt=_PROMPT.text,
        sampling="{}",
        idx=0,
        text=recorded.answer.response.text,
        finish=recorded.answer.response.finish,
        tokens_in=0,
        tokens_out=0,
        seconds=0.0,
    )


def remarks(run: Matched, source: Imported) -> tuple[str, ...]:
    """Return remarks for readers of the run's numbers, a sentence each."""
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

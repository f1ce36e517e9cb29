"""From matched predictions to what is stored of them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version
from pathlib import PurePath

from ctxbench.bench.code_tokens import NAME as TOKENIZER
from ctxbench.bench.files import sha256
from ctxbench.bench.types import Sample
from ctxbench.harness.asking import FINAL, AnsweredSample, Completion, completion
from ctxbench.harness.batcher import Answer as Kept
from ctxbench.harness.generators.base import Response, Sampling
from ctxbench.harness.imported.codereval import NO_RESULT
from ctxbench.harness.imported.matching import Matched
from ctxbench.harness.imported.types import Answer
from ctxbench.harness.results import Status
from ctxbench.harness.runspec import RunSpec
from ctxbench.harness.scoring import EMPTY
from ctxbench.harness.store.counted import PASS, PROFILE
from ctxbench.harness.store.records import Finished, Imported, StoredCompletion, StoredGeneration, StoredVerdict
from ctxbench.harness.store.verdicts import passed
from ctxbench.strategies.api import Prompt

SANDBOX = "imported"
"""Instead of a back end's name: the verdict is the file's, nothing was run here."""
_PROMPT = Prompt(blocks=())
"""What was shown is not in the file."""


def spec_of(run: Matched, source: Imported) -> RunSpec:
    """Return what identifies the run: its labels, its samples and the file."""
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


def made_of(run: Matched, spec: RunSpec, source: Imported, known: Collection[str]) -> list[AnsweredSample]:
    """Return the samples of the file that are not known yet, as if a model had just made their completions."""
    samples = {sample.id: sample for sample in run.basis.samples}
    return [
        _made(samples[id_], [_completion(spec, source, samples[id_], idx, one) for idx, one in enumerate(answers)])
        for id_, answers in run.answers.items()
        if id_ not in known
    ]


def _made(sample: Sample, completions: Sequence[Completion]) -> AnsweredSample:
    return AnsweredSample(
        sample=sample,
        prompt=_PROMPT,
        calls=tuple((FINAL, one.answer) for one in completions),
        completions=tuple(completions),
        strategy_seconds=0.0,
    )


def _completion(spec: RunSpec, source: Imported, sample: Sample, idx: int, one: Answer) -> Completion:
    key = sha256(f"imported\0{spec.id}\0{sample.id}\0{idx}")
    answer = Kept(key, Response(text=one.text, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0))
    if one.behind:
        return completion(sample, answer)
    return Completion(answer=answer, text=one.text, flags=one.flags, verdict=_verdict(source, key, sample.id, one))


def _verdict(source: Imported, key: str, sample: str, one: Answer) -> StoredVerdict | None:
    if one.verdict is None:
        return None
    return StoredVerdict(
        # Not by content: others' harnesses may judge equal texts in different ways.
        key=key,
        sample_digest=sha256(sample),
        text_digest=sha256(one.text),
        image=f"{SANDBOX} {source.sha256}",
        sandbox=SANDBOX,
        verdict=str(one.verdict),
        reason=one.reason,
        tests_run=0,
        output="",
        seconds=0.0,
        peak_bytes=0,
        flags=one.reached,
    )


def unscored(made: AnsweredSample) -> Finished:
    """Return a sample whose answer is not known: nothing but its verdicts counts."""
    completions = tuple(
        StoredCompletion(
            generation_id=one.answer.id,
            status=Status.SCORED if one.text.strip() else Status.MODEL_FAILED,
            text=one.text,
            flags=one.flags if one.text.strip() else (*one.flags, EMPTY),
            scores={(PROFILE, PASS): passed(one.verdict)} if one.verdict else {},
            verdict=one.verdict.key if one.verdict else None,
        )
        for one in made.completions
    )
    failed = all(one.status is Status.MODEL_FAILED for one in completions)
    return Finished(
        sample_id=made.sample.id,
        status=Status.MODEL_FAILED if failed else Status.SCORED,
        prompt_digest=made.prompt.digest,
        prompt=made.prompt.text,
        context_tokens=0,
        flags=(),
        strategy_seconds=0.0,
        generator_seconds=0.0,
        calls=tuple((role, answer.id) for role, answer in made.calls),
        blocks=(),
        completions=completions,
        bits=(),
    )


def generation(spec: RunSpec, source: Imported, one: Completion) -> StoredGeneration:
    """Return the answer that a completion was taken of, under a key that no model's answer has."""
    return StoredGeneration(
        id=one.answer.id,
        generator=spec.generator,
        version=f"{SANDBOX} {source.sha256}",
        prompt_digest=_PROMPT.digest,
        prompt=_PROMPT.text,
        sampling="{}",
        idx=0,
        text=one.answer.response.text,
        finish=one.answer.response.finish,
        tokens_in=0,
        tokens_out=0,
        seconds=0.0,
    )


def remarks(run: Matched, source: Imported) -> tuple[str, ...]:
    """Return what a reader of the run's numbers must know, a sentence each."""
    file = PurePath(source.source).name
    answers = [one for each in run.answers.values() for one in each]
    lacking = sum(NO_RESULT in one.flags for one in answers)
    absent = len(run.basis.samples) - len(run.answers)
    said = list(run.basis.remarks)
    if lacking:
        said.append(f"{file} lacks {lacking} of {len(answers)} results; they count as failed.")
    if absent:
        said.append(f"{file} lacks {absent} of {len(run.basis.samples)} samples; they are missing.")
    return tuple(said)

"""`SampleScorer`: score completed samples with every profile's metrics, context gain and diagnostics.

Beside `harness.controls` this is the only reader of references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ctxbench.bench.code_tokens import count
from ctxbench.bench.types import Kind, Place, Reference, Sample
from ctxbench.harness import extract, metrics
from ctxbench.harness.asking import AnsweredSample, Completion
from ctxbench.harness.bits import Bits, behind_cursor, has_answer
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.results import Status
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.verdicts import PASS, PROFILE, passed
from ctxbench.harness.store.write import Finished, StoredBits, StoredBlock, StoredCompletion
from ctxbench.strategies.api import Prompt

GAIN, BITS = "context_gain", "bits"
EMPTY, LENGTH = "empty", "length"
"""Flags of a completion: nothing but blanks; cut at the token limit."""
Scores = dict[tuple[str, str], float | None]
"""(profile, metric) -> value in the profile's own scale."""


class SampleScorer:
    """Turns answered samples into finished ones."""

    def __init__(
        self, references: Mapping[str, Reference], bits: Bits | None = None, diagnostics: Diagnostics | None = None
    ) -> None:
        """Use the answers of one sample set; without `bits` no context gain is measured."""
        self._references, self._bits, self._diagnostics = references, bits, diagnostics

    def ahead(self, sample: Sample, prompt: Prompt) -> None:
        """Begin to measure what needs no answer of the model; does not wait."""
        if self._bits is not None:
            self._bits.ahead(sample, prompt)

    def finish(self, answered: Sequence[AnsweredSample]) -> list[Finished]:
        """Score some samples; their costs in bits are measured together.

        Raises:
            MachineFault: if the coder was lost.
        """
        bits = self._bits.of(answered) if self._bits is not None else [()] * len(answered)
        return [self._finished(sample, costs) for sample, costs in zip(answered, bits, strict=True)]

    def _finished(self, answered: AnsweredSample, bits: tuple[StoredBits, ...]) -> Finished:
        reference = self._references[answered.sample.id]
        context: Scores = {}
        if bits:
            baseline, final = bits[0], bits[-1]
            context = {(CONTEXT, GAIN): baseline.bits - final.bits, (CONTEXT, BITS): final.bits}
        if has_answer(reference) and self._diagnostics is not None:
            target = behind_cursor(answered.sample, reference)
            context |= _context(self._diagnostics.of_prompt(answered.sample, answered.prompt, target))
        completions = [
            _completion(
                answered.sample, completion, {**context, **self._of_text(answered.sample, reference, completion.text)}
            )
            for completion in answered.completions
        ]
        failed = all(completion.status is Status.MODEL_FAILED for completion in completions)
        blocks = _blocks(answered.prompt)
        return Finished(
            sample_id=answered.sample.id,
            status=Status.MODEL_FAILED if failed else Status.SCORED,
            prompt_digest=answered.prompt.digest,
            prompt=answered.prompt.text,
            context_tokens=sum(block.tokens for block in blocks if block.char_start is not None),
            flags=answered.prompt.flags,
            strategy_seconds=answered.strategy_seconds,
            generator_seconds=sum(answer.response.seconds for _, answer in answered.calls),
            calls=tuple((role, answer.id) for role, answer in answered.calls),
            blocks=blocks,
            completions=tuple(completions),
            bits=bits,
        )

    def _of_text(self, sample: Sample, reference: Reference, text: str) -> Scores:
        """Return the metrics and diagnostics of a text against the answer."""
        if not has_answer(reference):
            return {}
        scores = text_scores(sample, reference, text, metrics.PROFILES)
        if self._diagnostics is None:
            return scores
        target = behind_cursor(sample, reference)
        return scores | _context(self._diagnostics.of_completion(sample, text, target))


def _context(values: Mapping[str, float | None]) -> Scores:
    return {(CONTEXT, metric): value for metric, value in values.items()}


def _completion(
    sample: Sample, completion: Completion, text_scores: Mapping[tuple[str, str], float | None]
) -> StoredCompletion:
    empty = not completion.text.strip()
    scores = dict(text_scores)
    if sample.tested and (empty or completion.verdict):
        scores[PROFILE, PASS] = passed(completion.verdict) if completion.verdict else 0.0
    cut = completion.answer.response.finish == LENGTH
    flags = [*completion.flags, *(flag for flag, holds in ((EMPTY, empty), (LENGTH, cut)) if holds)]
    return StoredCompletion(
        generation_id=completion.answer.id,
        status=Status.MODEL_FAILED if empty else Status.SCORED,
        text=completion.text,
        flags=tuple(flags),
        scores=scores,
        verdict=completion.verdict.key if completion.verdict else None,
    )


def profiles_of(sample: Sample, profiles: Sequence[str]) -> tuple[str, ...]:
    """Return which of some profiles are defined for a sample: all for lines, one for functions."""
    return tuple(name for name in profiles if sample.kind is Kind.LINE or name == metrics.FUNCTIONS)


def text_scores(sample: Sample, reference: Reference, text: str, profiles: Sequence[str]) -> Scores:
    """Return the scores of a text under those of some profiles that are defined for its sample."""
    scores: Scores = {}
    for profile in profiles_of(sample, profiles):
        if sample.kind is Kind.LINE:
            values = metrics.score(
                profile, sample.language, prompt=sample.prefix, prediction=text, ground_truth=reference.target
            )
        else:
            body, reference_body = extract.body(sample, text), extract.body(sample, reference.target)
            values = metrics.score_body(sample.language, prediction=body, ground_truth=reference_body)
        for metric, value in values.items():
            # An empty answer gets the metric's worst value, even where the metric is undefined or would call it right:
            # the answer `1)` has no identifiers either.
            worst = metrics.info(profile, metric).worst
            scores[profile, metric] = value if text.strip() or worst is None else worst
    return scores


def _blocks(prompt: Prompt) -> tuple[StoredBlock, ...]:
    """Return the blocks of a prompt with their places in it, then those left out."""
    rows, at = [], 0
    for block in prompt.blocks:
        rows.append(
            StoredBlock(
                kind=block.kind,
                places=_places(block.places),
                score=block.score,
                tokens=count(block.text),
                state="cut" if block.cut else "kept",
                reason="",
                char_start=at,
                char_end=at + len(block.text),
            )
        )
        at += len(block.text)
    rows += [
        StoredBlock(
            kind=block.kind,
            places=_places(block.places),
            score=block.score,
            tokens=0,
            state="dropped",
            reason=block.reason,
            char_start=None,
            char_end=None,
        )
        for block in prompt.dropped
    ]
    return tuple(rows)


def _places(places: Sequence[Place]) -> str:
    return json.dumps([[place.path, place.start, place.end] for place in places])

"""From completions to what is stored: every profile's metrics, context gain and diagnostics.

Beside `harness.controls` the only reader of references.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ctxbench.bench.code_tokens import count
from ctxbench.bench.types import Kind, Place, Reference, Sample
from ctxbench.harness import extract, metrics
from ctxbench.harness.asking import Completion, Made
from ctxbench.harness.bits import Bits, behind_cursor, has_answer
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.results import Status
from ctxbench.harness.store.counted import PASS, PROFILE
from ctxbench.harness.store.queries import CONTEXT
from ctxbench.harness.store.records import Finished, StoredBits, StoredBlock, StoredCompletion
from ctxbench.harness.store.verdicts import passed
from ctxbench.strategies.api import Prompt

GAIN, BITS = "context_gain", "bits"
EMPTY, LENGTH = "empty", "length"
"""Flags of a completion: nothing but blanks; cut at the token limit."""
Scores = dict[tuple[str, str], float | None]
"""(profile, metric) -> value in the profile's own scale."""


class Scorer:
    """Turns what the model made into finished samples."""

    def __init__(
        self, references: Mapping[str, Reference], bits: Bits | None = None, diagnostics: Diagnostics | None = None
    ) -> None:
        """Use the answers of one sample set; without `bits` no context gain is measured."""
        self._references, self._bits, self._diagnostics = references, bits, diagnostics

    def ahead(self, sample: Sample, prompt: Prompt) -> None:
        """Begin with what needs no answer of the model; does not wait."""
        if self._bits is not None:
            self._bits.ahead(sample, prompt)

    def finish(self, made: Sequence[Made]) -> list[Finished]:
        """Score some samples, what they cost in bits measured together.

        Raises:
            MachineFault: if the coder was lost.
        """
        bits = self._bits.of(made) if self._bits is not None else [()] * len(made)
        return [self._finished(one, costs) for one, costs in zip(made, bits, strict=True)]

    def _finished(self, made: Made, bits: tuple[StoredBits, ...]) -> Finished:
        reference = self._references[made.sample.id]
        context: Scores = {}
        if bits:
            baseline, final = bits[0], bits[-1]
            context = {(CONTEXT, GAIN): baseline.bits - final.bits, (CONTEXT, BITS): final.bits}
        if has_answer(reference) and self._diagnostics is not None:
            target = behind_cursor(made.sample, reference)
            context |= _context(self._diagnostics.of_prompt(made.sample, made.prompt, target))
        completions = [
            _completion(made.sample, one, {**context, **self._of_text(made.sample, reference, one.text)})
            for one in made.completions
        ]
        failed = all(one.status is Status.MODEL_FAILED for one in completions)
        blocks = _blocks(made.prompt)
        return Finished(
            sample_id=made.sample.id,
            status=Status.MODEL_FAILED if failed else Status.SCORED,
            prompt_digest=made.prompt.digest,
            prompt=made.prompt.text,
            context_tokens=sum(block.tokens for block in blocks if block.char_start is not None),
            flags=made.prompt.flags,
            strategy_seconds=made.strategy_seconds,
            generator_seconds=sum(answer.response.seconds for _, answer in made.calls),
            calls=tuple((role, answer.id) for role, answer in made.calls),
            blocks=blocks,
            completions=tuple(completions),
            bits=bits,
        )

    def _of_text(self, sample: Sample, reference: Reference, text: str) -> Scores:
        """Return what is said of a text against the answer: metrics, and what it made up."""
        if not has_answer(reference):
            return {}
        scores = text_scores(sample, reference, text, metrics.PROFILES)
        if self._diagnostics is None:
            return scores
        target = behind_cursor(sample, reference)
        return scores | _context(self._diagnostics.of_completion(sample, text, target))


def _context(values: Mapping[str, float | None]) -> Scores:
    return {(CONTEXT, metric): value for metric, value in values.items()}


def _completion(sample: Sample, made: Completion, said: Mapping[tuple[str, str], float | None]) -> StoredCompletion:
    empty = not made.text.strip()
    scores = dict(said)
    if sample.tested and (empty or made.verdict):
        scores[PROFILE, PASS] = passed(made.verdict) if made.verdict else 0.0
    cut = made.answer.response.finish == LENGTH
    flags = [*made.flags, *(flag for flag, holds in ((EMPTY, empty), (LENGTH, cut)) if holds)]
    return StoredCompletion(
        generation_id=made.answer.id,
        status=Status.MODEL_FAILED if empty else Status.SCORED,
        text=made.text,
        flags=tuple(flags),
        scores=scores,
        verdict=made.verdict.key if made.verdict else None,
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
            one, other = extract.body(sample, text), extract.body(sample, reference.target)
            values = metrics.score_body(sample.language, prediction=one, ground_truth=other)
        for metric, value in values.items():
            # A model that gave nothing gets the worst there is, also where the metric is undefined, or would call
            # it right: as many identifiers as the answer `1)` has.
            worst = metrics.info(profile, metric).worst
            scores[profile, metric] = value if text.strip() or worst is None else worst
    return scores


def _blocks(prompt: Prompt) -> tuple[StoredBlock, ...]:
    """Return the blocks of a prompt with where they stand in it, then those left out."""
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

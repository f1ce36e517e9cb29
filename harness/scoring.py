"""From completions to what is stored: every profile's metrics, context gain and diagnostics.

Beside `harness.controls` the only reader of references.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.code_tokens import count
from bench.errors import MachineFault
from bench.files import sha256
from bench.types import Kind, Language, Place, Reference, Sample
from harness import extract, metrics
from harness.asking import Completion, Made
from harness.diagnostics import Diagnostics
from harness.generators import fim
from harness.generators.base import Coder, Waking
from harness.results import Status
from harness.store.queries import CONTEXT
from harness.store.records import Finished, StoredBits, StoredBlock, StoredCompletion
from harness.store.store import Store
from harness.store.verdicts import PASS, PROFILE, passed
from strategies.api import Prompt
from strategies.infile_text import WHOLE, infile_prompt

GAIN, BITS = "context_gain", "bits"
EMPTY, LENGTH = "empty", "length"
"""Flags of a completion: nothing but blanks; cut at the token limit."""
_SEEN = 40
"""Characters before the cursor that tell whether a prompt ends there."""


Scores = dict[tuple[str, str], float | None]
"""(profile, metric) -> value in the profile's own scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricer:
    """Who measures what a reference costs after a prompt."""

    name: str
    """Its spec and version, the key of what it measured."""
    coder: Coder

    def wake(self, language: Language) -> None:
        """Let a coder that starts slowly do so now; what fails here fails again when it is asked."""
        if isinstance(self.coder, Waking):
            with contextlib.suppress(MachineFault):
                self.coder.wake(language)


class Scorer:
    """Turns what the model made into finished samples."""

    def __init__(
        self,
        store: Store,
        references: Mapping[str, Reference],
        pricer: Pricer | None,
        diagnostics: Diagnostics | None = None,
    ) -> None:
        """Use the answers of one sample set; without a pricer no context gain is measured."""
        self._store, self._references, self._pricer = store, references, pricer
        self._diagnostics = diagnostics

    def finish(self, made: Sequence[Made]) -> list[Finished]:
        """Score some samples, priced together.

        Raises:
            MachineFault: if the coder was lost.
        """
        prices = self._prices(made)
        return [self._finished(one, price) for one, price in zip(made, prices, strict=True)]

    def _prices(self, made: Sequence[Made]) -> list[tuple[StoredBits, ...]]:
        """Return, for each sample, the costs of its reference after the in-file and the final prompt.

        Of a function it is the body that is priced; none is where the prompt does not end at the cursor.
        """
        if self._pricer is None:
            return [() for _ in made]
        pairs: dict[tuple[str, str, str], tuple[Prompt, str]] = {}
        keys: list[list[tuple[str, str, str]]] = []
        for one in made:
            reference = self._references[one.sample.id]
            target = behind_cursor(one.sample, reference)
            priced = has_answer(reference) and goes_on(one.sample, one.prompt)
            # What follows the cursor is no part of the gain: that is what the retrieved context is worth.
            prompts = (infile_prompt(one.sample.query(), WHOLE), fim.left(one.prompt)) if priced else ()
            keys.append([(str(one.sample.language), prompt.digest, sha256(target)) for prompt in prompts])
            pairs.update(zip(keys[-1], ((prompt, target) for prompt in prompts), strict=True))
        known = self._store.bits(self._pricer.name, pairs)
        for language in sorted({key[0] for key in pairs.keys() - known.keys()}):
            wanted = sorted(key for key in pairs.keys() - known.keys() if key[0] == language)
            prompts, texts = zip(*(pairs[key] for key in wanted), strict=True)
            costs = self._pricer.coder.bits(prompts, texts, Language(language))
            known |= dict(zip(wanted, costs, strict=True))
        return [tuple(_stored(key, pairs[key][0], known[key]) for key in of_one) for of_one in keys]

    def _finished(self, made: Made, bits: tuple[StoredBits, ...]) -> Finished:
        reference = self._references[made.sample.id]
        context: Scores = {}
        if bits:
            baseline, final = bits
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
            bits=tuple({one.prompt_digest: one for one in bits}.values()),
        )

    def _of_text(self, sample: Sample, reference: Reference, text: str) -> Scores:
        """Return what is said of a text against the answer: metrics, and what it made up."""
        if not has_answer(reference):
            return {}
        scores = _text_scores(sample, reference, text)
        if self._diagnostics is None:
            return scores
        target = behind_cursor(sample, reference)
        return scores | _context(self._diagnostics.of_completion(sample, text, target))


def _context(values: Mapping[str, float | None]) -> Scores:
    return {(CONTEXT, metric): value for metric, value in values.items()}


def has_answer(reference: Reference) -> bool:
    """Return whether the answer is known; of tasks that came without their files nothing but tests can judge."""
    return not reference.fields.get("no_reference")


def goes_on(sample: Sample, prompt: Prompt) -> bool:
    """Return whether the prompt ends where the reference begins: that of a line always does."""
    return sample.kind is Kind.LINE or prompt.text.endswith(sample.prefix[-_SEEN:])


def behind_cursor(sample: Sample, reference: Reference) -> str:
    """Return the answer from the cursor on: of a function its body."""
    return reference.target if sample.kind is Kind.LINE else extract.rest(sample, reference.target)


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


def _text_scores(sample: Sample, reference: Reference, text: str) -> Scores:
    """Return the scores of a text: of lines under every profile, of functions where it is defined."""
    scores: Scores = {}
    for profile in metrics.PROFILES if sample.kind is Kind.LINE else (metrics.FUNCTIONS,):
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
            scores[profile, metric] = value if text.strip() else metrics.info(profile, metric).worst
    return scores


def _stored(key: tuple[str, str, str], prompt: Prompt, bits: float) -> StoredBits:
    language, digest, target = key
    return StoredBits(language=language, prompt_digest=digest, prompt=prompt.text, target_digest=target, bits=bits)


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

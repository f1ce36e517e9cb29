"""`SampleScorer`: scores completed samples with metrics, context gain and diagnostics.

Context gain is the cost of the reference in bits without the context, minus its cost with the context. A model, the
coder, measures both costs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.code_tokens import count
from ctxbench.bench.elementary import running_sum
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Kind, Reference, Sample
from ctxbench.harness import metrics
from ctxbench.harness.diagnostics import Diagnostics
from ctxbench.harness.generators import answers, fim
from ctxbench.harness.generators.base import Generator, TooLong
from ctxbench.harness.results import BITS, Status
from ctxbench.harness.run.sample import AnsweredSample, Completion
from ctxbench.harness.run.scheduling import WorkPace
from ctxbench.harness.store.runs import CONTEXT
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE, passed
from ctxbench.harness.store.write import Finished, StoredAccess, StoredBits, StoredBlock, StoredCompletion
from ctxbench.strategies.api import Block, BlockKind, Dropped, Prompt
from ctxbench.strategies.layout import WHOLE, infile_prompt

EMPTY, LENGTH = "empty", "length"
"""Flags of a completion: it is blank, or it was truncated at the token limit."""
Scores = dict[tuple[str, str], float | None]
"""(profile, metric) -> value on the profile's scale."""
_CURSOR_CHARACTERS = 40
"""A prompt ends at the cursor if its end equals this number of characters before the cursor."""
_FIRST = 16
_Key = tuple[str, str, str]
_Pairs = dict[_Key, tuple[Prompt, str]]
_SMALL = Prompt(blocks=(Block(kind=BlockKind.INFILE, text="total = "),)), "1"
"""A prompt and a text so small that any working coder can measure them."""
_MOST_NAMED = 5


def unmeasured_fault(faults: Mapping[str, MachineFault]) -> MachineFault:
    """Return a one-line fault about the samples whose bits could not be measured, while those of others could."""
    names = [*list(faults)[:_MOST_NAMED], *([f"{len(faults) - _MOST_NAMED} more"] if len(faults) > _MOST_NAMED else [])]
    first = next(iter(faults.values()))
    what = f"the bits of {', '.join(names)} could not be measured; the first fault: {first.what}"
    return MachineFault(what, where=first.where, cure=first.cure)


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelihoodModel:
    """A coder that measures how many bits a reference costs after a prompt."""

    name: str
    """Spec and version of the coder, which are part of the key of its measurements."""
    coder: Generator
    aside: Executor | None = None
    """Thread pool that runs the coder while the model writes; None if the model is the coder, or for stored runs."""

    def wake(self, language: Language) -> None:
        """Start the coder for a language in advance, if it starts slowly. The first request raises any failure."""
        if self.aside is not None and self.coder.knows(language):
            self.aside.submit(self.coder.wake, language)

    def can_measure(self, languages: Iterable[Language], after: MachineFault) -> bool:
        """Return whether the coder still works after a fault: after `TooLong`, or if it can measure a small text."""
        return isinstance(after, TooLong) or any(map(self._measures_small, languages))

    def _measures_small(self, language: Language) -> bool:
        prompt, text = _SMALL
        with contextlib.suppress(MachineFault):
            return self.coder.knows(language) and len(self.coder.bits([prompt], [text], language)) == 1
        return False


class SampleScorer:
    """A scorer of answered samples, by metrics, context gain and diagnostics."""

    def __init__(
        self,
        references: Mapping[str, Reference],
        bits: Bits | None = None,
        diagnostics: Diagnostics | None = None,
        *,
        profiles: Sequence[str] | None = None,
    ) -> None:
        self._references, self._bits, self._diagnostics = references, bits, diagnostics
        self._profiles = metrics.PROFILES if profiles is None else profiles

    def wake(self, language: Language) -> None:
        """Start the coder for a language in advance, if it starts slowly."""
        if self._bits is not None:
            self._bits.wake(language)

    def ahead(self, sample: Sample, prompt: Prompt) -> str | None:
        """Return the result of `Bits.ahead`; None if the scorer does not measure bits."""
        return self._bits.ahead(sample, prompt) if self._bits is not None else None

    def finish(self, answered: Sequence[AnsweredSample]) -> list[Finished]:
        """Score samples. The costs in bits of all samples are measured together.

        Raises:
            MachineFault: if the coder was lost.
        """
        bits = self._bits.of(answered) if self._bits is not None else [()] * len(answered)
        return [self._finished(sample, costs) for sample, costs in zip(answered, bits, strict=True)]

    def can_measure(self, answered: Sequence[AnsweredSample], after: MachineFault) -> bool:
        """Return whether further samples can be scored after a fault, in at least one language of `answered`."""
        return self._bits is None or self._bits.can_measure({sample.sample.language for sample in answered}, after)

    def _finished(self, answered: AnsweredSample, bits: tuple[StoredBits, ...]) -> Finished:
        reference = self._references[answered.sample.id]
        context: Scores = {}
        if bits and self._bits is not None:
            context = gain(bits, self._bits.coder)
        context |= self._of_prompt(answered.sample, reference, answered.prompt)
        completions = [
            _completion(
                answered.sample, completion, {**context, **self._of_text(answered.sample, reference, completion.text)}
            )
            for completion in answered.completions
        ]
        failed = {completion.status for completion in completions} == {Status.MODEL_FAILED}
        blocks = _blocks(answered.prompt)
        return Finished(
            sample_id=answered.sample.id,
            status=Status.MODEL_FAILED if failed else Status.SCORED,
            prompt_digest=answered.prompt.digest,
            prompt=answered.prompt.text,
            context_tokens=sum(block.tokens for block in blocks if block.char_start is not None),
            flags=answered.prompt.flags,
            strategy_seconds=answered.strategy_seconds,
            generator_seconds=running_sum(answer.response.seconds for _, answer in answered.calls),
            calls=tuple((role, answer.id) for role, answer in answered.calls),
            blocks=blocks,
            completions=tuple(completions),
            scores={} if completions else context,
            bits=bits,
            engines=answered.engines,
            access=self._access(answered),
        )

    def _access(self, answered: AnsweredSample) -> StoredAccess | None:
        access = answered.access
        if access is None:
            return None
        definitions = self._diagnostics.definitions(answered.sample) if self._diagnostics is not None else ()
        within = sum(definition.is_within(access.places) for definition in definitions)
        return StoredAccess(
            opened=access.opened,
            searches=access.searches,
            characters=access.characters,
            explored_files=len({place.path for place in access.places}),
            explored_recall=within / len(definitions) if definitions else None,
        )

    def checks(self, sample: Sample, prompt: Prompt, text: str) -> Scores:
        """Return the diagnostics of a prompt and of its completion."""
        reference = self._references[sample.id]
        return self._of_prompt(sample, reference, prompt) | self._diagnosed(sample, reference, text)

    def _of_prompt(self, sample: Sample, reference: Reference, prompt: Prompt) -> Scores:
        if not has_answer(reference) or self._diagnostics is None:
            return {}
        return _context(self._diagnostics.of_prompt(sample, prompt, target_after_cursor(sample, reference)))

    def _diagnosed(self, sample: Sample, reference: Reference, text: str) -> Scores:
        if self._diagnostics is None:
            return {}
        return _context(self._diagnostics.of_completion(sample, text, target_after_cursor(sample, reference)))

    def _of_text(self, sample: Sample, reference: Reference, text: str) -> Scores:
        if not has_answer(reference):
            return {}
        scores = text_scores(sample, reference, text, self._profiles)
        return scores | self._diagnosed(sample, reference, text)


def gain(bits: Sequence[StoredBits], coder: str) -> Scores:
    """Return one sample's context gain and its bits after the final prompt, from its nonempty result of `Bits.of`."""
    return {(CONTEXT, metrics.gain_of(coder)): bits[0].bits - bits[-1].bits, (CONTEXT, BITS): bits[-1].bits}


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
    """Return those of `profiles` defined for a sample: all for a line, only `metrics.FUNCTIONS` for a function."""
    return tuple(name for name in profiles if sample.kind is Kind.LINE or name == metrics.FUNCTIONS)


def text_scores(sample: Sample, reference: Reference, text: str, profiles: Sequence[str]) -> Scores:
    """Return the scores of a text under each of the profiles that is defined for its sample."""
    scores: Scores = {}
    for profile in profiles_of(sample, profiles):
        if sample.kind is Kind.LINE:
            values = metrics.score(
                profile, sample.language, prompt=sample.prefix, prediction=text, ground_truth=reference.target
            )
        else:
            body, reference_body = answers.body(sample, text), answers.body(sample, reference.target)
            values = metrics.score_body(sample.language, prediction=body, ground_truth=reference_body)
        for metric, value in values.items():
            # An empty answer gets the worst value, even where the metric is undefined or would accept the answer: the
            # reference `1)` has no identifiers either.
            worst = metrics.info(profile, metric).worst
            scores[profile, metric] = value if text.strip() or worst is None else worst
    return scores


def _blocks(prompt: Prompt) -> tuple[StoredBlock, ...]:
    rows, at = [], 0
    for block in prompt.blocks:
        end = at + len(block.text)
        state = "cut" if block.cut else "kept"
        rows.append(_block(block, tokens=count(block.text), state=state, reason="", char_start=at, char_end=end))
        at = end
    rows += [
        _block(block, tokens=block.tokens, state="dropped", reason=block.reason, char_start=None, char_end=None)
        for block in prompt.dropped
    ]
    return tuple(rows)


def _block(block: Block | Dropped, **fields: Any) -> StoredBlock:
    places = json.dumps([[place.path, place.start, place.end] for place in block.places])
    return StoredBlock(kind=block.kind, places=places, score=block.score, **fields)


class Bits:
    """The costs in bits of references after prompts, looked up or measured, for one sample set; thread-safe."""

    def __init__(self, store: Store, references: Mapping[str, Reference], likelihood: LikelihoodModel) -> None:
        self._store, self._references, self._likelihood, self.coder = store, references, likelihood, likelihood.name
        self._lock, self._measuring = threading.Lock(), threading.Lock()
        self._free = threading.Condition(self._lock)
        self._askers = 0  # number of calls of `of`, which have priority over measuring ahead
        self._pace = WorkPace(_FIRST)
        self._begun: dict[str, tuple[Prompt, _Pairs]] = {}
        self._wanted: _Pairs = {}
        self._known: dict[_Key, float] = {}

    def wake(self, language: Language) -> None:
        """Start the coder for a language in advance, if it starts slowly."""
        self._likelihood.wake(language)

    def ahead(self, sample: Sample, prompt: Prompt) -> str | None:
        """Prepare to measure the bits after a prompt before `of` needs them. A separate coder starts in the background.

        Returns:
            The text that the model should measure while reading the prompt. None if its cost is known or cannot be
            measured, or a separate coder measures it.
        """
        pairs = self._pairs(sample, prompt)
        if self._likelihood.aside is None:
            # The last pair belongs to the final prompt.
            for key, (_, target) in list(pairs.items())[-1:]:
                return None if self._store.bits(self._likelihood.name, [key]) else target
            return None
        with self._lock:
            begun = bool(self._wanted)
            self._wanted.update(pairs)
            self._begun[sample.id] = prompt, pairs
        if pairs and not begun:
            self._go_on(self._likelihood.aside)
        return None

    def _go_on(self, aside: Executor) -> None:
        # At the end of an interrupted run, the executor refuses work.
        with contextlib.suppress(RuntimeError):
            aside.submit(self._measure_wanted, aside)

    def of(self, answered: Sequence[AnsweredSample]) -> list[tuple[StoredBits, ...]]:
        """Return, for each sample, the bits of its reference after the in-file prompt and after the final prompt.

        For a function, the body is measured. If both prompts are equal, there is one result. There is none if the
        reference is unknown, the prompt does not end at the cursor, or the coder does not support the language.

        Raises:
            MachineFault: if the coder was lost.
        """
        return self._costs([self._pairs_of(sample) for sample in answered])

    def of_prompts(self, prompts: Sequence[tuple[Sample, Prompt]]) -> list[tuple[StoredBits, ...]]:
        """Return the bits that `of` returns, for stored samples with their prompts.

        Raises:
            MachineFault: if the coder was lost.
        """
        return self._costs([self._pairs(sample, prompt) for sample, prompt in prompts])

    def can_measure(self, languages: Iterable[Language], after: MachineFault) -> bool:
        """Return whether the model that measures bits still works after a fault, for at least one of the languages."""
        with self._asker(), self._measuring:
            return self._likelihood.can_measure(languages, after)

    def _costs(self, pairs_by_sample: Sequence[_Pairs]) -> list[tuple[StoredBits, ...]]:
        with self._asker(), self._measuring:
            costs = self._measured({key: pair for pairs in pairs_by_sample for key, pair in pairs.items()})
        return [tuple(_stored(key, pair[0], costs[key]) for key, pair in pairs.items()) for pairs in pairs_by_sample]

    def _pairs_of(self, answered: AnsweredSample) -> _Pairs:
        prompt, pairs = self._begun.pop(answered.sample.id, (None, {}))
        pairs = pairs if prompt is answered.prompt else self._pairs(answered.sample, answered.prompt)
        for bits in [answer.response.bits for _, answer in answered.calls if answer.response.bits is not None]:
            with self._lock:
                self._known[list(pairs)[-1]] = bits
        return pairs

    def _pairs(self, sample: Sample, prompt: Prompt) -> _Pairs:
        """Return what to measure for a sample, the in-file prompt first; one pair if both prompts are equal."""
        reference = self._references[sample.id]
        if not (has_answer(reference) and goes_on(sample, prompt) and self._likelihood.coder.knows(sample.language)):
            return {}
        target = target_after_cursor(sample, reference)
        # The gain measures only the retrieved context, so the text after the cursor is left out.
        prompts = infile_prompt(sample.query(), WHOLE), fim.strategy_prompt(prompt)
        return {
            (str(sample.language), shown_prompt.digest, sha256(target)): (shown_prompt, target)
            for shown_prompt in prompts
        }

    @contextlib.contextmanager
    def _asker(self) -> Iterator[None]:
        with self._lock:
            self._askers += 1
        try:
            yield
        finally:
            with self._lock:
                self._askers -= 1
                self._free.notify_all()

    def _measure_wanted(self, aside: Executor) -> None:
        with self._lock:
            self._free.wait_for(lambda: not self._askers)
        with self._measuring:
            with self._lock:
                part = dict(itertools.islice(self._wanted.items(), self._pace.size))
            began = time.monotonic()
            # Ignore the fault here: `of` repeats the measurement and raises it.
            with contextlib.suppress(MachineFault):
                costs = self._measured(part)
                with self._lock:
                    self._known |= costs
            self._pace.took(len(part), time.monotonic() - began)
        if self._wanted:
            self._go_on(aside)

    def _measured(self, pairs: _Pairs) -> dict[_Key, float]:
        """Return the costs of pairs in bits. Call from one thread at a time."""
        with self._lock:
            # Each cost is needed at most once more, because then it is in the store.
            cost_by_key = {key: self._known.pop(key) for key in pairs.keys() & self._known.keys()}
            for key in pairs:
                self._wanted.pop(key, None)
        if unmeasured := pairs.keys() - cost_by_key.keys():
            cost_by_key |= self._store.bits(self._likelihood.name, unmeasured)
        for language in sorted({key[0] for key in pairs.keys() - cost_by_key.keys()}):
            keys = sorted(key for key in pairs.keys() - cost_by_key.keys() if key[0] == language)
            prompts, texts = zip(*(pairs[key] for key in keys), strict=True)
            try:
                costs = self._likelihood.coder.bits(prompts, texts, Language(language))
            except MachineFault:
                # Keep the costs measured so far for the next call.
                with self._lock:
                    self._known |= cost_by_key
                raise
            cost_by_key |= dict(zip(keys, costs, strict=True))
        return cost_by_key


def has_answer(reference: Reference) -> bool:
    """Return whether the reference is known. Without it, as in tasks imported without files, only tests can judge."""
    return not reference.fields.get("no_reference")


def goes_on(sample: Sample, prompt: Prompt) -> bool:
    """Return whether the prompt ends where the reference begins; always True for a line."""
    return sample.kind is Kind.LINE or prompt.text.endswith(sample.prefix[-_CURSOR_CHARACTERS:])


def target_after_cursor(sample: Sample, reference: Reference) -> str:
    """Return the part of the reference after the cursor: for a function, the body."""
    return reference.target if sample.kind is Kind.LINE else answers.after_cursor(sample, reference.target)


def _stored(key: _Key, prompt: Prompt, bits: float) -> StoredBits:
    language, digest, target = key
    return StoredBits(language=language, prompt_digest=digest, prompt=prompt.text, target_digest=target, bits=bits)

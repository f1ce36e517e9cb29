"""Costs of references after prompts, in bits; context gain is the difference between two prompts.

A coder that is not the writing model measures a prompt as soon as it is known, while the other model writes.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from ctxbench.bench import languages
from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Kind, Reference, Sample
from ctxbench.harness import extract
from ctxbench.harness.asking import AnsweredSample
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Coder, Waking
from ctxbench.harness.pace import WorkPace
from ctxbench.harness.store.records import StoredBits
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.infile_text import WHOLE, infile_prompt

_CURSOR_CHARACTERS = 40
"""Characters before the cursor that tell whether a prompt ends there."""
_FIRST = 16
"""Size of the first part of prompts that are measured ahead."""
_Key = tuple[str, str, str]
"""Language, prompt's digest, target's digest."""
_Pairs = dict[_Key, tuple[Prompt, str]]
"""Texts to measure, each after its prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricer:
    """A coder that measures the cost of a reference after a prompt."""

    name: str
    """Its spec and version, the key of its measurements."""
    coder: Coder
    aside: Executor | None = None
    """Where it works while the model writes; None if it is the model."""

    def wake(self, language: Language) -> None:
        """Start a coder that starts slowly; a fault shows when it is asked."""
        if self.aside is not None and isinstance(self.coder, Waking):
            self.aside.submit(self.coder.wake, language)


class Bits:
    """Measures prompts of one sample set; safe to use from many threads."""

    def __init__(self, store: Store, references: Mapping[str, Reference], pricer: Pricer) -> None:
        """Use the answers of the set and the measurements in the store."""
        self._store, self._references, self._pricer = store, references, pricer
        self._lock, self._measuring = threading.Lock(), threading.Lock()
        self._free = threading.Condition(self._lock)
        self._askers = 0  # calls of `of`, which go before measuring ahead
        self._pace = WorkPace(_FIRST)
        self._begun: dict[str, tuple[Prompt, _Pairs]] = {}
        self._wanted: _Pairs = {}
        self._known: dict[_Key, float] = {}

    def ahead(self, sample: Sample, prompt: Prompt) -> None:
        """Begin to measure a prompt that will be asked for; does not wait."""
        if self._pricer.aside is None:
            return
        pairs = self._pairs(sample, prompt)
        with self._lock:
            begun = bool(self._wanted)
            self._wanted.update(pairs)
            self._begun[sample.id] = prompt, pairs
        if pairs and not begun:
            self._go_on(self._pricer.aside)

    def _go_on(self, aside: Executor) -> None:
        # The executor refuses work at the end of an interrupted run.
        with contextlib.suppress(RuntimeError):
            aside.submit(self._measure_wanted, aside)

    def of(self, answered: Sequence[AnsweredSample]) -> list[tuple[StoredBits, ...]]:
        """Return, for each sample, the costs of its reference after the in-file and the final prompt.

        For a function the body is measured; a prompt that does not end at the cursor has no costs.

        Raises:
            MachineFault: if the coder was lost.
        """
        pairs_by_sample = [self._pairs_of(sample) for sample in answered]
        with self._asker(), self._measuring:
            costs = self._measured({key: pair for pairs in pairs_by_sample for key, pair in pairs.items()})
        return [tuple(_stored(key, pair[0], costs[key]) for key, pair in pairs.items()) for pairs in pairs_by_sample]

    def _pairs_of(self, answered: AnsweredSample) -> _Pairs:
        prompt, pairs = self._begun.pop(answered.sample.id, (None, {}))
        return pairs if prompt is answered.prompt else self._pairs(answered.sample, answered.prompt)

    def _pairs(self, sample: Sample, prompt: Prompt) -> _Pairs:
        """Return the pairs to measure for a sample, the in-file prompt first; one pair if the prompts are equal."""
        reference = self._references[sample.id]
        if not (has_answer(reference) and goes_on(sample, prompt)):
            return {}
        target = behind_cursor(sample, reference)
        # The gain is the worth of the retrieved context alone, so the text after the cursor is left out.
        prompts = infile_prompt(sample.query(), WHOLE), fim.unmarked(prompt)
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
        """Measure the next part of the pairs that wait, then go on with the rest."""
        with self._lock:
            self._free.wait_for(lambda: not self._askers)
        with self._measuring:
            with self._lock:
                part = dict(itertools.islice(self._wanted.items(), self._pace.size))
            began = time.monotonic()
            # `of` measures them again and raises the fault.
            with contextlib.suppress(MachineFault):
                costs = self._measured(part)
                with self._lock:
                    self._known |= costs
            self._pace.took(len(part), time.monotonic() - began)
        if self._wanted:
            self._go_on(aside)

    def _measured(self, pairs: _Pairs) -> dict[_Key, float]:
        """Return the costs of pairs. Called by one thread at a time."""
        with self._lock:
            # Each is needed once more at most: from then on the store keeps it.
            cost_by_key = {key: self._known.pop(key) for key in pairs.keys() & self._known.keys()}
            for key in pairs:
                self._wanted.pop(key, None)
        if unmeasured := pairs.keys() - cost_by_key.keys():
            cost_by_key |= self._store.bits(self._pricer.name, unmeasured)
        for language in sorted({key[0] for key in pairs.keys() - cost_by_key.keys()}):
            keys = sorted(key for key in pairs.keys() - cost_by_key.keys() if key[0] == language)
            prompts, texts = zip(*(pairs[key] for key in keys), strict=True)
            costs = self._pricer.coder.bits(prompts, texts, languages.get(language))
            cost_by_key |= dict(zip(keys, costs, strict=True))
        return cost_by_key


def has_answer(reference: Reference) -> bool:
    """Return whether the answer is known; only tests can judge tasks that came without their files."""
    return not reference.fields.get("no_reference")


def goes_on(sample: Sample, prompt: Prompt) -> bool:
    """Return whether the prompt ends where the reference begins; the prompt of a line always does."""
    return sample.kind is Kind.LINE or prompt.text.endswith(sample.prefix[-_CURSOR_CHARACTERS:])


def behind_cursor(sample: Sample, reference: Reference) -> str:
    """Return the answer from the cursor on: for a function its body."""
    return reference.target if sample.kind is Kind.LINE else extract.after_cursor(sample, reference.target)


def _stored(key: _Key, prompt: Prompt, bits: float) -> StoredBits:
    language, digest, target = key
    return StoredBits(language=language, prompt_digest=digest, prompt=prompt.text, target_digest=target, bits=bits)

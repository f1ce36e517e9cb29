"""What references cost after prompts, in bits: context gain is the difference between two prompts.

A model that measures beside the one that writes does so as soon as a prompt is known: while the other one writes.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.files import sha256
from ctxbench.bench.types import Kind, Language, Reference, Sample
from ctxbench.harness import extract
from ctxbench.harness.asking import Made
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.base import Coder, Waking
from ctxbench.harness.pace import Pace
from ctxbench.harness.store.records import StoredBits
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.infile_text import WHOLE, infile_prompt

_SEEN = 40
"""Characters before the cursor that tell whether a prompt ends there."""
_FIRST = 16
"""Prompts that are measured ahead first."""
_Key = tuple[str, str, str]
"""Language, prompt's digest, target's digest."""
_Pairs = dict[_Key, tuple[Prompt, str]]
"""What is measured: a text after a prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricer:
    """Who measures what a reference costs after a prompt."""

    name: str
    """Its spec and version, the key of what it measured."""
    coder: Coder
    aside: Executor | None = None
    """Where it works while the model writes; None if it is the model."""

    def wake(self, language: Language) -> None:
        """Let a coder that starts slowly begin to; what fails here fails again when it is asked."""
        if self.aside is not None and isinstance(self.coder, Waking):
            self.aside.submit(self.coder.wake, language)


class Bits:
    """Measures prompts of one sample set; safe to use from many threads."""

    def __init__(self, store: Store, references: Mapping[str, Reference], pricer: Pricer) -> None:
        """Use the answers of the set, and what was measured before."""
        self._store, self._references, self._pricer = store, references, pricer
        self._lock, self._measuring = threading.Lock(), threading.Lock()
        self._free = threading.Condition(self._lock)
        self._askers = 0  # calls of `of`, which come before what is measured ahead
        self._pace = Pace(_FIRST)
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
        # Refused at the end of a run that was interrupted.
        with contextlib.suppress(RuntimeError):
            aside.submit(self._measure_wanted, aside)

    def of(self, made: Sequence[Made]) -> list[tuple[StoredBits, ...]]:
        """Return, for each sample, the costs of its reference after the in-file and the final prompt.

        Of a function it is the body that is priced; none is where the prompt does not end at the cursor.

        Raises:
            MachineFault: if the coder was lost.
        """
        found = [self._pairs_of(one) for one in made]
        with self._asker(), self._measuring:
            known = self._measured({key: pair for pairs in found for key, pair in pairs.items()})
        return [tuple(_stored(key, pair[0], known[key]) for key, pair in pairs.items()) for pairs in found]

    def _pairs_of(self, made: Made) -> _Pairs:
        prompt, pairs = self._begun.pop(made.sample.id, (None, {}))
        return pairs if prompt is made.prompt else self._pairs(made.sample, made.prompt)

    def _pairs(self, sample: Sample, prompt: Prompt) -> _Pairs:
        """Return what is to be measured of a sample, the in-file prompt first; one, where they are equal."""
        reference = self._references[sample.id]
        if not (has_answer(reference) and goes_on(sample, prompt)):
            return {}
        target = behind_cursor(sample, reference)
        # What follows the cursor is no part of the gain: that is what the retrieved context is worth.
        prompts = infile_prompt(sample.query(), WHOLE), fim.left(prompt)
        return {(str(sample.language), one.digest, sha256(target)): (one, target) for one in prompts}

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
        """Measure a part of what is wanted, then go on with the rest."""
        with self._lock:
            self._free.wait_for(lambda: not self._askers)
        with self._measuring:
            with self._lock:
                wanted = dict(itertools.islice(self._wanted.items(), self._pace.size))
            began = time.monotonic()
            # Who needs them asks again, and is told.
            with contextlib.suppress(MachineFault):
                known = self._measured(wanted)
                with self._lock:
                    self._known |= known
            self._pace.took(len(wanted), time.monotonic() - began)
        if self._wanted:
            self._go_on(aside)

    def _measured(self, pairs: _Pairs) -> dict[_Key, float]:
        """Return what pairs cost. Called by one thread at a time."""
        with self._lock:
            # Each is asked for once more at most: the store keeps them from then on.
            known = {key: self._known.pop(key) for key in pairs.keys() & self._known.keys()}
            for key in pairs:
                self._wanted.pop(key, None)
        if left := pairs.keys() - known.keys():
            known |= self._store.bits(self._pricer.name, left)
        for language in sorted({key[0] for key in pairs.keys() - known.keys()}):
            keys = sorted(key for key in pairs.keys() - known.keys() if key[0] == language)
            prompts, texts = zip(*(pairs[key] for key in keys), strict=True)
            costs = self._pricer.coder.bits(prompts, texts, Language(language))
            known |= dict(zip(keys, costs, strict=True))
        return known


def has_answer(reference: Reference) -> bool:
    """Return whether the answer is known; of tasks that came without their files nothing but tests can judge."""
    return not reference.fields.get("no_reference")


def goes_on(sample: Sample, prompt: Prompt) -> bool:
    """Return whether the prompt ends where the reference begins: that of a line always does."""
    return sample.kind is Kind.LINE or prompt.text.endswith(sample.prefix[-_SEEN:])


def behind_cursor(sample: Sample, reference: Reference) -> str:
    """Return the answer from the cursor on: of a function its body."""
    return reference.target if sample.kind is Kind.LINE else extract.rest(sample, reference.target)


def _stored(key: _Key, prompt: Prompt, bits: float) -> StoredBits:
    language, digest, target = key
    return StoredBits(language=language, prompt_digest=digest, prompt=prompt.text, target_digest=target, bits=bits)

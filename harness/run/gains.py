"""Gains of the retrieved blocks of a stored prompt: the bits lost when a block alone is left out.

This is expensive, a measurement for every block, so that it is no part of a run. Of two blocks with the same content
each is worth little, because the other stays: gains do not add up to the context gain.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.harness.diagnostics import RETRIEVED
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Generator
from ctxbench.harness.generators.fim import unmarked
from ctxbench.harness.run.scoring import Pricer, behind_cursor, goes_on, has_answer
from ctxbench.harness.store.details import prompts_of
from ctxbench.harness.store.runs import SET_BACK, StoredRun, check_set
from ctxbench.harness.store.scores import Gain, add_gains, gains_of, priced_samples
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Prompt

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDiagnosis:
    """The gains of a run's blocks after a call of `diagnose`."""

    run: StoredRun
    new: int
    """Samples that this call priced."""
    over_limit: int
    """Samples that the limit left unpriced."""
    unpriced: int
    """Samples whose prompts do not end at the cursor, so that nothing can be priced after them."""
    blocks: Mapping[str, tuple[Gain, ...]]
    """Sample -> its priced blocks, in the order of the prompt."""
    faults: Mapping[str, MachineFault] = field(default_factory=dict)
    """Sample -> why it could not be priced, though others could."""


def diagnose(
    home: Home,
    store: Store,
    run: StoredRun,
    *,
    limit: int | None,
    progress: Progress,
    resolve: Callable[[str], Generator] = registry.resolve,
) -> RunDiagnosis:
    """Price the blocks of a run's stored prompts that are not priced yet, one sample a transaction.

    Args:
        home: where the run's sample set is.
        store: where the run is.
        run: the run.
        limit: samples to price at most; None for all. Those that cannot be priced do not count.
        progress: shows how far it is.
        resolve: how to make the coder; for tests.

    Raises:
        InputFault: if the set is not the run's, or nothing priced the run.
        MachineFault: if the coder was lost; finished samples are kept.
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
    with open_pricer(run, resolve) as pricer:
        priced = priced_samples(store, run.id, pricer.name)
        missing = [(sample, prompt) for sample, prompt in usable if sample not in priced]
        waiting, new = deque(missing), 0
        most = len(missing) if limit is None else min(limit, len(missing))
        faults: dict[str, MachineFault] = {}
        with progress(run.strategy, most) as tick:
            while waiting and new < most:
                id_, prompt = waiting.popleft()
                language, target = samples[id_].language, behind_cursor(samples[id_], sample_set.references[id_])
                try:
                    worth = block_gains(pricer.coder, prompt, target, language)
                except MachineFault as fault:
                    if not pricer.works([language], fault):
                        raise
                    faults[id_] = fault
                    continue
                new += add_gains(store, run.id, id_, pricer.name, worth)
                tick(1)
        blocks = {sample: tuple(gains) for sample, gains in gains_of(store, run.id, pricer.name).items()}
    return RunDiagnosis(
        run=run,
        new=new,
        over_limit=len(waiting),
        unpriced=len(prompts) - len(usable),
        blocks=blocks,
        faults=faults,
    )


def block_gains(coder: Generator, prompt: Prompt, target: str, language: Language) -> dict[int, float]:
    """Return ordinal -> bits that the target costs more after the prompt without that block.

    Text after the cursor that a prompt shows is left out either way.
    """
    ordinals = [at for at, block in enumerate(prompt.blocks) if block.kind in RETRIEVED]
    shorter = [Prompt(blocks=(*prompt.blocks[:at], *prompt.blocks[at + 1 :])) for at in ordinals]
    whole, *without = coder.bits(list(map(unmarked, (prompt, *shorter))), [target] * (1 + len(shorter)), language)
    return {at: bits - whole for at, bits in zip(ordinals, without, strict=True)}


@contextlib.contextmanager
def open_pricer(run: StoredRun, resolve: Callable[[str], Generator]) -> Iterator[Pricer]:
    """Open what priced a run, and close it on leaving.

    Raises:
        InputFault: if nothing priced the run, or its coder cannot price.
    """
    spec = run.coder.rpartition(" ")[0]
    if not spec:
        raise InputFault(f"nothing priced the run {run.id}", cure="choose a run with a context gain")
    model = resolve(spec)
    try:
        if not model.capabilities.prices:
            raise InputFault(f"{spec} cannot price a text", cure="choose a run that another generator priced")
        yield Pricer(name=f"{spec} {model.version}", coder=model)
    finally:
        model.close()

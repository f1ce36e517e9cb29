"""Gains of the retrieved blocks of a stored prompt: the bits lost when a block alone is left out.

Dear, a price a block, so that it is no part of a run. Blocks that say the same are each worth little, because the
other one stays: gains do not add up to the context gain.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Language
from ctxbench.harness.bits import Pricer, behind_cursor, goes_on, has_answer
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Coder, Generator
from ctxbench.harness.generators.fim import unmarked
from ctxbench.harness.store import gains
from ctxbench.harness.store.gains import RETRIEVED, Gain, StoredRun
from ctxbench.harness.store.store import Store
from ctxbench.strategies.api import Prompt

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """What is known of a run's blocks after a call of `diagnose`."""

    run: StoredRun
    new: int
    """Samples that this call priced."""
    left: int
    """Samples that a limit left over."""
    unpriced: int
    """Samples whose prompts do not end at the cursor, so that nothing can be priced after them."""
    blocks: Mapping[str, tuple[Gain, ...]]
    """Sample -> its priced blocks, in the order of the prompt."""


def find(store: Store, wanted: str) -> StoredRun:
    """Return the run with that id, or the only one whose id begins so.

    Raises:
        UnknownName: if there is none.
        InputFault: if there are several.
    """
    found = gains.run_of(store, wanted)
    if not found:
        known = [run.id for run in gains.run_of(store, "")]
        raise UnknownName("stored run", wanted, known, command="ctxbench runs")
    if len(found) > 1:
        ids = ", ".join(run.id for run in found)
        raise InputFault(f"{wanted!r} begins the ids of {len(found)} runs", cure=f"write more of it: {ids}")
    return found[0]


def diagnose(
    home: Home,
    store: Store,
    run: StoredRun,
    *,
    limit: int | None,
    progress: Progress,
    resolve: Callable[[str], Generator] = registry.resolve,
) -> Diagnosed:
    """Price the blocks of a run's stored prompts that are not priced yet, one sample a transaction.

    Args:
        home: where the run's sample set is.
        store: where the run is.
        run: it.
        limit: samples to price at most; None for all.
        progress: shows how far it is.
        resolve: how to make the coder; for tests.

    Raises:
        InputFault: if the set is not the one of the run, or nothing priced the run.
        MachineFault: if the coder was lost; what was priced is kept.
    """
    sample_set = _set(home, run)
    samples = {sample.id: sample for sample in sample_set.samples}
    found = gains.prompts(store, run.id)
    usable = [
        (sample, prompt)
        for sample, prompt in found
        if has_answer(sample_set.references[sample]) and goes_on(samples[sample], prompt)
    ]
    with _pricer(run, resolve) as pricer:
        done = gains.priced(store, run.id, pricer.name)
        missing = [(sample, prompt) for sample, prompt in usable if sample not in done]
        chosen = missing[:limit]
        new = 0
        with progress(run.strategy, len(chosen)) as tick:
            for id_, prompt in chosen:
                sample = samples[id_]
                target = behind_cursor(sample, sample_set.references[id_])
                worth = block_gains(pricer.coder, prompt, target, sample.language)
                new += gains.add(store, run.id, id_, pricer.name, worth)
                tick(1)
        blocks = {sample: tuple(one) for sample, one in gains.of_run(store, run.id, pricer.name).items()}
    return Diagnosed(
        run=run, new=new, left=len(missing) - len(chosen), unpriced=len(found) - len(usable), blocks=blocks
    )


def block_gains(coder: Coder, prompt: Prompt, target: str, language: Language) -> dict[int, float]:
    """Return ordinal -> bits that the target costs more after the prompt without that block.

    What a prompt shows of the text behind the cursor is left out either way.
    """
    ordinals = [at for at, block in enumerate(prompt.blocks) if block.kind in RETRIEVED]
    shorter = [Prompt(blocks=(*prompt.blocks[:at], *prompt.blocks[at + 1 :])) for at in ordinals]
    whole, *without = coder.bits(list(map(unmarked, (prompt, *shorter))), [target] * (1 + len(shorter)), language)
    return {at: bits - whole for at, bits in zip(ordinals, without, strict=True)}


def _set(home: Home, run: StoredRun) -> SampleSet:
    found = sets.load(home, run.samples)
    if found.digest != run.samples_digest:
        raise InputFault(
            f"the set {run.samples!r} has changed since the run {run.id}", cure="bring back the set as it was then"
        )
    return found


@contextlib.contextmanager
def _pricer(run: StoredRun, resolve: Callable[[str], Generator]) -> Iterator[Pricer]:
    spec = run.coder.rpartition(" ")[0]
    if not spec:
        raise InputFault(f"nothing priced the run {run.id}", cure="choose a run with a context gain")
    model = resolve(spec)
    try:
        if not isinstance(model, Coder):
            raise InputFault(f"{spec} cannot price a text", cure="choose a run that another generator priced")
        yield Pricer(name=f"{spec} {model.version}", coder=model)
    finally:
        model.close()

"""What a run works with: cells, a generator behind its batcher, a coder; opened together, ended together."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.harness.batcher import Batcher
from ctxbench.harness.bits import Pricer
from ctxbench.harness.cells import Cells, open_cells
from ctxbench.harness.construction import Construction
from ctxbench.harness.execution import Executor
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Coder, Generator
from ctxbench.harness.prices import Prices
from ctxbench.harness.store.claims import Claims
from ctxbench.harness.store.store import Store
from ctxbench.harness.summaries import Summaries
from ctxbench.harness.tools import OpenTools
from ctxbench.strategies.api import Execute

CODER = "incontext"
"""Measures context gain for generators that cannot."""
_MOST_THREADS = 128

OpenCells = Callable[[Sequence[Path], int], AbstractContextManager[Cells]]
OpenExecutor = Callable[[int], AbstractContextManager[Executor]]
"""Tests at once -> an executor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machinery:
    """Everything that runs, and the names under which its work is stored."""

    cells: Cells
    claims: Claims
    """Which work is this process's, while others do the same run."""
    generator: str
    """Canonical spec."""
    version: str
    batcher: Batcher
    pricer: Pricer
    threads: ThreadPoolExecutor
    width: int
    """How many samples are under way at once."""
    workers: int
    """How many strategies work at once, and how many tests of functions."""
    requests: int
    """How many requests the model is sent at once."""
    judges: bool
    """Whether functions get verdicts."""
    retrieval: Retrieval
    """What strategies' searches share."""
    construction: Construction
    """What searches needed of whole repositories, and how long it took to make."""
    summaries: Summaries
    """Who writes the summaries that APIs are found by; knows what that has cost."""
    executor: Callable[[], Executor | None]
    """Opens what gives verdicts when first called, by one thread; None if `judges` is false."""
    tools: Callable[[], Execute | None]
    """Opens what runs strategies' programs when first called, by one thread; None where there is no sandbox."""


@contextlib.contextmanager
def open_machinery(  # noqa: PLR0913 - what a run works with
    store: Store,
    generator: str,
    *,
    hidden: Sequence[Path],
    cache: Path | None = None,
    workers: int | None = None,
    executor: OpenExecutor | None = None,
    tools: OpenTools | None = None,
    prices: Prices | None = None,
    cells: OpenCells = open_cells,
    resolve: Callable[[str], Generator] = registry.resolve,
) -> Iterator[Machinery]:
    """Open what a run needs; nothing computes before it is asked. End all of it on leaving, however that comes.

    Args:
        store: where answers are kept.
        generator: its spec.
        hidden: what no strategy may read.
        cache: where vectors are kept from run to run; None: in memory only.
        workers: strategies, and tests, at work at once; None for one a core.
        executor: how to open what gives verdicts; None for no verdicts.
        tools: how to open what runs strategies' programs; None for no sandbox.
        prices: what models cost; None if nobody knows.
        cells: how to open cells; for tests.
        resolve: how to make generators; for tests.

    Raises:
        InputFault: if the spec is wrong.
        MachineFault: if no process can be started.
    """
    spec = registry.canonical(generator)
    workers = workers or os.cpu_count() or 1
    with contextlib.ExitStack() as stack:
        claims = stack.enter_context(store.claims())
        # As it is written: what is no part of the canonical spec still says how to ask.
        model = resolve(generator)
        stack.callback(model.close)
        # Twice the batch, so that strategies work on while a full batch is answered.
        width = min(_MOST_THREADS, max(workers, 2 * model.batch_size))
        # Entered early to end late: its threads end only when cells and batcher let go of them.
        threads = stack.enter_context(ThreadPoolExecutor(width, thread_name_prefix="sample"))
        batcher = Batcher(model, spec, store, prices, claims)
        stack.callback(batcher.close)
        summaries = Summaries(batcher)
        construction = Construction()
        vectors = None if cache is None else cache / "vectors"
        retrieval = Retrieval(vectors, summarise=summaries, built=construction)
        pricer = _pricer(model, spec, resolve, stack)
        opened = stack.enter_context(cells(hidden, workers))
        stack.callback(batcher.close)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        stack.callback(retrieval.close)

        @functools.cache
        def executing() -> Executor | None:
            return None if executor is None else stack.enter_context(executor(workers))

        @functools.cache
        def programs() -> Execute | None:
            return None if tools is None else stack.enter_context(tools(workers))

        yield Machinery(
            cells=opened,
            claims=claims,
            generator=spec,
            version=model.version,
            batcher=batcher,
            pricer=pricer,
            threads=threads,
            width=width,
            workers=workers,
            requests=max(1, model.batch_size),
            judges=executor is not None,
            retrieval=retrieval,
            construction=construction,
            summaries=summaries,
            executor=executing,
            tools=programs,
        )


def _pricer(
    model: Generator,
    spec: str,
    resolve: Callable[[str], Generator],
    stack: contextlib.ExitStack,
) -> Pricer:
    if isinstance(model, Coder):
        return Pricer(name=f"{spec} {model.version}", coder=model)
    coder = resolve(CODER)
    stack.callback(coder.close)
    if not isinstance(coder, Coder):
        raise TypeError(f"{CODER} is no coder")
    aside = ThreadPoolExecutor(1, thread_name_prefix="bits")
    # Before the coder is closed, which would start again for what is left.
    stack.callback(aside.shutdown, wait=True, cancel_futures=True)
    return Pricer(name=f"{CODER} {coder.version}", coder=coder, aside=aside)

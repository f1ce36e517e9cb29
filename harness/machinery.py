"""`Machinery`: the cells, the generator behind its batcher and the coder of a run, opened and closed together."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.harness.batcher import Batcher
from ctxbench.harness.bits import Pricer
from ctxbench.harness.cells import Cells, open_cells
from ctxbench.harness.execution import Executor
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Generator
from ctxbench.harness.prices import Prices
from ctxbench.harness.store.claims import Claims
from ctxbench.harness.store.records import StoredConstruction
from ctxbench.harness.store.store import Store
from ctxbench.harness.summaries import Summaries
from ctxbench.harness.tools import OpenTools
from ctxbench.strategies.api import Execute

T = TypeVar("T")
CODER = "incontext"
"""Measures context gain for generators that cannot."""
_MOST_THREADS = 128

OpenCells = Callable[[Sequence[Path], int], AbstractContextManager[Cells]]
OpenExecutor = Callable[[int], AbstractContextManager[Executor]]
"""Tests at once -> an executor."""


class ConstructionLog:
    """A `bench.retrieval.types.Built` that records its calls. May be called by several threads."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._noted: list[StoredConstruction] = []

    def __call__(self, repo: str, stage: str, seconds: float) -> None:
        """Record one stage that was built."""
        with self._lock:
            self._noted.append(StoredConstruction(repo=repo, stage=stage, seconds=seconds))

    def take(self) -> list[StoredConstruction]:
        """Return the stages since the last call, in order."""
        with self._lock:
            stages, self._noted = self._noted, []
        return stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Machinery:
    """The running parts of a run, and the names under which their work is stored."""

    cells: Cells
    claims: Claims
    """The work that this process has claimed, while others may do the same run."""
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
    """The indices that strategies' searches share."""
    construction: ConstructionLog
    """The stages of building those indices, with the seconds that each took."""
    summaries: Summaries
    """Writes the summaries by which APIs are found, and counts their cost."""
    executor: Callable[[], Executor | None]
    """Opens what gives verdicts when first called, by one thread; None if `judges` is false."""
    tools: Callable[[], Execute | None]
    """Opens what runs strategies' programs when first called, by one thread; None where there is no sandbox."""


@contextlib.contextmanager
def open_machinery(  # noqa: PLR0913 - the parts of a run
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
    """Open the parts of a run; nothing computes before it is asked. Close all of them on leaving, in whatever way.

    Args:
        store: where answers are kept.
        generator: its spec.
        hidden: paths that no strategy may read.
        cache: where vectors are kept from run to run; None: in memory only.
        workers: strategies, and tests, at work at once; None for one a core.
        executor: how to open what gives verdicts; None for no verdicts.
        tools: how to open what runs strategies' programs; None for no sandbox.
        prices: of models; None if unknown.
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
        # As written, not canonical: the parts that the canonical spec leaves out still say how to ask.
        model = resolve(generator)
        stack.callback(model.close)
        # Twice the batch, so that strategies work on while a full batch is answered.
        width = min(_MOST_THREADS, max(workers, 2 * model.capabilities.batch_size))
        # Entered early to end late: its threads end only when cells and batcher let go of them.
        threads = stack.enter_context(ThreadPoolExecutor(width, thread_name_prefix="sample"))
        batcher = Batcher(model, spec, store, prices, claims)
        stack.callback(batcher.close)
        summaries, construction = Summaries(batcher), ConstructionLog()
        vectors = None if cache is None else cache / "vectors"
        retrieval = Retrieval(vectors, summarise=summaries, built=construction)
        pricer = _pricer(model, spec, resolve, stack)
        open_cell_pool = stack.enter_context(cells(hidden, workers))
        stack.callback(batcher.close)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        stack.callback(retrieval.close)

        yield Machinery(
            cells=open_cell_pool,
            claims=claims,
            generator=spec,
            version=model.version,
            batcher=batcher,
            pricer=pricer,
            threads=threads,
            width=width,
            workers=workers,
            requests=max(1, model.capabilities.batch_size),
            judges=executor is not None,
            retrieval=retrieval,
            construction=construction,
            summaries=summaries,
            executor=_on_first_call(stack, executor, workers),
            tools=_on_first_call(stack, tools, workers),
        )


def _on_first_call(
    stack: contextlib.ExitStack, opens: Callable[[int], AbstractContextManager[T]] | None, width: int
) -> Callable[[], T | None]:
    """Return what opens something when first called, and leaves it to the stack to close."""

    @functools.cache
    def opened() -> T | None:
        return None if opens is None else stack.enter_context(opens(width))

    return opened


def _pricer(
    model: Generator,
    spec: str,
    resolve: Callable[[str], Generator],
    stack: contextlib.ExitStack,
) -> Pricer:
    if model.capabilities.prices:
        return Pricer(name=f"{spec} {model.version}", coder=model)
    coder = resolve(CODER)
    stack.callback(coder.close)
    aside = ThreadPoolExecutor(1, thread_name_prefix="bits")
    # Before the coder is closed, which would start again for what is left.
    stack.callback(aside.shutdown, wait=True, cancel_futures=True)
    return Pricer(name=f"{CODER} {coder.version}", coder=coder, aside=aside)

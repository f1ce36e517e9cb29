"""`Machinery`: the cells, the generator behind its batcher and the coder of a run, opened and closed together."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ctxbench.bench import code_tokens
from ctxbench.bench.apis import plain, prompts
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.retrieval.types import Unit
from ctxbench.harness.cells import Cells, open_cells
from ctxbench.harness.generators import registry
from ctxbench.harness.generators.base import Generator, Request, Sampling
from ctxbench.harness.prices import Prices
from ctxbench.harness.run.batching import Answer, Batcher, price
from ctxbench.harness.run.judging import Executor
from ctxbench.harness.run.programs import OpenTools
from ctxbench.harness.run.scoring import Pricer
from ctxbench.harness.store.claims import Claims
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import StoredConstruction
from ctxbench.strategies.api import Block, BlockKind, Execute, Prompt

T = TypeVar("T")
CODER = "incontext"
"""Measures context gain for generators that cannot."""
_MOST_THREADS = 128
_LONGEST = 3000
"""Tokens of a function that a model is shown for a summary; a longer one is cut at the end of a line."""

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
    batcher: Batcher
    """The generator, and the threads that ask it."""
    pricer: Pricer
    threads: ThreadPoolExecutor
    width: int
    """How many samples are under way at once."""
    workers: int
    """How many strategies work at once, and how many tests of functions."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineryOptions:
    """How the parts of a run are opened."""

    hidden: Sequence[Path]
    """Paths that no strategy may read."""
    cache: Path | None = None
    """Where vectors are kept from run to run; None: in memory only."""
    workers: int | None = None
    """Strategies, and tests, at work at once; None for one a core."""
    executor: OpenExecutor | None = None
    """Opens what gives verdicts; None for no verdicts."""
    tools: OpenTools | None = None
    """Opens what runs strategies' programs; None for no sandbox."""
    prices: Prices | None = None
    """Of models; None if unknown."""
    cells: OpenCells = open_cells
    resolve: Callable[[str], Generator] = registry.resolve
    """Makes generators; another one in tests."""


@contextlib.contextmanager
def open_machinery(store: Store, generator: str, options: MachineryOptions) -> Iterator[Machinery]:
    """Open the parts of a run; nothing computes before it is asked. Close all of them on leaving, in whatever way.

    Args:
        store: where answers are kept.
        generator: its spec.
        options: how to open the parts.

    Raises:
        InputFault: if the spec is wrong.
        MachineFault: if no process can be started.
    """
    spec = registry.canonical(generator)
    workers = options.workers or os.cpu_count() or 1
    with contextlib.ExitStack() as stack:
        claims = stack.enter_context(store.claims())
        # As written, not canonical: the parts that the canonical spec leaves out still say how to ask.
        model = options.resolve(generator)
        stack.callback(model.close)
        # Twice the batch, so that strategies work on while a full batch is answered.
        width = min(_MOST_THREADS, max(workers, 2 * model.capabilities.batch_size))
        # Entered early to end late: its threads end only when cells and batcher let go of them.
        threads = stack.enter_context(ThreadPoolExecutor(width, thread_name_prefix="sample"))
        batcher = Batcher(model, spec, store, options.prices, claims)
        stack.callback(batcher.close)
        summaries, construction = Summaries(batcher), ConstructionLog()
        vectors = None if options.cache is None else options.cache / "vectors"
        retrieval = Retrieval(vectors, summarise=summaries, built=construction)
        pricer = _pricer(model, spec, options.resolve, stack)
        cells = stack.enter_context(options.cells(options.hidden, workers))
        stack.callback(batcher.close)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        stack.callback(retrieval.close)
        yield Machinery(
            cells=cells,
            claims=claims,
            batcher=batcher,
            pricer=pricer,
            threads=threads,
            width=width,
            workers=workers,
            judges=options.executor is not None,
            retrieval=retrieval,
            construction=construction,
            summaries=summaries,
            executor=_on_first_call(stack, options.executor, workers),
            tools=_on_first_call(stack, options.tools, workers),
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


@dataclass(frozen=True, slots=True)
class Spent:
    """Cost of the summaries that were generated or looked up so far; equal ones count once."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    price: float | None = None
    """US dollars at the rate of this run; None if the rate is unknown or no model was asked."""

    @property
    def remark(self) -> str:
        """One line for a run's record; empty if no model was asked."""
        if not self.calls:
            return ""
        price = "" if self.price is None else f", US$ {self.price:.2g}"
        return f"offline: {self.calls} API summaries, {self.tokens_in} tokens in, {self.tokens_out} out{price}"


class Summaries:
    """A `bench.retrieval.types.Summarise` that asks a generator which follows instructions; else the plain one.

    Its requests belong to no sample: `spent` counts them apart (InferCom paper: the API base is made offline).
    May be called by several threads, those of samples among them.
    """

    def __init__(self, batcher: Batcher) -> None:
        """Ask through the batcher of the run's generator; nothing is asked before the first call."""
        self._batcher = batcher
        self._lock = threading.Lock()
        self._costs: dict[str, tuple[int, int, float | None]] = {}

    @property
    def plain(self) -> bool:
        """Whether the generator follows no instructions, so that summaries are `bench.apis.plain`'s."""
        return not self._batcher.generator.capabilities.instructs

    @property
    def spent(self) -> Spent:
        """The cost of all requests so far, including answers stored by earlier runs."""
        with self._lock:
            costs = list(self._costs.values())
        prices = [price for *_, price in costs if price is not None]
        return Spent(
            len(costs),
            sum(cost[0] for cost in costs),
            sum(cost[1] for cost in costs),
            math.fsum(prices) if prices else None,
        )

    def __call__(self, language: Language, units: Sequence[Unit]) -> list[str]:
        """Return one sentence a unit; the plain one where the model's is empty.

        Raises:
            MachineFault: if the model was lost.
        """
        if self.plain or not units:
            return plain.summarise(language, units)
        answers = self._batcher.ask([self._request(unit.code, language) for unit in units])
        self._note(answers)
        sentences = [prompts.post_process(answer.response.text) for answer in answers]
        return [text or plain.summarise(language, [unit])[0] for text, unit in zip(sentences, units, strict=True)]

    def _request(self, code: str, language: Language) -> Request:
        text = prompts.summary_prompt(_cut(code), language)
        prompt = Prompt(blocks=(Block(kind=BlockKind.TEXT, text=text),))
        return Request(prompt=prompt, language=language, sampling=Sampling(max_tokens=prompts.MAX_TOKENS))

    def _note(self, answers: Sequence[Answer]) -> None:
        rate = self._batcher.rate
        costs = {
            answer.id: (answer.response.tokens_in, answer.response.tokens_out, price(answer.response, rate))
            for answer in answers
        }
        with self._lock:
            self._costs.update(costs)


def _cut(code: str) -> str:
    tokens = code_tokens.pieces(code)
    return code if len(tokens) <= _LONGEST else "".join(tokens[:_LONGEST]).rpartition("\n")[0]

"""`Resources`: cells, model, coder, indices and sandbox of runs, which start on first use and are closed together."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import url2pathname

from ctxbench.bench import apis, code_tokens
from ctxbench.bench.code_tokens import P50kBase
from ctxbench.bench.engines.boxes import Engines
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories.snapshot import Snapshot, is_test_or_vendored
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.retrieval.units import Unit, cutter
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.bench.windows import Tokens
from ctxbench.harness import prices
from ctxbench.harness.cells import Cells, StrategyBounds, StrategyCard, copies, open_cells
from ctxbench.harness.generators import base
from ctxbench.harness.generators.base import Generator, Request, Sampling
from ctxbench.harness.metrics import COPY_MODEL
from ctxbench.harness.run.batching import Answer, Batcher
from ctxbench.harness.run.execution import (
    Executor,
    OpenJudge,
    OpenTools,
    back_end,
    open_executor,
    open_judge,
    open_tools,
)
from ctxbench.harness.run.sample import Ahead, Asker
from ctxbench.harness.run.scoring import LikelihoodModel
from ctxbench.harness.run.spec import NO_SANDBOX, RunOptions
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import StoredConstruction
from ctxbench.sandbox.types import Sandbox
from ctxbench.strategies.api import Execute, Prompt, text_block

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_MOST_THREADS = 128
_MANY_SUMMARIES = 200
"""Number of summaries without stored answers above which a message announces how many requests are needed."""

OpenCells = Callable[[Sequence[Path], int], AbstractContextManager[Cells]]
OpenExecutor = Callable[[int], AbstractContextManager[Executor]]


class ConstructionLog:
    """A log of the seconds per stage of building an index; thread-safe. Implements `bench.retrieval.units.Built`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: list[StoredConstruction] = []

    def __call__(self, repo: str, stage: str, seconds: float) -> None:
        """Record one stage of construction."""
        with self._lock:
            self._noted.append(StoredConstruction(repo=repo, stage=stage, seconds=seconds))

    def take(self) -> list[StoredConstruction]:
        """Return the stages that were recorded since the last call of `take`, in order."""
        with self._lock:
            stages, self._noted = self._noted, []
        return stages


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The cells, model, coder, indices and sandboxes that runs share."""

    cells: Cells
    batcher: Batcher
    likelihood: LikelihoodModel
    threads: ThreadPoolExecutor
    width: int
    workers: int
    """Maximum number of strategies in parallel, and of function tests in parallel."""
    judges: bool
    has_sandbox: bool
    retrieval: Retrieval
    construction: ConstructionLog
    summaries: Summaries
    executor: Callable[[], Executor | None]
    """Function that returns the executor, which its first call opens; None if `judges` is False. Not thread-safe."""
    tools: Callable[[], Execute | None]
    """Function that returns the runner of strategies' programs; None without a sandbox. Not thread-safe."""
    engines: Engines
    max_cost: float | None
    """Cost of new answers, in US dollars, at which no more samples are started; None for no limit."""

    def asker(
        self,
        card: StrategyCard,
        store: Store,
        snapshots: Mapping[str, Snapshot],
        ahead: Ahead = lambda _, __: None,
    ) -> Asker:
        """Return an `Asker` for a strategy. `ahead` is called with each final prompt before the model is asked."""
        return Asker(
            self.cells,
            self.batcher,
            snapshots,
            self.workers,
            store=store,
            retrieval=self.retrieval,
            execute=self.tools() if card.executes else None,
            ahead=ahead,
            summariser=self.summaries.batcher,
            unmasked=card.unmasked,
            engines=self.engines if card.engines else None,
        )

    @property
    def spent(self) -> float:
        """US dollars for all new answers with a known price so far, including those of a summariser."""
        return sum(batcher.spent for batcher in {self.batcher, self.summaries.batcher})

    @property
    def cost_limit_reached(self) -> bool:
        """Whether the new answers have cost `max_cost` or more; False without a limit."""
        return self.max_cost is not None and self.spent >= self.max_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """Functions that open the resources. ctxbench's own tests replace some of them."""

    judges: OpenJudge = open_judge
    cells: OpenCells | None = None
    resolve: Callable[[str], Generator] = base.resolve
    tools: OpenTools | None = None
    """Function that opens the sandbox for strategies' programs; None for the back end in the run's options."""
    boxes: Callable[[], Sandbox] | None = None
    """Function that opens the back end for context engines; None for the back end in the run's options."""

    def in_sandbox(self, home: Home, choices: RunOptions) -> RunParts:
        """Return these parts with the options' back end for unset `tools` and `boxes`, unless it is `NO_SANDBOX`."""
        if choices.sandbox == NO_SANDBOX:
            return self
        tools = self.tools or functools.partial(open_tools, home=home, sandbox=choices.sandbox)
        return replace(self, tools=tools, boxes=self.boxes or functools.partial(back_end, home, choices.sandbox))


@contextlib.contextmanager
def open_resources(
    home: Home,
    store: Store,
    sample_set: SampleSet,
    planned: Sequence[Sample],
    generator: str,
    choices: RunOptions,
    **parts: Any,
) -> Iterator[Resources]:
    """Provide the resources of runs. No resource computes anything before its first use; all are closed on exit.

    `parts` are fields of `RunParts`, which only ctxbench's own tests replace.

    Raises:
        InputFault: if a spec or a file (tokenizer, prices) is wrong, or the summariser does not follow instructions.
        MachineFault: if a process cannot be started.
    """
    spec = base.canonical(generator)
    # Refuse a wrong tokenizer file before anything starts.
    tokens: Tokens = P50kBase(choices.tokenizer).ids if choices.tokenizer is not None else code_tokens.tokenize
    hidden = kept_from_strategies(home, store.where, sample_set)
    opens = RunParts(**parts).in_sandbox(home, choices)
    executor: OpenExecutor | None = None
    if choices.sandbox != NO_SANDBOX and any(sample.tested for sample in planned):
        executor = functools.partial(
            open_executor, home=home, store=store, sample_set=sample_set, sandbox=choices.sandbox, judges=opens.judges
        )
    workers = choices.workers or os.cpu_count() or 1
    apis.ask_with(choices.summary_templates)
    with contextlib.ExitStack() as stack:
        # Use the spec as written: the canonical spec lacks settings that affect only speed and access.
        model = opens.resolve(generator)
        stack.callback(model.close)
        # Use twice the batch size, so that strategies can work while the model answers a full batch.
        width = min(_MOST_THREADS, max(workers, 2 * model.capabilities.batch_size))
        # Enter the pool early, so that it ends late: cells and batcher must release its threads first.
        threads = stack.enter_context(ThreadPoolExecutor(width, thread_name_prefix="sample"))
        batcher = Batcher(model, spec, store, prices.of_home(home))
        stack.callback(batcher.close)
        summariser = batcher
        if choices.summariser:
            summariser = _summariser(home, store, choices.summariser, opens.resolve, stack)
        summaries = Summaries(summariser, tests=choices.summarise_tests or not choices.summariser)
        construction = ConstructionLog()
        retrieval = Retrieval(home.cache / "vectors", summarise=summaries, built=construction, tokens=tokens)
        likelihood = _likelihood_model(model, spec, opens.resolve, stack)
        opened_cells = stack.enter_context((opens.cells or _cells_of(choices))(hidden, workers))
        engines = stack.enter_context(Engines(opens.boxes or _no_boxes, hidden=hidden, report=_LOG.info))
        stack.callback(batcher.close)
        stack.callback(summariser.close)
        stack.callback(threads.shutdown, wait=False, cancel_futures=True)
        stack.callback(retrieval.close)
        yield Resources(
            cells=opened_cells,
            batcher=batcher,
            likelihood=likelihood,
            threads=threads,
            width=width,
            workers=workers,
            judges=executor is not None,
            has_sandbox=opens.tools is not None,
            retrieval=retrieval,
            construction=construction,
            summaries=summaries,
            executor=_on_first_call(stack, executor, workers),
            tools=_on_first_call(stack, opens.tools, workers),
            engines=engines,
            max_cost=choices.max_cost,
        )


def kept_from_strategies(home: Home, database: str, sample_set: SampleSet) -> list[Path]:
    """Return the existing paths to hide from strategies: home, cache, database, and possible copies of samples' code.

    Raises:
        InputFault: if the cache is outside the home folder and cannot be created.
    """
    if not home.cache.is_relative_to(home.root):
        with explained(home.cache):
            # Create the cache folder now, because only existing paths can be hidden.
            home.cache.mkdir(parents=True, exist_ok=True)
    paths = [home.root.absolute(), home.cache, Path(database).absolute()]
    paths += copies(sample.path for sample in sample_set.samples)
    sources = [str(entry.get("source", "")) for entry in sample_set.manifest.get("repositories", {}).values()]
    paths += [_folder(source) for source in sources if source.startswith(("local:", "git+file:"))]
    return [path for path in paths if path.is_absolute() and path.exists()]


def _folder(source: str) -> Path:
    if source.startswith("local:"):
        return Path(source.removeprefix("local:"))
    return Path(url2pathname(urlsplit(source.rpartition("@")[0]).path))


def _cells_of(choices: RunOptions) -> OpenCells:
    bounds = StrategyBounds.of_work(choices.strategy_seconds)
    tokenizer = str(choices.tokenizer.absolute()) if choices.tokenizer else ""
    common = {"tokenizer": tokenizer, "templates": dict(choices.summary_templates)}
    return functools.partial(open_cells, limits=bounds, common=common)


def _summariser(
    home: Home, store: Store, spec: str, resolve: Callable[[str], Generator], stack: contextlib.ExitStack
) -> Batcher:
    model = resolve(spec)
    stack.callback(model.close)
    if not model.capabilities.instructs:
        raise InputFault(
            f"the summariser {spec} does not follow instructions",
            cure="use its chat template (endpoint=chat, chat=on), or name a model that does",
        )
    batcher = Batcher(model, base.canonical(spec), store, prices.of_home(home))
    stack.callback(batcher.close)
    return batcher


def _no_boxes() -> Sandbox:
    raise InputFault(
        "context engines need a sandbox, and this run has none",
        cure="leave out --sandbox none, or name a back end (see `ctxbench doctor`)",
    )


def _on_first_call(
    stack: contextlib.ExitStack, opens: Callable[[int], AbstractContextManager[T]] | None, width: int
) -> Callable[[], T | None]:
    @functools.cache
    def opened() -> T | None:
        return None if opens is None else stack.enter_context(opens(width))

    return opened


def _likelihood_model(
    model: Generator,
    spec: str,
    resolve: Callable[[str], Generator],
    stack: contextlib.ExitStack,
) -> LikelihoodModel:
    if model.capabilities.log_likelihoods:
        return LikelihoodModel(name=f"{spec} {model.version}", coder=model)
    coder = resolve(COPY_MODEL)
    stack.callback(coder.close)
    aside = ThreadPoolExecutor(1, thread_name_prefix="bits")
    # Register this to run before the coder is closed. Otherwise remaining work would start the coder again.
    stack.callback(aside.shutdown, wait=True, cancel_futures=True)
    return LikelihoodModel(name=f"{COPY_MODEL} {coder.version}", coder=coder, aside=aside)


class Summaries:
    """A writer of API summaries, with a model that follows instructions or from the code without a model; thread-safe.

    The requests belong to no sample, so `remark` counts them separately. The InferCom paper also builds its API base
    offline. Implements `bench.retrieval.units.Summarise`.
    """

    def __init__(self, batcher: Batcher, *, tests: bool = True) -> None:
        """Use the batcher of the run's summariser. Without `tests`, test and vendored APIs get plain summaries."""
        self.batcher, self._tests = batcher, tests
        self.planned: Callable[[], Iterable[tuple[Language, Sequence[Unit]]]] | None = None
        """Yields, in parts, the units that may need summaries. The units are counted before the first request."""
        self._lock, self._announcing = threading.Lock(), threading.Lock()
        self._costs: dict[str, tuple[int, int, float | None]] = {}

    @property
    def plain(self) -> bool:
        """Whether all summaries are written without a model, because the summariser does not follow instructions."""
        return not self.batcher.generator.capabilities.instructs

    @property
    def answers(self) -> tuple[str, ...]:
        """Ids of the answers that summaries have used so far."""
        with self._lock:
            return tuple(self._costs)

    @property
    def remark(self) -> str:
        """Cost of all summaries so far, including stored answers, as one line; empty if no summary used an answer."""
        with self._lock:
            costs = list(self._costs.values())
        if not costs:
            return ""
        tokens_in, tokens_out = sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)
        prices = [price for *_, price in costs if price is not None]
        price = f", US$ {math.fsum(prices):.2g}" if prices else ""
        return f"offline: {len(costs)} API summaries, {tokens_in} tokens in, {tokens_out} out{price}"

    def __call__(self, language: Language, units: Sequence[Unit]) -> list[str]:
        """Return a one-sentence summary of each unit. If the model's answer is empty, a plain summary replaces it."""
        requested_units = [unit for unit in units if self._asks(unit)]
        if not requested_units:
            return [unit.summary for unit in units]
        self._announce()
        answers = self.batcher.ask([self._request(unit.code, language) for unit in requested_units])
        self._note(answers)
        texts = {
            unit.code: apis.post_process(answer.response.text)
            for unit, answer in zip(requested_units, answers, strict=True)
        }
        return [(texts[unit.code] if self._asks(unit) else "") or unit.summary for unit in units]

    def _asks(self, unit: Unit) -> bool:
        return not self.plain and (self._tests or not is_test_or_vendored(unit.place.path))

    def _announce(self) -> None:
        with self._announcing:
            planned, self.planned = self.planned, None
            if planned is None:
                return
            requests = [
                self._request(unit.code, language)
                for language, units in planned()
                for unit in units
                if self._asks(unit)
            ]
            lacking = self.batcher.without_answer(requests)
            if len(lacking) > _MANY_SUMMARIES:
                tokens = sum(code_tokens.count(request.prompt.text) for request in lacking)
                _LOG.info(
                    "%d API summaries will be written by %s: %d calls, about %d tokens in and at most %d out; "
                    "they are stored for later runs",
                    len(lacking),
                    self.batcher.spec,
                    len(lacking),
                    tokens,
                    len(lacking) * apis.MAX_TOKENS,
                )

    def _request(self, code: str, language: Language) -> Request:
        prompt = Prompt(blocks=(text_block(apis.summary_prompt(code, language)),))
        sampling = Sampling(max_tokens=apis.MAX_TOKENS)
        return Request(prompt=prompt, system=apis.SYSTEM, language=language, sampling=sampling)

    def _note(self, answers: Sequence[Answer]) -> None:
        costs = {
            answer.id: (answer.response.tokens_in, answer.response.tokens_out, self.batcher.price(answer.response))
            for answer in answers
        }
        with self._lock:
            self._costs.update(costs)


def summary_units(snapshots: Callable[[], Mapping[str, Snapshot]]) -> Iterator[tuple[Language, Sequence[Unit]]]:
    """Yield (language, units) per file of a run's repositories. The units are the APIs for retrieval by summary."""
    cut = cutter("summary")
    for snapshot in snapshots().values():
        for path, text in snapshot.texts.items():
            yield snapshot.language, cut(path, text, snapshot.language)

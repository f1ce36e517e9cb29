"""`Asker` completes samples: the strategy builds the prompt in its cell, and the model answers."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from ctxbench.bench import apis
from ctxbench.bench.engines.boxes import Engines, EngineSession
from ctxbench.bench.engines.types import EngineUse
from ctxbench.bench.files import sha256
from ctxbench.bench.masking import unmasked
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import Access, AccessLedger, Repository, View, view
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.types import NEXT_LINE, SINGLE_LINE, Kind, Query, Sample
from ctxbench.harness.cells import Cells, StrategyFault
from ctxbench.harness.generators import fim
from ctxbench.harness.generators.answers import extract
from ctxbench.harness.generators.base import Generator, Request, Response, Sampling, TooLong
from ctxbench.harness.generators.fitting import fitted
from ctxbench.harness.run.batching import Answer, Batcher
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import StoredGeneration, StoredVerdict
from ctxbench.strategies.api import SUMMARY_ROLE, Execute, Execution, Prompt, text_block
from ctxbench.strategies.chat import HEADING, Chat, Role

OVERFLOW = "overflow_failed"
"""Flag of a prompt that exceeds the model's window although everything permitted was removed."""
STILL_MASKED = "masked_imports"
"""Flag of a prompt without the masked import lines: the strategy may see them, but they were not recorded."""
UNMASKED_REMARK = "The strategy saw the import lines that the samples mask; rows without them had the harder task."
FINAL = "final"
Ahead = Callable[[Sample, Prompt], str | None]
"""(sample, final prompt) -> text whose bits the model measures along with its answer, or None. Must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A final answer of the model, and the completion extracted from it."""

    answer: Answer
    text: str
    """Text of the completion; for a function sample, the whole function."""
    flags: tuple[str, ...] = ()
    verdict: StoredVerdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredSample:
    """A sample with its prompt, model calls and completions, before scoring."""

    sample: Sample
    prompt: Prompt
    calls: tuple[tuple[str, Answer], ...]
    completions: tuple[Completion, ...]
    strategy_seconds: float
    engines: tuple[EngineUse, ...] = ()
    access: Access | None = None
    """Counts and places of the code that the strategy read; None if no strategy ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompted:
    prompt: Prompt
    calls: tuple[tuple[str, Answer], ...]
    seconds: float
    """Seconds that the strategy ran, excluding waiting."""
    access: Access


@dataclass(frozen=True, slots=True)
class _Model:
    instructs: bool
    summarises: bool
    ask: Callable[[Prompt | Chat, str, int], str]

    def __call__(self, prompt: Prompt | Chat, *, role: str = "draft", max_tokens: int = 128) -> str:
        return self.ask(prompt, role, max_tokens)


@dataclass(frozen=True, slots=True)
class _Programs:
    execute: Execute
    elsewhere: Callable[[], AbstractContextManager[None]]

    def __call__(self, program: str, *, seconds: float = 10.0) -> Execution:
        with self.elsewhere():
            return self.execute(program, seconds=seconds)


class Asker:
    """The thread-safe call path from a sample to its completions. Its strategies' cells receive no references."""

    def __init__(  # noqa: PLR0913 - the components between a sample and its completions
        self,
        cells: Cells,
        batcher: Batcher,
        snapshots: Mapping[str, Snapshot],
        workers: int,
        *,
        store: Store,
        retrieval: Retrieval | None = None,
        execute: Execute | None = None,
        ahead: Ahead = lambda _, __: None,
        summariser: Batcher | None = None,
        unmasked: bool = False,
        engines: Engines | None = None,
    ) -> None:
        """Store the components.

        At most `workers` strategies run at once, excluding those that wait for the model. `ahead` is called with
        each final prompt before the model is asked. `summariser` answers requests for summaries; None means `batcher`.
        With `unmasked`, strategies see the lines that samples mask.
        """
        self._cells, self._batcher, self._snapshots, self._engines = cells, batcher, snapshots, engines
        self._store, self._retrieval, self._execute = store, retrieval, execute
        self._ahead, self._summariser, self._unmasked = ahead, summariser or batcher, unmasked
        self._slots = threading.BoundedSemaphore(max(1, workers))

    def make(self, strategy: str, sample: Sample, sampling: Sampling, n: int) -> AnsweredSample:
        """Return the prompt and the completions of one sample.

        Raises:
            StrategyFault: if the strategy failed on the sample, or its prompt is too long for the model.
            MachineFault: if a cell or the model was lost.
            InputFault: if the run fills in the middle and the model cannot.
        """
        with contextlib.ExitStack() as turn:
            # A sample waits for its engines first. Otherwise it would hold up samples that are ready to ask the model.
            session = self._turn(turn, sample)
            with self._batcher.member(), self._summariser.member():
                prompted = self._prompted(strategy, sample, sampling, session)
                turn.close()
                try:
                    answered = self._complete(
                        sample, prompted.prompt, sampling, n, calls=prompted.calls, seconds=prompted.seconds
                    )
                except TooLong as fault:
                    # The model would refuse the same prompt again.
                    raise StrategyFault(
                        f"the strategy sent a prompt that the model cannot read: {fault.what}",
                        where=f"{strategy} on {sample.id}",
                        cure=fault.cure,
                    ) from fault
        uses = session.uses if session is not None else ()
        return replace(answered, engines=uses, access=prompted.access)

    def _turn(self, turn: contextlib.ExitStack, sample: Sample) -> EngineSession | None:
        if self._engines is None:
            return None
        return turn.enter_context(self._engines.turn(sample, self._snapshots.get(sample.repo)))

    def prompt_of(self, strategy: str, sample: Sample, sampling: Sampling) -> Prompt:
        """Return the exact prompt that the model would complete. The model answers only the strategy's own calls.

        Raises:
            StrategyFault: if the strategy failed on the sample.
            MachineFault: if a cell or the model was lost.
            InputFault: if the run fills in the middle and the model cannot.
        """
        with contextlib.ExitStack() as turn, self._batcher.member(), self._summariser.member():
            prompted = self._prompted(strategy, sample, sampling, self._turn(turn, sample))
            return self._final_request(sample, prompted.prompt, sampling).prompt

    def _prompted(self, strategy: str, sample: Sample, sampling: Sampling, engines: EngineSession | None) -> _Prompted:
        shown_sample = self._shown(sample)
        query = shown_sample.query(seed=sampling.seed)
        calls: list[tuple[str, Answer]] = []
        worked = since = 0.0

        @contextlib.contextmanager
        def elsewhere() -> Iterator[None]:
            """Stop the strategy's clock inside the context, and let another strategy run meanwhile."""
            nonlocal worked, since
            worked += time.perf_counter() - since
            self._slots.release()
            try:
                yield
            finally:
                self._slots.acquire()
                since = time.perf_counter()

        def generate(prompt: Prompt | Chat, role: str, max_tokens: int) -> str:
            batcher = self._summariser if role == SUMMARY_ROLE else self._batcher
            sampling_of_call = Sampling(max_tokens=max_tokens, seed=sampling.seed)
            request = _asked_on_the_way(batcher.generator, sample, prompt, sampling_of_call)
            with elsewhere():
                [answer] = batcher.ask([replace(request, system=apis.SYSTEM * (role == SUMMARY_ROLE))])
            calls.append((role, answer))
            return answer.response.text

        execute = None if self._execute is None else _Programs(self._execute, elsewhere)
        ledger = AccessLedger()
        repo = self.view(shown_sample, query, engines, ledger)
        with self._slots:
            since = time.perf_counter()
            instructs, summarises = (
                batcher.generator.capabilities.instructs for batcher in (self._batcher, self._summariser)
            )
            prompt = self._cells.run(strategy, query, repo, _Model(instructs, summarises, generate), execute)
            worked += time.perf_counter() - since
        if self._unmasked and shown_sample.masked:
            prompt = replace(prompt, flags=(*prompt.flags, STILL_MASKED))
        return _Prompted(prompt=fim.of_strategy(prompt), calls=tuple(calls), seconds=worked, access=ledger.access)

    def _shown(self, sample: Sample) -> Sample:
        snapshot = self._snapshots.get(sample.repo)
        return unmasked(sample, snapshot) if self._unmasked and snapshot is not None else sample

    def complete(self, sample: Sample, prompt: Prompt, sampling: Sampling, n: int) -> AnsweredSample:
        """Return the completions of one sample for a prompt that no strategy built.

        Raises:
            MachineFault: if the model was lost.
        """
        with self._batcher.member():
            return self._complete(sample, prompt, sampling, n)

    def _complete(
        self,
        sample: Sample,
        prompt: Prompt,
        sampling: Sampling,
        n: int,
        *,
        calls: Sequence[tuple[str, Answer]] = (),
        seconds: float = 0.0,
    ) -> AnsweredSample:
        request = self._final_request(sample, prompt, sampling)
        prompt = request.prompt
        if OVERFLOW in prompt.flags:
            # The prompt is too long although everything permitted was removed. The sample fails without a request to
            # the model.
            finals = [unasked_answer(self._store, OVERFLOW, prompt, "")] * n
        else:
            measured = replace(request, reference=self._ahead(sample, prompt))
            # If `n` is 0, no completion is requested.
            finals = self._batcher.ask([measured, *(replace(request, index=index) for index in range(1, n))][:n])
        return AnsweredSample(
            sample=sample,
            prompt=prompt,
            calls=(*calls, *((FINAL, answer) for answer in finals)),
            completions=tuple(completion(sample, answer) for answer in finals),
            strategy_seconds=seconds,
        )

    def _final_request(self, sample: Sample, prompt: Prompt, sampling: Sampling) -> Request:
        request = _request(sample, prompt, sampling, final=True)
        if OVERFLOW in prompt.flags:
            return request
        model = self._batcher.generator
        return fim.filled(model, request, fim.suffix_block(sample)) if sampling.fim else fitted(model, request)

    def view(
        self,
        sample: Sample,
        query: Query,
        engines: EngineSession | None = None,
        ledger: AccessLedger | None = None,
    ) -> Repository:
        """Return the part of a sample's repository that a strategy may see."""
        snapshot = self._snapshots.get(sample.repo)
        if snapshot is not None:
            return view(snapshot, query, sample.masked, sample.hidden, self._retrieval, engines, ledger)
        # For a set that was imported without repositories, only the stored prefix is known.
        return View(
            name=sample.repo,
            language=sample.language,
            texts={},
            digest="",
            query=query,
            masked=sample.masked,
            retrieval=self._retrieval,
            engines=engines,
            ledger=ledger,
        )


def _request(sample: Sample, prompt: Prompt, sampling: Sampling, *, final: bool = False) -> Request:
    return Request(
        prompt=prompt,
        language=sample.language,
        kind=sample.kind,
        sampling=sampling,
        # Only final answers end after one line. Strategies read every line of a draft, as in the papers' programs.
        one_line=final and sample.subkind in (SINGLE_LINE, NEXT_LINE),
    )


def _asked_on_the_way(generator: Generator, sample: Sample, prompt: Prompt | Chat, sampling: Sampling) -> Request:
    """Return the request for a call by a strategy. A chat is sent as text if the model does not support `tools`."""
    if not isinstance(prompt, Chat):
        return fitted(generator, _request(sample, fim.of_strategy(prompt), sampling))
    request = _request(sample, Prompt(blocks=(text_block(prompt.text),)), sampling)
    if generator.capabilities.tools:
        return replace(request, chat=prompt)
    # Stop after a tool call. Otherwise the model would invent the call's result.
    return replace(request, sampling=replace(sampling, stop=(f"\n{HEADING}{Role.TOOL}",)))


def completion(sample: Sample, answer: Answer) -> Completion:
    """Extract the completion from an answer to a sample's prompt."""
    if sample.kind is Kind.LINE:
        return Completion(answer=answer, text=answer.response.text)
    extracted = extract(sample, answer.response.text)
    return Completion(answer=answer, text=extracted.text, flags=extracted.flags)


def unasked_answer(store: Store, name: str, prompt: Prompt, text: str) -> Answer:
    """Store and return a text as the answer to a prompt that was not sent to a model.

    `name` replaces the generator's name: it is a control, or the reason why no model was asked.
    """
    id_ = sha256(f"unasked\0{name}\0{prompt.digest}\0{text}")
    stored = StoredGeneration(
        id=id_,
        generator=name,
        version="",
        prompt_digest=prompt.digest,
        prompt=prompt.text,
        sampling="{}",
        idx=0,
        text=text,
        finish="stop",
        tokens_in=0,
        tokens_out=0,
        seconds=0.0,
        price=0.0,
    )
    store.add_generations([stored])
    return Answer(id_, Response(text=text, finish="stop", tokens_in=0, tokens_out=0, seconds=0.0))

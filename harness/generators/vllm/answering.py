"""`VLLM`: answer requests and price texts with vLLM's engine in this process."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TypeVar

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.hf import files, pricing
from ctxbench.harness.generators.hf.local import Local
from ctxbench.harness.generators.hf.stopping import end_of
from ctxbench.harness.generators.openai import lines
from ctxbench.harness.generators.openai.wire import seed
from ctxbench.harness.generators.vllm.engine import EngineAnswer, EngineRequest, VLLMEngine
from ctxbench.harness.generators.vllm.settings import VLLMSettings
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "1"
"""Incremented when the same request would be answered differently."""
_NEWLINE = "\n"
_GOES = 3
"""How often an answer that begins with blank lines is continued."""


class VLLM(Local):
    """A causal language model, computed by vLLM.

    Prompts become tokens by the same code as `hf`'s, and answers are cut by the same rule, so that both generators read
    and return the same texts.
    """

    def __init__(self, settings: VLLMSettings) -> None:
        """Prepare; files are looked for when the version is asked for, the engine starts with the first request."""
        super().__init__(settings)
        self._settings = settings
        # State of a GPU belongs to a thread: a single one starts the engine, asks it and ends it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        self._started: VLLMEngine | None = None
        self.instructs = settings.chat
        self.batch_size = settings.batch

    @functools.cached_property
    def version(self) -> str:
        """Digest of the model's files and of the adapter's, see `hf.files.digest`, and the version of vLLM."""
        adapter = Path(self._settings.lora).expanduser() if self._settings.lora else None
        parts = [PROTOCOL, files.digest(self._folder), *([files.digest(adapter)] if adapter else [])]
        try:
            return "-".join([*parts, f"vllm{version_of('vllm')}"])
        except PackageNotFoundError:
            return "-".join([*parts, "vllm"])

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order; one that is too long has its fault in its place.

        Raises:
            InputFault: if the model cannot be read, or there is no GPU.
            MachineFault: if the engine does not start, or died; the next call starts another.
        """
        outcomes: dict[int, Response | MachineFault] = {}
        engine_requests: dict[int, EngineRequest] = {}
        for number, request in enumerate(requests):
            ids = self._tokens.prompt(request)
            room = self.window - len(ids) if self.window else request.sampling.max_tokens
            if room < 1:
                outcomes[number] = self._too_long(len(ids))
            else:
                engine_requests[number] = self._engine_request(
                    request, ids, min(room, max(1, request.sampling.max_tokens))
                )
        start = time.perf_counter()
        answers = self._answered({number: requests[number] for number in engine_requests}, engine_requests)
        seconds = (time.perf_counter() - start) / max(1, len(answers))
        for number, answer in answers.items():
            outcomes[number] = self._response(requests[number], engine_requests[number], answer, seconds)
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `hf.pricing`.

        Chat models read the bare prompt too: the code is priced, not the talk around it.

        Raises:
            InputFault: as `generate`.
            MachineFault: as `generate`.
        """
        words = self._tokens
        # vLLM makes one token more than it prices.
        room = max(0, self.window - 1)
        pieces = [
            (number, *piece)
            for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True))
            for piece in pricing.pieces(*pricing.tokens(prompt.text, text, words.plain, words.begin), room)
        ]
        priced = self._work(lambda engine: engine.costs([(ids, count) for _, ids, count in pieces])) if pieces else []
        costs = [0.0] * len(prompts)
        for (number, _, _), cost in zip(pieces, priced, strict=True):
            costs[number] += cost
        return costs

    def close(self) -> None:
        """Release the engine and its memory."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def _work(self, work: Callable[[VLLMEngine], T]) -> T:
        """Run some work on the engine, in its own thread; start the engine if needed."""

        def do() -> T:
            if self._started is None:
                self._started = VLLMEngine(self._folder, self._settings, self.window)
            try:
                return work(self._started)
            except MachineFault:
                # A dead engine still holds memory that the next one needs.
                self._stop()
                raise

        return self._thread.submit(do).result()

    def _stop(self) -> None:
        engine, self._started = self._started, None
        if engine is not None:
            engine.close()

    def _engine_request(self, request: Request, ids: list[int], most: int) -> EngineRequest:
        end, how = end_of(request, chat=self._settings.chat), request.sampling
        return EngineRequest(
            ids=ids,
            most=most,
            temperature=max(0.0, how.temperature),
            top_p=how.top_p,
            seed=seed(how.seed, request.index) if how.temperature > 0 else None,
            stops=(*end.stops, *([_NEWLINE] if end.line else [])),
            ends=tuple(sorted(self._tokens.middle_ends(request))),
        )

    def _answered(
        self, requests: dict[int, Request], engine_requests: dict[int, EngineRequest]
    ) -> dict[int, EngineAnswer]:
        """Return the answers, generated in one call; those that a blank line has ended too early are continued."""
        if not engine_requests:
            return {}
        first = self._work(lambda engine: engine.answer(list(engine_requests.values())))
        answers = dict(zip(engine_requests, first, strict=True))
        for go in range(_GOES):
            early = [
                number
                for number, answer in answers.items()
                if self._is_early(requests[number], engine_requests[number], answer)
            ]
            if not early:
                break
            # The last time no line ends them, and they are only cut.
            rests = [_remainder(engine_requests[number], answers[number], stops=go < _GOES - 1) for number in early]
            more = self._work(partial(VLLMEngine.answer, requests=rests))
            for number, other in zip(early, more, strict=True):
                answer = answers[number]
                answers[number] = replace(other, ids=[*answer.ids, *other.ids], cached=answer.cached)
        return answers

    def _is_early(self, request: Request, engine_request: EngineRequest, answer: EngineAnswer) -> bool:
        """Return whether only the end of a blank line has ended an answer that may go on."""
        end = end_of(request, chat=self._settings.chat)
        if answer.by != _NEWLINE or not end.line or len(answer.ids) >= engine_request.most:
            return False
        return end.find(self._tokens.answer(request, engine_request.ids, answer.ids)) is None

    def _response(
        self, request: Request, engine_request: EngineRequest, answer: EngineAnswer, seconds: float
    ) -> Response:
        text = self._tokens.answer(request, engine_request.ids, answer.ids)
        at = end_of(request, chat=self._settings.chat).find(text)
        stopped = answer.stopped or at is not None
        text = text[:at]
        if not stopped:
            # The limit may fall between the tokens of one character.
            text = text.rstrip("\ufffd")
        return Response(
            text=lines.answer(request, text) if self._settings.chat else text,
            finish="stop" if stopped else "length",
            tokens_in=len(engine_request.ids),
            tokens_out=len(answer.ids),
            seconds=seconds,
            cached=min(answer.cached, len(engine_request.ids)),
        )


def _remainder(request: EngineRequest, answer: EngineAnswer, *, stops: bool) -> EngineRequest:
    """Return the request for the rest of an answer that goes on, with random numbers of its own.

    Args:
        request: for the whole answer.
        answer: the part that is there.
        stops: whether the end of a line ends it again.
    """
    return replace(
        request,
        ids=[*request.ids, *answer.ids],
        most=request.most - len(answer.ids),
        seed=None if request.seed is None else seed(request.seed, len(answer.ids)),
        stops=tuple(stop for stop in request.stops if stops or stop != _NEWLINE),
    )

"""`VLLM`: requests answered, and texts priced, by vLLM's engine in this process."""

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
from ctxbench.bench.types import Language
from ctxbench.harness.generators.base import Request, Response
from ctxbench.harness.generators.hf import files, pricing
from ctxbench.harness.generators.hf.local import Local
from ctxbench.harness.generators.hf.stopping import end_of
from ctxbench.harness.generators.openai import lines
from ctxbench.harness.generators.openai.wire import seed
from ctxbench.harness.generators.vllm.engine import Engine, Made, Wanted
from ctxbench.harness.generators.vllm.settings import Settings
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "1"
"""Counts up when the same request would be answered otherwise."""
_NEWLINE = "\n"
_GOES = 3
"""How often an answer that begins with blank lines is asked to go on."""


class VLLM(Local):
    """A causal language model, computed by vLLM.

    Prompts are tokens that our own reading makes, the same as `hf`'s, and answers are cut by the same rule: both
    generators see and say the same texts.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare; files are looked for when the version is asked for, the engine starts with the first request."""
        super().__init__(settings)
        self._settings = settings
        # What is kept for a GPU is kept by thread: one alone starts the engine, asks it and ends it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        self._started: Engine | None = None
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
        found: dict[int, Response | MachineFault] = {}
        wanted: dict[int, Wanted] = {}
        for number, request in enumerate(requests):
            ids = self._tokens.prompt(request)
            room = self.window - len(ids) if self.window else request.sampling.max_tokens
            if room < 1:
                found[number] = self._too_long(len(ids))
            else:
                wanted[number] = self._wanted(request, ids, min(room, max(1, request.sampling.max_tokens)))
        start = time.perf_counter()
        made = self._answered({number: requests[number] for number in wanted}, wanted)
        seconds = (time.perf_counter() - start) / max(1, len(made))
        for number, one in made.items():
            found[number] = self._response(requests[number], wanted[number], one, seconds)
        return [found[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `hf.pricing`.

        Chat models read the bare prompt too: what is priced is the code, not the talk around it.

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
        """Let go of the engine and its memory."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def _work(self, work: Callable[[Engine], T]) -> T:
        """Have the engine do something, in its own thread; start it if need be."""

        def do() -> T:
            if self._started is None:
                self._started = Engine(self._folder, self._settings, self.window)
            try:
                return work(self._started)
            except MachineFault:
                # What is left of a dead engine holds memory that the next one needs.
                self._stop()
                raise

        return self._thread.submit(do).result()

    def _stop(self) -> None:
        engine, self._started = self._started, None
        if engine is not None:
            engine.close()

    def _wanted(self, request: Request, ids: list[int], most: int) -> Wanted:
        end, how = end_of(request, chat=self._settings.chat), request.sampling
        return Wanted(
            ids=ids,
            most=most,
            temperature=max(0.0, how.temperature),
            top_p=how.top_p,
            seed=seed(how.seed, request.index) if how.temperature > 0 else None,
            stops=(*end.stops, *([_NEWLINE] if end.line else [])),
            ends=tuple(sorted(self._tokens.middle_ends(request))),
        )

    def _answered(self, requests: dict[int, Request], wanted: dict[int, Wanted]) -> dict[int, Made]:
        """Return the answers, all asked for in one call; those that a blank line has ended too early go on."""
        if not wanted:
            return {}
        first = self._work(lambda engine: engine.answer(list(wanted.values())))
        made = dict(zip(wanted, first, strict=True))
        for go in range(_GOES):
            early = [number for number, one in made.items() if self._is_early(requests[number], wanted[number], one)]
            if not early:
                break
            # The last time no line ends them, and they are only cut.
            rests = [_rest(wanted[number], made[number], stops=go < _GOES - 1) for number in early]
            more = self._work(partial(Engine.answer, wanted=rests))
            for number, other in zip(early, more, strict=True):
                one = made[number]
                made[number] = replace(other, ids=[*one.ids, *other.ids], cached=one.cached)
        return made

    def _is_early(self, request: Request, wanted: Wanted, made: Made) -> bool:
        """Say whether only the end of a blank line has ended an answer that may go on."""
        end = end_of(request, chat=self._settings.chat)
        if made.by != _NEWLINE or not end.line or len(made.ids) >= wanted.most:
            return False
        return end.find(self._tokens.answer(request, wanted.ids, made.ids)) is None

    def _response(self, request: Request, wanted: Wanted, made: Made, seconds: float) -> Response:
        text = self._tokens.answer(request, wanted.ids, made.ids)
        at = end_of(request, chat=self._settings.chat).find(text)
        stopped = made.stopped or at is not None
        text = text[:at]
        if not stopped:
            # The limit may fall between the tokens of one character.
            text = text.rstrip("\ufffd")
        return Response(
            text=lines.answer(request, text) if self._settings.chat else text,
            finish="stop" if stopped else "length",
            tokens_in=len(wanted.ids),
            tokens_out=len(made.ids),
            seconds=seconds,
            cached=min(made.cached, len(wanted.ids)),
        )


def _rest(wanted: Wanted, made: Made, *, stops: bool) -> Wanted:
    """Return what is still wanted of an answer that goes on, with numbers of chance of its own.

    Args:
        wanted: the whole answer.
        made: what there is of it.
        stops: whether the end of a line ends it again.
    """
    return replace(
        wanted,
        ids=[*wanted.ids, *made.ids],
        most=wanted.most - len(made.ids),
        seed=None if wanted.seed is None else seed(wanted.seed, len(made.ids)),
        stops=tuple(stop for stop in wanted.stops if stops or stop != _NEWLINE),
    )

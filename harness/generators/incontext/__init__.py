"""The built-in copy model: a deterministic model that copies from its prompt, used to measure contexts."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ctxbench.bench.concurrency import cores, starting_workers
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Kind
from ctxbench.harness.generators.base import Capabilities, Generator, Request, Response, generator
from ctxbench.strategies.api import Prompt

if TYPE_CHECKING:
    from ctxbench.harness.generators.incontext.model import CopyModel

_FOLDER = Path(__file__).parent
VERSION = "1-5dd647a939dc"
"""Part of the cache keys of answers and bits. Change this version only if an answer or a text's bits change."""
J = TypeVar("J")
R = TypeVar("R")


def weights_path(language: Language) -> Path:
    """Return the path of the weights file of a language."""
    return _FOLDER / f"weights-{language}.npz"


@functools.cache
def trained_model(language: Language) -> CopyModel:
    """Return the copy model of a language, loaded once per process; raises `InputFault` if there is none."""
    from ctxbench.harness.generators.incontext.model import CopyModel  # noqa: PLC0415 - numpy

    path = weights_path(language)
    if not path.is_file():
        raise InputFault(f"incontext does not support {language.label}", cure="choose another generator")
    return CopyModel.load(path, language)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow_parent, daemon=True).start()


def _follow_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Price(NamedTuple):
    prompt: Prompt
    text: str
    language: Language


def _answer(request: Request) -> Response:
    from ctxbench.harness.generators.incontext import decode  # noqa: PLC0415 - numpy

    start = time.perf_counter()
    reader = trained_model(request.language)
    reading = reader.read(request.prompt)
    ask = decode.complete_body if request.kind is Kind.FUNCTION else decode.complete
    completion = ask(reader, reading, max(1, request.sampling.max_tokens))
    text = completion.text
    for stop in request.sampling.stop:
        text = text.split(stop, 1)[0] if stop else text
    return Response(
        text=text,
        finish="stop" if completion.ended else "length",
        tokens_in=len(reading.context.tokens),
        tokens_out=completion.tokens,
        seconds=time.perf_counter() - start,
    )


def _price(job: _Price) -> float:
    return trained_model(job.language).bits(job.prompt, job.text)


def _load(language: Language) -> None:
    trained_model(language)


class InContext(Generator):
    """The copy model as a generator. Its beam search is deterministic and ignores temperature, seed and index."""

    version = VERSION
    capabilities = Capabilities(batch_size=64, log_likelihoods=True)

    def __init__(self, *, workers: int = 0) -> None:
        if workers < 0:
            raise InputFault(f"workers={workers} is invalid", where="incontext", cure="use 0 (one per core) or more")
        self._workers = workers or cores()
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    def generate(self, requests: Sequence[Request]) -> list[Response]:
        """Complete the line or the function body at each prompt's cursor, in order.

        Raises:
            InputFault: if there is no copy model of a request's language.
            MachineFault: if a worker process was lost.
        """
        return self._map(_answer, requests, 2)

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a newline after its prompt.

        Raises:
            InputFault: if there is no copy model of the language.
            MachineFault: if a worker process was lost.
        """
        jobs = [_Price(prompt, text, language) for prompt, text in zip(prompts, texts, strict=True)]
        return self._map(_price, jobs, 4)

    def knows(self, language: Language) -> bool:
        """Return whether ctxbench contains weights for a language."""
        return weights_path(language).is_file()

    def wake(self, language: Language) -> None:
        """Load a language's weights: with one worker in this process, otherwise in worker processes, started if needed.

        Raises:
            InputFault: if there is no copy model of the language.
            MachineFault: if a worker process was lost.
        """
        # Several jobs per worker: while one worker loads, idle workers take the next jobs.
        self._map(_load, [language] * (4 * self._workers), 1)

    def close(self) -> None:
        """Stop the worker processes."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _map(self, work: Callable[[J], R], jobs: Sequence[J], chunk: int) -> list[R]:
        if self._workers == 1:
            return [work(job) for job in jobs]
        try:
            with starting_workers():
                results = self._started().map(work, jobs, chunksize=chunk)
            return list(results)
        except (BrokenProcessPool, MemoryError) as error:
            raise self._lost() from error

    def _started(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._pool is None:
                # Do not fork this process: a child would inherit locks of the runner's threads.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self._workers, mp_context=context, initializer=_begin)
            return self._pool

    def _lost(self) -> MachineFault:
        self.close()
        return MachineFault(
            "a worker process was lost (killed, or out of memory)",
            where="incontext",
            cure="run the same command again, with fewer workers if memory is short: incontext(workers=1)",
        )


@generator("incontext", machine=("workers",))
def incontext(*, workers: int = 0) -> InContext:
    """Copy from the prompt alone, to measure contexts without a language model.

    Args:
        workers: number of processes; 0 for one per core.
    """
    return InContext(workers=workers)

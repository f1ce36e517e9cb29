"""`vllm`: a model whose weights are on this machine, run on its GPUs by vLLM in this process (the extra ``vllm``)."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TypeVar

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import lines
from ctxbench.harness.generators.base import Request, Response, sample_seed
from ctxbench.harness.generators.local import AUTO, Local, LocalRequest, checked, is_chat, model_digest
from ctxbench.harness.generators.registry import generator
from ctxbench.harness.generators.vllm.engine import CURE, EngineAnswer, EngineRequest, VLLMEngine, VLLMSettings
from ctxbench.strategies.api import Prompt

T = TypeVar("T")
PROTOCOL = "2"
"""Incremented when the same request would be answered differently."""
_GOES = 3
"""How often an answer that begins with blank lines is continued."""


@generator("vllm", machine=("batch", "tensor_parallel", "gpu_memory"), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def vllm(  # noqa: PLR0913 - what a user may decide about an engine
    *,
    model: str,
    revision: str = "",
    dtype: str = AUTO,
    quantization: str = "",
    lora: str = "",
    window: int = 0,
    chat: str = AUTO,
    batch: int = 64,
    tensor_parallel: int = 1,
    gpu_memory: float = 0.9,
) -> VLLM:
    """Run a model's weights by vLLM, in this process; short: vllm:MODEL.

    Args:
        model: a folder with the model, or its name on the hub: then from the hub's cache on this machine, or fetched.
        revision: of a hub's model: branch, tag or commit.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: as the weights are stored, 32 bits as 16.
        quantization: how vLLM is to shrink the weights as it reads them, such as ``fp8``; empty: as the files say.
        lora: a folder with a LoRA adapter that goes on top.
        window: tokens of prompt and answer; 0: as the model's configuration says.
        chat: whether the model follows instructions and is asked by its chat template: ``on``, ``off``, or ``auto``:
            if its name says so (``…-Instruct``, ``…-chat``).
        batch: requests handed to the engine at once, while as many samples more are prepared.
        tensor_parallel: GPUs that share the model.
        gpu_memory: part of each GPU's memory that the engine takes.
    """
    checked("vllm", model=model, dtype=dtype, batch=batch, window=window, chat=chat)
    if tensor_parallel < 1:
        raise InputFault(f"tensor_parallel={tensor_parallel} does not fit", where="vllm", cure="give 1 or more")
    if not 0 < gpu_memory <= 1:
        raise InputFault(f"gpu_memory={gpu_memory:g} does not fit", where="vllm", cure="give a part such as 0.9")
    weights.need(("torch", "transformers", "vllm"), where="vllm", cure=CURE)
    settings = VLLMSettings(
        model=model,
        revision=revision,
        dtype=dtype,
        quantization=quantization,
        lora=lora,
        window=window,
        chat=is_chat(chat, model),
        batch=batch,
        tensor_parallel=tensor_parallel,
        gpu_memory=gpu_memory,
    )
    return VLLM(settings)


class VLLM(Local):
    """A causal language model, computed by vLLM.

    Prompts become tokens by the same code as `hf`'s, and answers are cut by the same rule, so that both generators read
    and return the same texts.
    """

    def __init__(self, settings: VLLMSettings) -> None:
        """Prepare; files are looked for when the version is asked for, the engine starts with the first request."""
        super().__init__(settings, batch_size=settings.batch)
        self._settings = settings
        # State of a GPU belongs to a thread: a single one starts the engine, asks it and ends it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        self._started: VLLMEngine | None = None

    @functools.cached_property
    def version(self) -> str:  # type: ignore[override] # found when first asked for
        """Digest of the model's files and of the adapter's, see `hf.model_digest`, and the version of vLLM."""
        adapter = Path(self._settings.lora).expanduser() if self._settings.lora else None
        parts = [PROTOCOL, model_digest(self._folder), *([model_digest(adapter)] if adapter else [])]
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
        fitting, faults = self._tokenized(requests)
        outcomes: dict[int, Response | MachineFault] = {**faults}
        start = time.perf_counter()
        answers = self._answered(fitting)
        seconds = (time.perf_counter() - start) / max(1, len(answers))
        for number, answer in answers.items():
            outcomes[number] = self._response(
                fitting[number], answer.ids, stopped=answer.stopped, seconds=seconds, cached=answer.cached
            )
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a line end after its prompt; see `priced_pieces`.

        Raises:
            InputFault: as `generate`.
            MachineFault: as `generate`.
        """
        # vLLM makes one token more than it prices.
        pieces = self._priced(prompts, texts, max(0, self.window - 1))
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

    def _answered(self, fitting: Mapping[int, LocalRequest]) -> dict[int, EngineAnswer]:
        """Return the answers, generated in one call; those that a blank line has ended too early are continued."""
        if not fitting:
            return {}
        requests = {number: self._engine_request(tokenized) for number, tokenized in fitting.items()}
        first = self._work(lambda engine: engine.answer(list(requests.values())))
        answers = dict(zip(requests, first, strict=True))
        for go in range(_GOES):
            early = [
                number
                for number, answer in answers.items()
                if answer.by == lines.END and self._goes_on(fitting[number], answer.ids)
            ]
            if not early:
                break
            # The last time no line ends them, and they are only cut.
            rests = [_remainder(requests[number], answers[number], stops=go < _GOES - 1) for number in early]
            more = self._work(partial(VLLMEngine.answer, requests=rests))
            for number, other in zip(early, more, strict=True):
                answer = answers[number]
                answers[number] = replace(other, ids=[*answer.ids, *other.ids], cached=answer.cached)
        return answers

    def _engine_request(self, tokenized: LocalRequest) -> EngineRequest:
        how = tokenized.request.sampling
        return EngineRequest(
            ids=tokenized.ids,
            most=tokenized.most,
            temperature=max(0.0, how.temperature),
            top_p=how.top_p,
            seed=sample_seed(how.seed, tokenized.request.index) if how.temperature > 0 else None,
            stops=(*tokenized.end.stops, *([lines.END] if tokenized.end.line else [])),
            ends=tuple(sorted(self._tokens.middle_ends(tokenized.request))),
        )

    def _goes_on(self, tokenized: LocalRequest, generated: Sequence[int]) -> bool:
        """Return whether the end of a blank line, which ended an answer, is not the answer's end."""
        if not tokenized.end.line or len(generated) >= tokenized.most:
            return False
        return tokenized.end.find(self._tokens.answer(tokenized.request, tokenized.ids, generated)) is None


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
        seed=None if request.seed is None else sample_seed(request.seed, len(answer.ids)),
        stops=tuple(stop for stop in request.stops if stops or stop != lines.END),
    )

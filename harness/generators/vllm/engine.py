"""`VLLMEngine`: generate tokens after tokens, and price given ones. Only this file imports vLLM."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import math
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ctxbench.bench.concurrency import without_main
from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.files import read_text
from ctxbench.harness.generators.local import LocalModel

_AGAIN = "run the same command again; if it comes back, give a smaller window or gpu_memory"
_SMALLER = "give a smaller window, quantization=fp8, tensor_parallel=N, or another gpu_memory if others are there"
_ENVIRONMENT = {
    # One process and one order of work: a fault shows its cause, and batches form alike each time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # This process has threads, and a fork of those may hang.
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
}
"""Environment variables of vLLM, set unless the user has set them."""
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Ranks of adapters that vLLM makes room for."""
_ADAPTER = "adapter_config.json"
_MEMORY = re.compile(r"\bmemory\b|\bKV cache\b", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRequest:
    """A request for one answer."""

    ids: list[int]
    """The prompt; at least one token."""
    most: int
    """Tokens of the answer at most; at least one."""
    temperature: float
    top_p: float
    seed: int | None
    """None for the likeliest token each time."""
    stops: tuple[str, ...]
    """Texts that end it."""
    ends: tuple[int, ...]
    """Tokens that end it, beside the model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAnswer:
    """One answer."""

    ids: list[int]
    """Its tokens, the one that ended it included."""
    stopped: bool
    """Whether it came to an end by itself or at a text or token that ends it, and not at its limit."""
    by: str
    """The text that ended it; empty if none did."""
    cached: int
    """How many tokens of the prompt were cached from earlier ones."""


class VLLMEngine:
    """The engine of one model. One thread at a time."""

    def __init__(self, folder: Path, settings: VLLMSettings, window: int) -> None:
        """Start it; nothing is fetched, and no code that the folder brings along is run.

        Args:
            folder: the model's.
            settings: how to run it.
            window: tokens of prompt and answer; 0 for what vLLM finds in the configuration.

        Raises:
            InputFault: if there is no GPU, or vLLM cannot be imported, or refuses the model or its parameters.
            MachineFault: if it does not start, for want of memory perhaps.
        """
        self._settings = settings
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._vllm = self._imported("vllm")
        if self._imported("vllm.platforms").current_platform.is_unspecified():
            cure = "run it on a machine with a GPU that vLLM knows, or take hf or openai:MODEL@URL"
            raise InputFault("vLLM sees no GPU here", where=settings.where, cure=cure)
        lora = _adapter(settings)
        self._lora = None
        if lora is not None:
            request = self._imported("vllm.lora.request").LoRARequest
            self._lora = request(lora_name="lora", lora_int_id=1, lora_path=str(lora[0]))
        try:
            with without_main():  # tensor_parallel spawns workers
                self._llm: Any = self._vllm.LLM(**arguments(folder, settings, window, rank=lora[1] if lora else 0))
        except Exception as error:
            # The engine raises all kinds of exceptions, for wrong files as well as for a lack of memory.
            raise self._fault("the engine does not start", error) from error

    def answer(self, requests: Sequence[EngineRequest]) -> list[EngineAnswer]:
        """Generate answers, side by side as the engine decides.

        Raises:
            InputFault: if vLLM refuses the parameters of one.
            MachineFault: if the engine died.
        """
        params = [
            self._vllm.SamplingParams(
                max_tokens=request.most,
                temperature=request.temperature,
                top_p=request.top_p,
                seed=request.seed,
                stop=list(request.stops),
                stop_token_ids=list(request.ends),
            )
            for request in requests
        ]
        return [_answer_of(output) for output in self._generate([request.ids for request in requests], params)]

    def costs(self, pieces: Sequence[tuple[list[int], int]]) -> list[float]:
        """Return the cost of the last n tokens of each piece after those before them: minus log2 of the probability.

        Args:
            pieces: tokens, and n, which is less than their number.

        Raises:
            InputFault: as `answer`.
            MachineFault: if the engine died, or gave a price that is no number.
        """
        # vLLM must generate at least one token, whose value does not matter.
        params = self._vllm.SamplingParams(max_tokens=1, temperature=0.0, prompt_logprobs=0)
        outputs = self._generate([ids for ids, _ in pieces], [params] * len(pieces))
        return [self._cost(output, *piece) for output, piece in zip(outputs, pieces, strict=True)]

    def close(self) -> None:
        """Release the GPU's memory."""
        llm, self._llm = self._llm, None
        if llm is not None:
            # A dead engine may not end tidily; its fault has been reported already.
            with contextlib.suppress(Exception):
                llm.llm_engine.engine_core.shutdown()
            del llm
            gc.collect()
            if (torch := sys.modules.get("torch")) is not None:
                torch.cuda.empty_cache()

    def _imported(self, module: str) -> Any:
        try:
            return importlib.import_module(module)
        except Exception as error:
            # It looks for drivers and compiled parts as it is imported, and dies as they do.
            reason = _line(error)
            raise InputFault(
                f"{module} cannot be imported ({reason})", where=self._settings.where, cure=CURE
            ) from error

    def _generate(self, prompts: Sequence[list[int]], params: Sequence[Any]) -> list[Any]:
        token_prompts = [self._vllm.TokensPrompt(prompt_token_ids=ids) for ids in prompts]
        try:
            outputs: list[Any] = self._llm.generate(
                token_prompts, list(params), use_tqdm=False, lora_request=self._lora
            )
        except Exception as error:
            raise self._fault("the engine gave no answer", error) from error
        return outputs

    def _cost(self, output: Any, ids: Sequence[int], count: int) -> float:
        logs = output.prompt_logprobs
        if logs is None or len(logs) != len(ids):
            raise MachineFault("the engine gave no log-probabilities", where=self._settings.where, cure=_AGAIN)
        bits = -math.fsum(logs[at][ids[at]].logprob for at in range(len(ids) - count, len(ids))) / math.log(2)
        if not math.isfinite(bits):
            raise MachineFault("a text's price is no number", where=self._settings.where, cure="give dtype=bfloat16")
        return max(0.0, bits)

    def _fault(self, what: str, error: Exception) -> CtxbenchError:
        """Return the fault of an engine; a lack of memory has a cure of its own."""
        reason = _line(error)
        full = type(error).__name__ == "OutOfMemoryError" or _MEMORY.search(reason) is not None
        cure = _SMALLER if full else _AGAIN
        message = f"{what} ({type(error).__name__}: {reason})"
        if isinstance(error, ValueError) and not full:
            return InputFault(message, where=self._settings.where, cure="mend the spec, or the model's files")
        return MachineFault(message, where=self._settings.where, cure=cure)


def arguments(folder: Path, settings: VLLMSettings, window: int, *, rank: int = 0) -> dict[str, Any]:
    """Return the arguments that the engine is started with.

    Args:
        folder: the model's.
        settings: how to run it.
        window: tokens of prompt and answer; 0 for what vLLM finds.
        rank: of the adapter; 0 for none.
    """
    adapter = {"enable_lora": True, "max_lora_rank": rank} if rank else {}
    return {
        "model": str(folder),
        "dtype": settings.dtype,
        "quantization": settings.quantization or None,
        "max_model_len": window or None,
        "seed": 0,
        "tensor_parallel_size": settings.tensor_parallel,
        "gpu_memory_utilization": settings.gpu_memory,
        "enable_prefix_caching": True,
        # The run decides, not the model's own file with, for example, a penalty for repetitions.
        "generation_config": "vllm",
        "trust_remote_code": False,
        "disable_log_stats": True,
        **adapter,
    }


def _answer_of(output: Any) -> EngineAnswer:
    [answer] = output.outputs
    return EngineAnswer(
        ids=list(answer.token_ids),
        stopped=answer.finish_reason == "stop",
        by=answer.stop_reason if isinstance(answer.stop_reason, str) else "",
        cached=output.num_cached_tokens or 0,
    )


def _adapter(settings: VLLMSettings) -> tuple[Path, int] | None:
    """Return the folder of the adapter and the rank to make room for; None if there is none.

    Raises:
        InputFault: if the folder holds no adapter that vLLM can hold.
    """
    if not settings.lora:
        return None
    path = Path(settings.lora).expanduser().absolute()
    cure = f"give a folder with {_ADAPTER} and the adapter's weights, of rank {_RANKS[-1]} at most"
    try:
        rank = json.loads(read_text(path / _ADAPTER))["r"]
        room = next((size for size in _RANKS if rank <= size), 0)
    except (CtxbenchError, ValueError, KeyError, TypeError) as error:
        raise InputFault(f"{path} holds no adapter", where=settings.where, cure=cure) from error
    if not room:
        raise InputFault(f"the adapter's rank is {rank}", where=settings.where, cure=cure)
    return path, room


def _line(error: Exception) -> str:
    """Return what an error says as one line: its first three, since some say only in the second what is wrong."""
    return " ".join(str(error).split("\n", 3)[:3])[:300].strip() or type(error).__name__


CURE = "pip install 'ctxbench[vllm]' on a machine with a GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class VLLMSettings(LocalModel):
    """One model, and how vLLM runs it."""

    by: ClassVar[str] = "vllm"
    quantization: str
    """A method of vLLM's; empty: as the model's files say."""
    lora: str
    """A folder with an adapter; empty for none."""
    tensor_parallel: int
    gpu_memory: float

"""A replacement for the package `vllm` with only the names that ctxbench uses; a function answers.

Using any other name fails. `test_vllm_package.py` compares `NAMES` with the real package.
"""

import math
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import pytest

NAMES: dict[str, frozenset[str]] = {
    "LLM": frozenset(
        {
            "model",
            "dtype",
            "quantization",
            "max_model_len",
            "seed",
            "tensor_parallel_size",
            "gpu_memory_utilization",
            "enable_prefix_caching",
            "generation_config",
            "trust_remote_code",
            "disable_log_stats",
            "enforce_eager",
            "block_size",
        }
    ),
    "LLM.generate": frozenset({"prompts", "sampling_params", "use_tqdm"}),
    "SamplingParams": frozenset(
        {
            "max_tokens",
            "temperature",
            "top_p",
            "seed",
            "stop",
            "stop_token_ids",
            "prompt_logprobs",
            "detokenize",
            "skip_reading_prefix_cache",
        }
    ),
    "TokensPrompt": frozenset({"prompt_token_ids"}),
    "RequestOutput": frozenset({"outputs", "prompt_logprobs", "num_cached_tokens"}),
    "CompletionOutput": frozenset({"token_ids", "finish_reason", "stop_reason"}),
    "Logprob": frozenset({"logprob"}),
}

_BLOCK = 4
"""Number of tokens that are cached together."""


def known(name: str, given: dict[str, Any]) -> types.SimpleNamespace:
    if odd := set(given) - NAMES[name]:
        raise TypeError(f"{name} got unexpected names {sorted(odd)}")
    return types.SimpleNamespace(**given)


class FakeVLLM:
    def __init__(
        self,
        following: Callable[[list[int], int | None], int],
        text: Callable[[list[int], list[int]], str],
        *,
        ends: Sequence[int] = (),
        log: Callable[[list[int], int], float] = lambda *_: math.log(0.5),
    ) -> None:
        """Store the answers.

        Args:
            following: tokens so far and the seed, None for greedy -> the next token.
            text: tokens of a prompt and of an answer -> the answer's text.
            ends: tokens that end an answer.
            log: tokens so far and the next token -> the natural logarithm of its probability.
        """
        self.following, self.text, self.ends, self.log = following, text, ends, log
        self.started: list[types.SimpleNamespace] = []
        self.calls: list[list[types.SimpleNamespace]] = []
        self.threads: set[str] = set()
        self.mains: set[str] = set()
        """The main module's spec at each start, which tells spawned workers the script to run."""
        self.alive = 0
        self.gpu, self.cpu = True, False
        self.broken: list[Exception] = []
        """Exceptions that the next calls raise, including starts."""
        self._seen: list[list[int]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parts = {
            "vllm": {
                "LLM": self._llm,
                "SamplingParams": lambda **given: known("SamplingParams", given),
                "TokensPrompt": lambda **given: known("TokensPrompt", given),
            },
            "vllm.platforms": {
                "current_platform": types.SimpleNamespace(
                    is_unspecified=lambda: not (self.gpu or self.cpu), is_cpu=lambda: self.cpu
                )
            },
        }
        for name, content in parts.items():
            module = types.ModuleType(name)
            for key, value in content.items():
                setattr(module, key, value)
            monkeypatch.setitem(sys.modules, name, module)

    def _llm(self, **given: Any) -> Any:
        self._break()
        self.started.append(known("LLM", given))
        self.mains.add(sys.modules["__main__"].__spec__.name)  # type: ignore[union-attr]
        self.alive += 1
        core = types.SimpleNamespace(shutdown=self._shutdown)
        return types.SimpleNamespace(generate=self._generate, llm_engine=types.SimpleNamespace(engine_core=core))

    def _shutdown(self) -> None:
        self.alive -= 1

    def _break(self) -> None:
        import threading

        self.threads.add(threading.current_thread().name)
        if self.broken:
            raise self.broken.pop(0)

    def _generate(self, prompts: list[Any], sampling_params: list[Any], **given: Any) -> list[Any]:
        self._break()
        known("LLM.generate", given)
        assert given["use_tqdm"] is False and len(prompts) == len(sampling_params)
        self.calls.append(sampling_params)
        return [
            self._output(prompt.prompt_token_ids, one) for prompt, one in zip(prompts, sampling_params, strict=True)
        ]

    def _output(self, ids: list[int], how: Any) -> Any:
        [longest] = self.started[-1:]
        assert longest.max_model_len is None or len(ids) + how.max_tokens <= longest.max_model_len
        priced = getattr(how, "prompt_logprobs", None) is not None
        cached = max((_shared(ids, one) for one in self._seen), default=0)
        if getattr(how, "skip_reading_prefix_cache", priced):
            cached = 0
        # vLLM caches blocks of tokens, and always reads the last block. Cached tokens have no log-probabilities.
        cached = min(cached, len(ids) - 1) // _BLOCK * _BLOCK
        first = max(1, cached + 1)
        prices = ({ids[at]: self._logprob(ids[:at], ids[at])} for at in range(first, len(ids)))
        logs = [*[None] * first, *prices] if priced else None
        made, reason, by = self._answer(ids, how)
        self._seen.append([*ids, *made[:-1]])
        answer = known("CompletionOutput", {"token_ids": tuple(made), "finish_reason": reason, "stop_reason": by})
        return known("RequestOutput", {"outputs": [answer], "prompt_logprobs": logs, "num_cached_tokens": cached})

    def _logprob(self, before: list[int], token: int) -> Any:
        return known("Logprob", {"logprob": self.log(before, token)})

    def _answer(self, ids: list[int], how: Any) -> tuple[list[int], str, str | int | None]:
        seed = getattr(how, "seed", None) if how.temperature > 0 else None
        made: list[int] = []
        while len(made) < how.max_tokens:
            made.append(self.following([*ids, *made], seed))
            if made[-1] in self.ends:
                return made, "stop", None
            if made[-1] in getattr(how, "stop_token_ids", ()):
                return made, "stop", made[-1]
            text = self.text(ids, made)
            for stop in getattr(how, "stop", ()):
                if stop in text:
                    return made, "stop", stop
        return made, "length", None


def _shared(one: list[int], other: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))

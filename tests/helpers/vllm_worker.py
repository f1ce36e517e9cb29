"""A worker for vLLM's real engine that computes on the processor with transformers; for `scripts/check_vllm.py`.

Scheduler, prefix cache, stop texts, detokenizer and accounts are vLLM's own; only the layers, and the choice of the
likeliest token, are not. Importable where vLLM is installed only.
"""

from __future__ import annotations

import importlib
from typing import Any

_BASE = importlib.import_module("vllm.v1.worker.worker_base")
_OUTPUTS = importlib.import_module("vllm.v1.outputs")
_CACHE = importlib.import_module("vllm.v1.kv_cache_interface")


class _Computing:
    """What the engine asks of a worker."""

    vllm_config: Any

    def init_device(self) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.device = self.torch.device("cpu")
        self.known: dict[str, tuple[list[int], int, Any]] = {}

    def load_model(self, **_: Any) -> None:
        library: Any = importlib.import_module("transformers")
        self.layers = library.AutoModelForCausalLM.from_pretrained(self.vllm_config.model_config.model).eval()

    def get_kv_cache_spec(self) -> dict[str, Any]:
        # Kept by number alone: nothing is ever written there.
        spec = _CACHE.FullAttentionSpec(block_size=16, num_kv_heads=1, head_size=16, dtype=self.torch.bfloat16)
        return {"layer": spec}

    def get_supported_kv_cache_layouts(self) -> list[str]:
        return ["NHD"]

    def determine_available_memory(self) -> int:
        return 1 << 28

    def initialize_from_config(self, _: Any) -> None:
        pass

    def compile_or_warm_up_model(self) -> Any:
        return _BASE.CompilationTimes(0.0, 0.0)

    def get_supported_tasks(self) -> tuple[str, ...]:
        return ("generate",)

    def sample_tokens(self, _: Any) -> None:
        return None

    def shutdown(self) -> None:
        pass

    def execute_model(self, work: Any) -> Any:
        """Return the next token of each request whose tokens are all read, and prices where they are asked for."""
        for request in work.finished_req_ids:
            self.known.pop(request, None)
        at = dict(zip(work.scheduled_cached_reqs.req_ids, work.scheduled_cached_reqs.num_computed_tokens, strict=True))
        for new in work.scheduled_new_reqs:
            self.known[new.req_id] = ([*new.prompt_token_ids], len(new.prompt_token_ids), new.sampling_params)
            at[new.req_id] = new.num_computed_tokens
        made: list[list[int]] = []
        prices: dict[str, Any] = {}
        for request, count in work.num_scheduled_tokens.items():
            ids, prompt, how = self.known[request]
            if at[request] + count < len(ids):
                made.append([])
                continue
            with self.torch.inference_mode():
                logs = self.layers(self.torch.tensor([ids])).logits[0].double().log_softmax(-1)
            if how.prompt_logprobs is not None and len(ids) == prompt:
                prices[request] = self._prices(logs[:-1], ids[1:])
            ids.append(int(logs[-1].argmax()))
            made.append(ids[-1:])
        names = list(work.num_scheduled_tokens)
        return _OUTPUTS.ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: number for number, name in enumerate(names)},
            sampled_token_ids=made,
            prompt_logprobs_dict=prices,
        )

    def _prices(self, logs: Any, ids: list[int]) -> Any:
        wanted = self.torch.tensor(ids)[:, None]
        ranks = self.torch.ones(len(ids), dtype=self.torch.int32)
        return _OUTPUTS.LogprobsTensors(wanted, logs.gather(1, wanted).float(), ranks)


Worker = type("Worker", (_Computing, _BASE.WorkerBase), {})

"""Settings of `vllm`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxbench.harness.generators.hf.settings import LocalModel

CURE = "pip install -e '.[vllm]' on a machine with a GPU"


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

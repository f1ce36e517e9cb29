"""`vllm`: a model whose weights are on this machine, run on its GPUs by vLLM in this process (the extra ``vllm``)."""

from __future__ import annotations

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.hf.settings import AUTO, checked, is_chat
from ctxbench.harness.generators.registry import generator
from ctxbench.harness.generators.vllm.answering import VLLM
from ctxbench.harness.generators.vllm.settings import CURE, VLLMSettings


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
    return VLLM(
        VLLMSettings(
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
    )

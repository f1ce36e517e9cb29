"""`hf`: a model whose weights are on this machine, run by transformers and torch (the extra ``hf``)."""

from __future__ import annotations

import re

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand
from ctxbench.harness.generators.hf.generator import HF
from ctxbench.harness.generators.hf.settings import AUTO, CURE, HFSettings, checked, is_chat
from ctxbench.harness.generators.registry import generator

_DEVICE = re.compile(r"auto|cpu|cuda(?::\d+)?")


@generator("hf", machine=("device",), shorthand=Shorthand("MODEL", r"(?P<model>.+)"))
def hf(
    *,
    model: str,
    revision: str = "",
    device: str = AUTO,
    dtype: str = AUTO,
    batch: int = 8,
    window: int = 0,
    chat: str = AUTO,
) -> HF:
    """Run a model's weights by transformers; short: hf:MODEL.

    Args:
        model: a folder with the model, or its name on the hub: then from the hub's cache on this machine, or fetched.
        revision: of a hub's model: branch, tag or commit.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``: a GPU if there is one.
        dtype: ``float32``, ``bfloat16``, ``float16``, or ``auto``: as the weights are stored.
        batch: answers made at once.
        window: tokens of prompt and answer; 0: as the model's configuration says.
        chat: whether the model follows instructions and is asked by its chat template: ``on``, ``off``, or ``auto``:
            if its name says so (``…-Instruct``, ``…-chat``).
    """
    checked("hf", model=model, dtype=dtype, batch=batch, window=window, chat=chat)
    if not _DEVICE.fullmatch(device):
        raise InputFault(f"device={device} does not fit", where="hf", cure="give cpu, cuda, cuda:1 or auto")
    weights.need(("torch", "transformers"), where="hf", cure=CURE)
    return HF(
        HFSettings(
            model=model,
            revision=revision,
            device=device,
            dtype=dtype,
            batch=batch,
            window=window,
            chat=is_chat(chat, model),
        )
    )

"""Settings of `hf` and of every model on this machine, checked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import ClassVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.retrieval.encoders.recipes import CURE
from ctxbench.harness.generators.openai.settings import follows_instructions

__all__ = ["AUTO", "CURE", "DTYPES", "HFSettings", "LocalModel", "checked", "is_chat"]

AUTO = "auto"
DTYPES = ("float32", "bfloat16", "float16", AUTO)
_CACHED = "models--"
"""The beginning of a model's folder name in a hub's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model whose weights are on this machine, and how it is asked."""

    by: ClassVar[str] = "hf"
    """The generator that runs it, for messages."""
    model: str
    """A folder, or a name on the hub."""
    revision: str
    dtype: str
    batch: int
    """Requests that are computed at once."""
    window: int
    """Tokens of prompt and answer; 0: as the model's configuration says."""
    chat: bool
    """Whether it is asked by its chat template."""

    @property
    def where(self) -> str:
        """The model, for messages."""
        return f"{self.by} {self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HFSettings(LocalModel):
    """One model, and how it is run."""

    device: str


def checked(by: str, *, model: str, dtype: str, batch: int, window: int, chat: str) -> None:
    """Check a spec's parameters of a model.

    Raises:
        InputFault: naming the first that does not fit.
    """
    if not model.strip():
        raise InputFault("the model has no name", where=by, cure="give a folder, or a name on the hub")
    for name, value, choices in (("dtype", dtype, DTYPES), ("chat", chat, ("on", "off", AUTO))):
        if value not in choices:
            raise InputFault(f"{name}={value} does not fit", where=by, cure=f"give {', '.join(choices)}")
    for name, number, least in (("batch", batch, 1), ("window", window, 0)):
        if number < least:
            raise InputFault(f"{name}={number} does not fit", where=by, cure=f"give {least} or more")


def is_chat(chat: str, model: str) -> bool:
    """Return whether a model is asked by its chat template; `AUTO` goes by its name.

    A template alone says nothing: models that only continue text are published with one too.
    """
    if chat != AUTO:
        return chat == "on"
    path = PurePath(model)
    cached = (part.replace("--", "/") for part in path.parts if part.startswith(_CACHED))
    return any(follows_instructions(name) for name in (path.name, *cached))

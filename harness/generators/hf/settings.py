"""What a spec of `hf` says, checked. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from bench.retrieval.encoders.recipes import CURE
from harness.generators.openai.settings import follows_instructions

__all__ = ["AUTO", "CURE", "DTYPES", "Settings", "is_chat"]

AUTO = "auto"
DTYPES = ("float32", "bfloat16", "float16", AUTO)
_CACHED = "models--"
"""How a hub's cache names a model's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One model, and how it is run."""

    model: str
    """A folder, or a name on the hub."""
    revision: str
    device: str
    dtype: str
    batch: int
    """Rows that are computed at once."""
    window: int
    """Tokens of prompt and answer; 0: as the model's configuration says."""
    chat: bool
    """Whether it is asked by its chat template."""

    @property
    def where(self) -> str:
        """The model, for messages."""
        return f"hf {self.model}"


def is_chat(chat: str, model: str) -> bool:
    """Return whether a model is asked by its chat template; `AUTO` goes by its name.

    A template alone says nothing: models that only continue text are published with one too.
    """
    if chat != AUTO:
        return chat == "on"
    path = PurePath(model)
    cached = (part.replace("--", "/") for part in path.parts if part.startswith(_CACHED))
    return any(follows_instructions(name) for name in (path.name, *cached))

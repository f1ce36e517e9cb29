"""Encoders, by name: functions from texts to vectors of norm 1.

vectors = get("minilm").encode(["def load(path): …", "read a file"])      # shape (2, 384)
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from ctxbench.bench.registry import Factories
from ctxbench.bench.retrieval.encoders import weights
from ctxbench.bench.spec import Shorthand, Spec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


class Encoder(Protocol):
    """A function from texts to vectors. Other texts in the batch may change a vector by about 1e-7."""

    @property
    def version(self) -> str:
        """Text that changes with everything that determines the vectors, except the spec. Part of cache keys."""
        ...

    @property
    def width(self) -> int:
        """Number of components of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector of norm 1 per text: shape (texts, width). Long texts are truncated at the end.

        Raises:
            MachineFault: if the computation failed.
        """
        ...


Factory = Callable[..., Encoder]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench doctor"

_REGISTRY: Factories[Encoder] = Factories("encoder", group="ctxbench.encoders", command=COMMAND)
_ENCODERS: dict[str, tuple[object, Encoder]] = {}
"""Canonical spec -> the state of the encoder's files at loading, and the encoder."""
_LOCK = threading.RLock()
"""Lock for loading encoders. Also held while plugins are imported, so that no encoder is registered twice."""


def encoder(name: str, *, shorthand: Shorthand | None = None) -> Callable[[F], F]:
    """Return a decorator that registers a factory as the encoder `name`.

    Args:
        shorthand: short spelling, ``name:TEXT``.

    Raises:
        InputFault: if the name is taken, a parameter is not keyword-only, or `shorthand` names a missing parameter.
    """
    return lambda factory: _REGISTRY.register(name, factory, shorthand=shorthand)


names = _REGISTRY.names
summary = _REGISTRY.summary


def read(spec: str) -> Spec:
    """Parse an encoder's spec or its short spelling.

    Raises:
        InputFault: if the spec is invalid.
    """
    with _LOCK:
        return _REGISTRY.read(spec)


def canonical(spec: str) -> str:
    """Return the spec under which an encoder's vectors are stored: sorted keys, without defaults.

    Raises:
        InputFault: if the spec is invalid, the name unknown, or a parameter wrong.
    """
    with _LOCK:
        return _REGISTRY.canonical(spec)


def get(spec: str) -> Encoder:
    """Return an encoder by its spec. Threads share an encoder as long as its files do not change.

    Raises:
        InputFault: if the spec cannot be parsed, the name is unknown, a parameter does not fit, or a package or the
            weights are missing. Nothing is downloaded.
    """
    with _LOCK:
        key = _REGISTRY.canonical(spec)
        if key not in _ENCODERS or _ENCODERS[key][0] != _state(_ENCODERS[key][1]):
            instance = _REGISTRY.make(key)
            _ENCODERS[key] = _state(instance), instance
        return _ENCODERS[key][1]


def _state(encoder: Encoder) -> object:
    folder = getattr(encoder, "folder", None)
    with contextlib.suppress(OSError):
        return weights.state(Path(folder)) if isinstance(folder, str | Path) else None
    return None


__all__ = ["COMMAND", "canonical", "encoder", "get", "names", "read", "summary"]

"""Encoders: texts to vectors of length 1, by name.

    encoder = get("minilm")
    vectors = encoder.encode(["def load(path): …", "read a file"])      # shape (2, 384)

Strategies name an encoder by its spec (``encoder=unixcoder(path=/models/unixcoder)``). `Vectors` in
`bench.retrieval.encoders.vectors` keeps what was encoded once.

An encoder is registered by a factory whose keyword-only parameters are what a spec may give: ``minilm(device=cpu)``. A
factory is cheap: it checks its parameters, that its packages are installed and that its weights are on this machine; it
reads them when the first text comes.
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
    """Turns texts into vectors; equal texts give equal vectors, whatever stands beside them in a batch."""

    @property
    def version(self) -> str:
        """Everything that decides its vectors besides its spec: a digest of the weights. Part of every cache key."""
        ...

    @property
    def width(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector of length 1 a text, in order: shape (texts, width); too long texts are cut at the end.

        Raises:
            MachineFault: if it could not be computed.
        """
        ...


Factory = Callable[..., Encoder]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench doctor"

_REGISTRY: Factories[Encoder] = Factories("encoder", group="ctxbench.encoders", command=COMMAND)
_ENCODERS: dict[str, tuple[object, Encoder]] = {}
"""Canonical spec -> the state of its files then, and the encoder."""
_LOCK = threading.RLock()
"""Imports of plug-ins come under it too: two threads must not register one twice."""


def encoder(name: str, *, shorthand: Shorthand | None = None) -> Callable[[F], F]:
    """Register a factory function as the encoder `name`.

    Args:
        name: how specs call it.
        shorthand: a short spelling, ``name:TEXT``.

    Raises:
        InputFault: if the name is taken, or the factory has parameters that are not keyword-only.
    """
    return lambda factory: _REGISTRY.register(name, factory, shorthand=shorthand)


names = _REGISTRY.names
summary = _REGISTRY.summary


def read(spec: str) -> Spec:
    """Return an encoder's spec, a short spelling written out.

    Raises:
        InputFault: if the spec cannot be read.
    """
    with _LOCK:
        return _REGISTRY.read(spec)


def canonical(spec: str) -> str:
    """Return the spelling under which an encoder's vectors are kept: keys sorted, defaults left out.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter does not fit.
    """
    with _LOCK:
        return _REGISTRY.canonical(spec)


def get(spec: str) -> Encoder:
    """Return the encoder that a spec spells; the same one for the same spec, from any thread, while its files stay.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, a parameter does not fit, or a package or
            the weights are missing. Nothing is downloaded unless the spec says so.
    """
    with _LOCK:
        key = _REGISTRY.canonical(spec)
        if key not in _ENCODERS or _ENCODERS[key][0] != _state(_ENCODERS[key][1]):
            instance = _REGISTRY.make(key)
            _ENCODERS[key] = _state(instance), instance
        return _ENCODERS[key][1]


def _state(encoder: Encoder) -> object:
    """Return what changes with the files of an encoder that says by `folder` where it has them."""
    folder = getattr(encoder, "folder", None)
    with contextlib.suppress(OSError):
        return weights.state(Path(folder)) if isinstance(folder, str | Path) else None
    return None


__all__ = ["COMMAND", "canonical", "encoder", "get", "names", "read", "summary"]

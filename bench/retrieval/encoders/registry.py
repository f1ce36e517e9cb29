"""Encoders by name: the decorator, the entry points, and one instance a spec.

An encoder is registered by a factory whose keyword-only parameters are what a spec may give:
``minilm(backend=numpy)``. A factory is cheap: it checks its parameters, that its packages are
installed and that its weights are on this machine; it reads them when the first text comes.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import TypeVar

from ctxbench.bench import spec as specs
from ctxbench.bench.factories import arguments, check_signature
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.retrieval.types import Encoder
from ctxbench.bench.spec import Spec

Factory = Callable[..., Encoder]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench doctor"

_REGISTRY: Registry[Factory] = Registry("encoder", group="ctxbench.encoders", command=COMMAND)
_ENCODERS: dict[str, Encoder] = {}
_LOCK = threading.RLock()


def encoder(name: str) -> Callable[[F], F]:
    """Register a factory function as the encoder `name`.

    Raises:
        InputFault: if the name is taken, or the factory has parameters that are not keyword-only.
    """

    def register(factory: F) -> F:
        check_signature(factory, f"encoder {name}")
        _REGISTRY.add(name, factory, origin=origin_of(factory))
        return factory

    return register


def names() -> tuple[str, ...]:
    """Return the names of all installed encoders, sorted; imports none."""
    return _REGISTRY.names()


def summary(name: str) -> str:
    """Return the first line of what an encoder says of itself.

    Raises:
        InputFault: if there is none of that name, or its plugin cannot be imported.
    """
    return (inspect.getdoc(_REGISTRY.get(name)) or "").partition("\n")[0]


def canonical(spec: str) -> str:
    """Return the spelling under which an encoder's vectors are kept: keys sorted, defaults left out.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter does not fit.
    """
    parsed = specs.parse(spec)
    with _LOCK:
        return str(Spec(parsed.name, arguments(_REGISTRY.get(parsed.name), parsed)))


def get(spec: str) -> Encoder:
    """Return the encoder that a spec spells; the same one for the same spec, from any thread.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, a parameter does not fit, or a package or
            the weights are missing. Nothing is downloaded unless the spec says so.
    """
    # Imports of plugins come under the lock too: two threads must not register one twice.
    with _LOCK:
        parsed = specs.parse(spec)
        factory = _REGISTRY.get(parsed.name)
        checked = arguments(factory, parsed)
        key = str(Spec(parsed.name, checked))
        if key not in _ENCODERS:
            _ENCODERS[key] = factory(**checked)
        return _ENCODERS[key]

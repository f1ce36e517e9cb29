"""Generators by name: the decorator, the entry points and the check of their parameters.

A generator is registered by a factory function whose keyword-only parameters are what a spec may
give: ``openai(model=…, url=…)``. A factory is cheap: it checks its parameters and says its version;
weights, processes and connections wait for the first request, so that a finished run starts nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bench import spec as specs
from bench.factories import arguments, check_signature, spelled
from bench.registry import Registry, origin_of
from bench.spec import Spec
from harness.generators.base import Generator

Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
_REGISTRY: Registry[Factory] = Registry("generator", group="ctxbench.generators", command=COMMAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What there is to know of a registered generator without making one."""

    name: str
    summary: str
    """The first line of its docstring."""
    parameters: tuple[tuple[str, str], ...]
    """Name and default as a spec spells it; an empty default means that the parameter must be given."""


def generator(name: str) -> Callable[[F], F]:
    """Register a factory function as the generator `name`.

    Raises:
        InputFault: if the name is taken, or the factory has parameters that are not keyword-only.
    """

    def register(factory: F) -> F:
        check_signature(factory, f"generator {name}")
        _REGISTRY.add(name, factory, origin=origin_of(factory))
        return factory

    return register


def names() -> tuple[str, ...]:
    """Return the names of all installed generators, sorted; imports none."""
    return _REGISTRY.names()


def card(name: str) -> Card:
    """Describe a generator.

    Raises:
        InputFault: if there is none of that name, or its plugin cannot be imported.
    """
    factory = _REGISTRY.get(name)
    parameters = inspect.signature(factory).parameters.values()
    return Card(
        name=name,
        summary=(inspect.getdoc(factory) or "").partition("\n")[0],
        parameters=tuple((p.name, "" if p.default is p.empty else spelled(p.default)) for p in parameters),
    )


def canonical(spec: str) -> str:
    """Return the spelling under which a generator's results are kept: keys sorted, defaults left out.

    Raises:
        InputFault: as `resolve`.
    """
    parsed = specs.parse(spec)
    return str(Spec(parsed.name, arguments(_REGISTRY.get(parsed.name), parsed, command=COMMAND)))


def resolve(spec: str) -> Generator:
    """Make the generator that a spec spells.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter is unknown, missing
            or of the wrong type.
    """
    parsed = specs.parse(spec)
    factory = _REGISTRY.get(parsed.name)
    return factory(**arguments(factory, parsed, command=COMMAND))

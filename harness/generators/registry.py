"""Generators by name: the decorator, the entry points and the check of their parameters.

A generator is registered by a factory function whose keyword-only parameters a spec may set:
``openai(model=…, url=…)``. A factory is cheap: it checks its parameters and knows its version; weights, processes and
connections wait for the first request, so that a finished run starts nothing. Parameters that only decide how fast
answers come (``concurrency``, ``workers``) are declared as such and are no part of the canonical spelling: a run that
goes on with fewer workers is the same run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ctxbench.bench import spec as specs
from ctxbench.bench.errors import InputFault
from ctxbench.bench.factories import arguments, check_signature, spelled
from ctxbench.bench.registry import Registry, origin_of
from ctxbench.bench.spec import Spec
from ctxbench.harness.generators.base import Generator

Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
COMMAND = "ctxbench generator list"
_REGISTRY: Registry[Factory] = Registry("generator", group="ctxbench.generators", command=COMMAND)
_MACHINE: dict[str, frozenset[str]] = {}
"""Generator -> the parameters that do not affect answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorCard:
    """The description of a registered generator, without making one."""

    name: str
    summary: str
    """The first line of its docstring."""
    parameters: tuple[tuple[str, str], ...]
    """Name and default as a spec spells it; an empty default means that the parameter must be given."""


def generator(name: str, *, machine: Sequence[str] = ()) -> Callable[[F], F]:
    """Register a factory function as the generator `name`.

    Args:
        name: how specs call it.
        machine: the parameters that do not affect the content of answers.

    Raises:
        InputFault: if the name is taken, the factory has parameters that are not keyword-only, or it lacks one of
            `machine`.
    """

    def register(factory: F) -> F:
        where = f"generator {name}"
        check_signature(factory, where)
        for parameter in set(machine) - set(inspect.signature(factory).parameters):
            raise InputFault(f"the factory has no parameter {parameter!r}", where=where, cure="mend machine=")
        _REGISTRY.add(name, factory, origin=origin_of(factory))
        _MACHINE[name] = frozenset(machine)
        return factory

    return register


def names() -> tuple[str, ...]:
    """Return the names of all installed generators, sorted; imports none."""
    return _REGISTRY.names()


def card(name: str) -> GeneratorCard:
    """Describe a generator.

    Raises:
        InputFault: if there is none of that name, or its plugin cannot be imported.
    """
    factory = _REGISTRY.get(name)
    parameters = inspect.signature(factory).parameters.values()
    return GeneratorCard(
        name=name,
        summary=(inspect.getdoc(factory) or "").partition("\n")[0],
        parameters=tuple((p.name, "" if p.default is p.empty else spelled(p.default)) for p in parameters),
    )


def canonical(spec: str) -> str:
    """Return the spelling under which a generator's results are kept: keys sorted, defaults left out.

    Parameters that do not affect answers are left out, too, so `resolve` takes the user's own spelling.

    Raises:
        InputFault: as `resolve`.
    """
    parsed = specs.parse(spec)
    parameters = arguments(_REGISTRY.get(parsed.name), parsed, command=COMMAND)
    machine = _MACHINE.get(parsed.name, frozenset())
    return str(Spec(parsed.name, {key: value for key, value in parameters.items() if key not in machine}))


def resolve(spec: str) -> Generator:
    """Make the generator that a spec spells.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter is unknown, missing
            or of the wrong type.
    """
    parsed = specs.parse(spec)
    factory = _REGISTRY.get(parsed.name)
    model: object = factory(**arguments(factory, parsed, command=COMMAND))
    if not isinstance(model, Generator):
        what = f"the factory returned {type(model).__name__}, which is no Generator"
        cure = "write class …(Generator), imported from ctxbench.harness.generators"
        raise InputFault(what, where=f"generator {parsed.name}", cure=cure)
    return model

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
from bench.errors import InputFault
from bench.registry import Registry, origin_of
from bench.spec import Spec, Value
from harness.generators.base import Generator

Factory = Callable[..., Generator]
F = TypeVar("F", bound=Factory)
_REGISTRY: Registry[Factory] = Registry("generator", group="ctxbench.generators", command="ctxbench generator list")
_TYPES: dict[object, tuple[type, str]] = {
    "bool": (bool, "true or false"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "str": (str, "text"),
}


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
        for parameter in inspect.signature(factory).parameters.values():
            if parameter.kind is not parameter.KEYWORD_ONLY:
                raise InputFault(
                    f"the parameter {parameter.name!r} is not keyword-only",
                    where=f"generator {name}",
                    cure="write the factory as (*, name=default, …)",
                )
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
        parameters=tuple((p.name, "" if p.default is p.empty else _spelled(p.default)) for p in parameters),
    )


def _spelled(value: Value) -> str:
    return str(Spec("x", {"k": value}))[4:-1]


def canonical(spec: str) -> str:
    """Return the spelling under which a generator's results are kept: keys sorted, defaults left out.

    Raises:
        InputFault: as `resolve`.
    """
    parsed = specs.parse(spec)
    return str(Spec(parsed.name, _arguments(_REGISTRY.get(parsed.name), parsed)))


def resolve(spec: str) -> Generator:
    """Make the generator that a spec spells.

    Raises:
        InputFault: if the spec cannot be read, the name is unknown, or a parameter is unknown, missing
            or of the wrong type.
    """
    parsed = specs.parse(spec)
    factory = _REGISTRY.get(parsed.name)
    return factory(**_arguments(factory, parsed))


def _arguments(factory: Factory, spec: Spec) -> dict[str, Value]:
    """Return the arguments that differ from the defaults, checked."""
    parameters = inspect.signature(factory).parameters
    known = f"it has {', '.join(parameters) or 'none'} (see `ctxbench generator list`)"
    given: dict[str, Value] = {}
    for key, value in spec.arguments.items():
        if key not in parameters:
            raise InputFault(f"{spec.name} has no parameter {key!r}", cure=known)
        checked = _checked(parameters[key], value, spec.name)
        if checked != parameters[key].default:
            given[key] = checked
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in given:
            raise InputFault(f"{spec.name} needs the parameter {key!r}", cure=f"write {spec.name}({key}=…)")
    return given


def _checked(parameter: inspect.Parameter, value: Value, where: str) -> Value:
    """Check a value against a plain annotation; other annotations are the factory's own business."""
    annotation = parameter.annotation
    wanted = _TYPES.get(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None))
    if wanted is None:
        return value
    kind, expects = wanted
    if kind is float and type(value) is int:
        return float(value)
    if kind is str and not isinstance(value, str | tuple | None):
        # `revision=1234` is meant as the text it looks like.
        return _spelled(value)
    if type(value) is not kind:
        raise InputFault(f"{parameter.name}={_spelled(value)} does not fit", where=where, cure=f"give {expects}")
    return value

"""Factories of a registry: keyword-only parameters that a spec may give, checked before anything is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ctxbench.bench import secrets
from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import Spec, Value

_TYPES: dict[object, tuple[type, str]] = {
    "bool": (bool, "on or off"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "str": (str, "text"),
}
_SWITCH = {"on": True, "off": False}


def check_signature(factory: Callable[..., Any], where: str) -> None:
    """See that all parameters of a factory are keyword-only.

    Raises:
        InputFault: if one is not.
    """
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            raise InputFault(
                f"the parameter {parameter.name!r} is not keyword-only",
                where=where,
                cure="write the factory as (*, name=default, …)",
            )


def arguments(factory: Callable[..., Any], spec: Spec, *, command: str = "") -> dict[str, Value]:
    """Return the arguments of a spec that differ from a factory's defaults, checked.

    Args:
        factory: the factory; annotations other than bool, int, float and str are its own business.
        spec: what the user wrote.
        command: the command that lists parameters, shown as a cure.

    Raises:
        InputFault: if a parameter is unknown, missing, or of the wrong type.
    """
    parameters = inspect.signature(factory).parameters
    see = f" (see `{command}`)" if command else ""
    changed: dict[str, Value] = {}
    for key, value in spec.arguments.items():
        if key not in parameters:
            raise InputFault(
                f"{spec.name} has no parameter {key!r}", cure=f"it has {', '.join(parameters) or 'none'}{see}"
            )
        if secrets.shaped(spelled(value)):
            cure = "put it into an environment variable: what a spec says is stored and shown"
            raise InputFault(f"{key} holds what looks like a key or a password", where=spec.name, cure=cure)
        checked = _checked(parameters[key], value, spec.name)
        if checked != parameters[key].default:
            changed[key] = checked
    for key, parameter in parameters.items():
        if parameter.default is parameter.empty and key not in changed:
            raise InputFault(f"{spec.name} needs the parameter {key!r}", cure=f"write {spec.name}({key}=…)")
    return changed


def _checked(parameter: inspect.Parameter, value: Value, where: str) -> Value:
    annotation = parameter.annotation
    expected = _TYPES.get(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", None))
    if expected is None:
        return value
    kind, expects = expected
    if kind is bool and isinstance(value, str):
        value = _SWITCH.get(value.lower(), value)
    if kind is float and type(value) is int:
        return float(value)
    if kind is str and not isinstance(value, str | tuple | None):
        # `revision=1234` is meant as the text it looks like.
        return spelled(value)
    if type(value) is not kind:
        raise InputFault(f"{parameter.name}={spelled(value)} does not fit", where=where, cure=f"give {expects}")
    return value


def spelled(value: Value) -> str:
    """Return a value as a spec spells it."""
    return str(Spec("x", {"k": value}))[4:-1]

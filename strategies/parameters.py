"""The parameters of a strategy: its keyword-only arguments, checked before anything runs."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import POSITIONAL, Spec, Value

_SCALARS: tuple[type, ...] = (bool, int, float, str)
_SERVICES = ["generate", "execute"]
_SWITCH = {"on": True, "off": False, "yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A bound for a number: ``iterations: Annotated[int, AtLeast(0)] = 2``."""

    least: float


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Marks a parameter as the spec of another strategy; write `Inner`."""


Inner = Annotated[str, Wrapped()]
"""A strategy's spec: ``inner: Inner = "lc.infile"`` makes a strategy that wraps another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyParameter:
    """One keyword of a strategy."""

    name: str
    kind: type
    """bool, int, float or str."""
    default: Value
    choices: tuple[str, ...] = ()
    """The words allowed, for a ``Literal``; empty if any."""
    least: float | None = None
    wraps: bool = False
    """Whether the value is the spec of a strategy."""

    @property
    def expects(self) -> str:
        """The values that it takes, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if self.wraps:
            return "a strategy"
        noun = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[self.kind]
        return noun if self.least is None else f"{noun}, at least {self.least:g}"

    def read(self, value: Value, where: str) -> Value:
        """Return the value in the parameter's type.

        Raises:
            InputFault: if it is of another type, or out of range.
        """
        if self.kind is bool and isinstance(value, str):
            value = _SWITCH.get(value.lower(), value)
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        fits = type(value) is self.kind and (not self.choices or value in self.choices)
        if fits and self.least is not None and isinstance(value, int | float):
            fits = value >= self.least
        if not fits:
            raise InputFault(f"{self.name}={value!r} does not fit", where=where, cure=f"give {self.expects}")
        return value


def read_signature(function: Callable[..., object], name: str) -> tuple[bool, bool, tuple[StrategyParameter, ...]]:
    """Return whether a strategy asks the model and the sandbox, and its parameters in the order written.

    Raises:
        InputFault: if the function is not ``(query, repo, *, …)``, ``(query, repo, generate, *, …)`` or
            ``(query, repo, generate, execute, *, …)``, or a parameter lacks a default or a type that a spec can spell.
    """
    where = f"strategy {name}"
    arguments = list(inspect.signature(function).parameters.values())
    fixed = [a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    named = [a for a in arguments if a.kind is a.KEYWORD_ONLY]
    services = fixed[2:]
    if len(fixed) + len(named) != len(arguments) or len(fixed) < 2 or services != _SERVICES[: len(services)]:
        raise InputFault(
            f"it takes ({', '.join(str(a) for a in arguments)})",
            where=where,
            cure="write it as (query, repo, *, …) or (query, repo, generate, *, …), parameters after the star",
        )
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise InputFault(
            f"its annotations cannot be read ({error})",
            where=where,
            cure="import the name at the top of the module, not under TYPE_CHECKING",
        ) from None
    parameters = tuple(_parameter(a, hints.get(a.name), where) for a in named)
    return len(services) > 0, len(services) > 1, parameters


def _parameter(argument: inspect.Parameter, hint: Any, where: str) -> StrategyParameter:
    least, wraps = None, False
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
        wraps = any(isinstance(note, Wrapped) for note in notes)
        least = next((note.least for note in notes if isinstance(note, AtLeast)), None)
    choices: tuple[str, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices, hint = typing.get_args(hint), str
    if hint not in _SCALARS or not all(isinstance(choice, str) for choice in choices):
        raise InputFault(
            f"the parameter {argument.name!r} is not annotated bool, int, float, str or Literal of words",
            where=where,
            cure=f"write for example {argument.name}: int = 10",
        )
    if argument.default is argument.empty:
        raise InputFault(f"the parameter {argument.name!r} has no default", where=where, cure="give it one")
    parameter = StrategyParameter(
        name=argument.name, kind=hint, default=None, choices=choices, least=least, wraps=wraps
    )
    return dataclasses.replace(parameter, default=parameter.read(argument.default, where))


def bind(parameters: tuple[StrategyParameter, ...], spec: Spec) -> Mapping[str, Value]:
    """Return the arguments of a spec that differ from the defaults, checked; one without a key is the first's.

    Raises:
        InputFault: if a parameter is unknown or given twice, or a value does not fit.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    arguments: dict[str, Value] = {}
    for spelled, value in spec.arguments.items():
        key = next(iter(by_name), "") if spelled == POSITIONAL else spelled
        if spelled == POSITIONAL and key in spec.arguments:
            raise InputFault(f"{spec.name} is given {key!r} twice", cure="keep one of them")
        if key not in by_name:
            raise InputFault(
                f"{spec.name} has no parameter {key!r}" if key else f"{spec.name} takes nothing",
                cure=f"it has {', '.join(by_name) or 'none'} (see `ctxbench strategy show {spec.name}`)",
            )
        read = by_name[key].read(value, spec.name)
        if read != by_name[key].default:
            arguments[key] = read
    return arguments

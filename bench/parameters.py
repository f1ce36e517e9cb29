"""Parameters that specs may set: a function's keyword-only arguments, parsed and checked before a run."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from ctxbench.bench import secrets
from ctxbench.bench.dates import last_day
from ctxbench.bench.errors import InputFault
from ctxbench.bench.spec import POSITIONAL, Spec, Value, spelled

_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_SWITCH = {"on": True, "off": False, "yes": True, "no": False}
_NONE = type(None)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number's lower bound: ``iterations: Annotated[int, AtLeast(0)] = 2``."""

    least: float


@dataclass(frozen=True, slots=True)
class AtMost:
    """A number's upper bound: ``width: Annotated[int, AtLeast(16), AtMost(4096)] = 512``."""

    most: float


@dataclass(frozen=True, slots=True)
class Purpose:
    """A parameter's special meaning. `name` is the field of its `Parameter` that becomes true."""

    name: Literal["wraps", "unmasks", "asks_engine", "names_encoder"]


Inner = Annotated[str, Purpose("wraps")]
"""Spec of a wrapped strategy: ``inner: Inner = "lc.infile"``."""
Unmasked = Annotated[bool, Purpose("unmasks")]
"""Whether a strategy sees import lines that samples mask: ``unmasked: Unmasked = False``."""
EngineSpec = Annotated[str, Purpose("asks_engine")]
"""Spec of a context engine, for ``repo.engine(engine)``: ``engine: EngineSpec = "ripgrep"``."""
EncoderSpec = Annotated[str, Purpose("names_encoder")]
"""Spec of an encoder or lexical ranker, checked before a run: ``encoder: EncoderSpec = "minilm"``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A keyword argument that specs may set."""

    name: str
    kind: type
    """Type of the value: bool, int, float or str; object if the function itself checks the value."""
    default: Value = None
    required: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    optional: bool = False
    wraps: bool = False
    unmasks: bool = False
    """Whether a true value lets a strategy see the unmasked target file."""
    asks_engine: bool = False
    names_encoder: bool = False
    is_day: bool = False
    """Whether the value is a day, or a month, which stands for its last day. Stored as ``YYYY-MM-DD``."""

    @property
    def expects(self) -> str:
        """Description of the accepted values."""
        if self.choices:
            noun = " or ".join(self.choices)
        elif self.is_day:
            noun = "a day such as 2024-06-01, or a month such as 2024-06"
        else:
            specs = "a strategy" if self.wraps else "an engine" if self.asks_engine else ""
            noun = specs or _NOUNS.get(self.kind, "another value")
        if self.least is not None:
            noun += f" from {self.least:g} to {self.most:g}" if self.most is not None else f", at least {self.least:g}"
        elif self.most is not None:
            noun += f", at most {self.most:g}"
        return f"{noun}, or none" if self.optional else noun

    def read(self, value: Value, where: str) -> Value:
        """Convert a value to the parameter's type.

        Raises:
            InputFault: if the value cannot be converted, is not among `choices`, or is out of range.
        """
        if self.kind is object or (value is None and self.optional):
            return value
        if self.kind is bool and isinstance(value, str):
            value = _SWITCH.get(value.lower(), value)
        elif self.kind is float and type(value) is int:
            value = float(value)
        elif self.kind is str and isinstance(value, bool | int | float) and not self.wraps:
            value = spelled(value)
        if self.is_day:
            with contextlib.suppress(ValueError):
                return last_day(str(value)).isoformat()
        fits = type(value) is self.kind and not self.is_day and (not self.choices or value in self.choices)
        if fits and isinstance(value, int | float):
            fits = (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
        if not fits:
            raise InputFault(f"{self.name}={spelled(value)} is invalid", where=where, cure=f"give {self.expects}")
        return value


def parameters_of(function: Callable[..., object], where: str, *, strict: bool = False) -> tuple[Parameter, ...]:
    """Return a function's keyword-only parameters, in order.

    Args:
        where: registered name, for messages.
        strict: require a default and a type that specs can express. Otherwise a parameter without default is required,
            and the function checks values of other types itself.

    Raises:
        InputFault: if `strict` and a parameter has no default or an unsuitable annotation or default.
    """
    arguments = inspect.signature(function).parameters.values()
    named = [argument for argument in arguments if argument.kind is argument.KEYWORD_ONLY]
    return tuple(_parameter(function, argument, where, strict=strict) for argument in named)


def check_keyword_only(factory: Callable[..., object], where: str) -> None:
    """Check that all parameters of a factory are keyword-only.

    Raises:
        InputFault: if a parameter is not keyword-only.
    """
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            raise InputFault(
                f"the parameter {parameter.name!r} is not keyword-only",
                where=where,
                cure="write the factory as (*, name=default, …)",
            )


def bind(parameters: Sequence[Parameter], spec: Spec, *, command: str = "") -> dict[str, Value]:
    """Return a spec's checked arguments, except default values. An argument without a key sets the first parameter.

    Args:
        command: command that lists the parameters, for error messages.

    Raises:
        InputFault: if a parameter is unknown, missing or set twice, or a value is invalid or looks like a secret.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    see = f" (see `{command}`)" if command else ""
    arguments: dict[str, Value] = {}
    for key, value in spec.arguments.items():
        name = next(iter(by_name), "") if key == POSITIONAL else key
        if name != key and name in spec.arguments:
            raise InputFault(f"{spec.name} sets {name!r} twice", cure="keep one of them")
        if name not in by_name:
            what = f"has no parameter {name!r}" if name else "takes no arguments"
            raise InputFault(f"{spec.name} {what}", cure=f"known parameters: {', '.join(by_name) or 'none'}{see}")
        if secrets.shaped(spelled(value)):
            cure = "put it into an environment variable, since specs are stored and displayed"
            raise InputFault(f"the value of {name} looks like a key or a password", where=spec.name, cure=cure)
        arguments[name] = by_name[name].read(value, spec.name)
    for name, parameter in by_name.items():
        if parameter.required and name not in arguments:
            raise InputFault(f"{spec.name} needs the parameter {name!r}", cure=f"write {spec.name}({name}=…)")
    return {
        name: value for name, value in arguments.items() if by_name[name].required or value != by_name[name].default
    }


def _parameter(function: Callable[..., object], argument: inspect.Parameter, where: str, *, strict: bool) -> Parameter:
    required = argument.default is argument.empty
    default = None if required else argument.default
    try:
        parameter = _typed(argument.name, _hint(function, argument))
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        if strict:
            cure = "import the name at the top of the module, not under TYPE_CHECKING"
            raise InputFault(f"the annotations cannot be read ({error})", where=where, cure=cure) from None
        parameter = None
    if not strict:
        parameter = parameter or Parameter(name=argument.name, kind=object)
        return replace(parameter, default=default, required=required)
    if parameter is None:
        raise InputFault(
            f"the parameter {argument.name!r} is not annotated bool, int, float, str or Literal of words",
            where=where,
            cure=f"write for example {argument.name}: int = 10",
        )
    if required:
        raise InputFault(f"the parameter {argument.name!r} has no default", where=where, cure="add a default")
    return replace(parameter, default=parameter.read(default, where))


def _hint(function: Callable[..., object], argument: inspect.Parameter) -> Any:
    """Return an argument's annotation. Other annotations are not evaluated, since they may fail."""
    while isinstance(function, functools.partial):
        function = function.func
    names = getattr(inspect.unwrap(function), "__globals__", {})
    holder = types.SimpleNamespace(__annotations__={argument.name: argument.annotation})
    return typing.get_type_hints(holder, names, include_extras=True)[argument.name]


def _typed(name: str, hint: Any) -> Parameter | None:
    notes: list[Any] = []
    if typing.get_origin(hint) is Annotated:
        hint, *notes = typing.get_args(hint)
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = [member for member in typing.get_args(hint) if member is not _NONE]
        optional = len(members) < len(typing.get_args(hint))
        hint = members[0] if len(members) == 1 else None
    choices: tuple[Any, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices, hint = typing.get_args(hint), str
    if hint not in _NOUNS or not all(isinstance(choice, str) for choice in choices):
        return None
    return Parameter(
        name=name,
        kind=hint,
        choices=choices,
        least=next((note.least for note in notes if isinstance(note, AtLeast)), None),
        most=next((note.most for note in notes if isinstance(note, AtMost)), None),
        optional=optional,
        **{note.name: True for note in notes if isinstance(note, Purpose)},
    )

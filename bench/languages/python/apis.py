"""Formats Python APIs as in the InferCom paper or, with ``quirks``, as in the paper's released code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from ctxbench.bench.languages.outline import Function, Type

SUMMARY_EXAMPLES: Sequence[tuple[str, str]] = (
    (
        "def seats_left(plan, taken, row=None):\n"
        "    free = [seat for seat in plan.seats if seat not in taken]\n"
        "    if row is not None:\n"
        "        free = [seat for seat in free if seat.row == row]\n"
        "    return len(free)",
        "Count the free seats of the plan, or of one row if it is given",
    ),
    (
        "def merge_stops(first, second):\n"
        "    stops = list(first)\n"
        "    for stop in second:\n"
        "        if stop not in stops:\n"
        "            stops.append(stop)\n"
        "    return stops",
        "Return the stops of both routes in order and without repeats",
    ),
)
REMARK = re.compile(
    r"(?P<remark>\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z))"
    r"|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|#(?P<comment>[^\n]*)",
    re.DOTALL,
)
_TYPE_PARAMETERS = re.compile(r"^(class\s+\w+)\s*\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*\]")
"""Matches a class's name and type parameters. The released code does not read type parameters."""
_BOUND = ("self", "cls")
_CLASS_LEVEL = ("@staticmethod", "@classmethod")
_INDENT = " " * 4


def takes(function: Function, *, quirks: bool) -> bool:
    """Return True, because every function gets an API entry."""
    return True


def text(function: Function) -> str:
    """Return a function's API entry. As in InferCom's release, a line of spaces precedes an undecorated method."""
    signature = f"def {function.name}({function.parameters_text})"
    if function.returns:
        signature += f" -> {function.returns}"
    if not function.types:
        return signature
    lines = [*function.decorators] or [""]
    return "\n".join([constructor_text(function.types), *(_INDENT + line for line in [*lines, signature])])


def constructor_text(types: Sequence[Type]) -> str:
    """Return the API entry of a class without a constructor."""
    return _TYPE_PARAMETERS.sub(r"\1", types[-1].header) + ":"


def constructor_name(types: Sequence[Type]) -> str:
    """Return the name of a class's default constructor."""
    return "__init__"


def usages(function: Function, path: str, *, quirks: bool) -> Iterator[str]:
    """Yield a function's usage examples. Functions outside classes also get examples with the module's name."""
    module = PurePosixPath(path).stem
    name, args = function.name, ", ".join(_arguments(function, quirks))
    if not function.types:
        owners = ["", f"{module}."]
    else:
        kind = function.types[-1].name
        if function.constructor:
            yield from (f"{kind}({args})", f"{kind}()")
            yield from (f"{snake(kind)} = {kind}({args})", f"{snake(kind)} = {kind}()")
            return
        owners = [f"{snake(kind)}."]
        if not set(_CLASS_LEVEL).isdisjoint(function.decorators):
            owners.append(f"{kind}.")
    for owner in owners:
        yield from (f"{owner}{name}({args})", f"{owner}{name}()")


def _arguments(function: Function, quirks: bool) -> Iterator[str]:
    for parameter in function.parameters:
        if parameter.name in _BOUND and not (quirks and parameter.annotated):
            continue
        if quirks and parameter.starred and parameter.annotated:
            continue
        yield parameter.name
        if quirks and parameter.default_name:
            yield parameter.default_name


def constructor_usages(kind: Type, outer: Type | None, *, quirks: bool) -> tuple[str, ...]:
    """Return the usage examples of a class that declares no constructor. The InferCom paper has no such examples."""
    return f"{kind.name}()", f"{snake(kind.name)} = {kind.name}()"


def snake(name: str) -> str:
    """Convert a class's name to a variable's name: ``HTTPCartStore`` -> ``http_cart_store``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()

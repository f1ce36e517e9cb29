"""Formats Java APIs as in the InferCom paper or, with ``quirks``, as in the paper's released code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ctxbench.bench.languages.java import COMMENT_OR_LITERAL
from ctxbench.bench.languages.outline import Function, Type

SUMMARY_EXAMPLES: Sequence[tuple[str, str]] = (
    (
        "public int seatsLeft(SeatPlan plan, Set<Seat> taken) {\n"
        "    int free = 0;\n"
        "    for (Seat seat : plan.getSeats()) {\n"
        "        if (!taken.contains(seat)) {\n"
        "            free++;\n"
        "        }\n"
        "    }\n"
        "    return free;\n"
        "}",
        "Count the seats of the given plan that are not taken",
    ),
    (
        "public static List<Stop> mergeStops(List<Stop> first, List<Stop> second) {\n"
        "    Set<Stop> stops = new LinkedHashSet<>(first);\n"
        "    stops.addAll(second);\n"
        "    return new ArrayList<>(stops);\n"
        "}",
        "Return the stops of both routes in order and without repeats",
    ),
)
REMARK = re.compile(COMMENT_OR_LITERAL, re.DOTALL)
_PRIMITIVES = frozenset({"", "void", "boolean", "byte", "short", "int", "long", "char", "float", "double"})
_ARGUMENTS = re.compile(r"<[^<>]*>")
_ANNOTATIONS = re.compile(r"@[\w.]+(?:\([^()]*\))?\s*")
_ABSTRACT = re.compile(r"\babstract\b[\w\s]*\bclass\b")
_INDENT = " " * 4


def takes(function: Function, *, quirks: bool) -> bool:
    """Return whether a method gets an API entry: it is in a type; with `quirks`, the two innermost are classes."""
    return bool(function.types) and (not quirks or all(kind.kind == "class" for kind in function.types[-2:]))


def text(function: Function) -> str:
    """Return a method's API entry. A class's method without a body ends in two semicolons, as in InferCom's release."""
    end = ";;" if not function.has_body and function.types[-1:] and function.types[-1].kind == "class" else ";"
    return _wrapped(function.types, f"{_stripped(function.header)}{end}".splitlines())


def constructor_text(types: Sequence[Type]) -> str:
    """Return the API entry of a class without a constructor."""
    return _wrapped(types, [])


def constructor_name(types: Sequence[Type]) -> str:
    """Return the name of a class's default constructor; empty for an abstract class."""
    return "" if _ABSTRACT.search(types[-1].header) else types[-1].name


def _wrapped(types: Sequence[Type], member: list[str]) -> str:
    lines = member
    for depth, kind in enumerate(reversed(types[-2:])):
        closing = "};" if depth == 0 and len(types) > 1 else "}"
        lines = [f"{_stripped(kind.header)} {{", *(_INDENT + line for line in lines), closing]
        lines = [part for line in lines for part in line.split("\n")]
    return "\n".join(lines)


def _stripped(header: str) -> str:
    return "\n".join(line.strip() for line in header.splitlines())


def usages(function: Function, path: str, *, quirks: bool) -> Iterator[str]:
    """Yield a method's usage examples, such as ``cart.add(item)``."""
    if not function.types:
        # A method outside any type: a file without a class, or with a syntax error there.
        return
    kind, outer = function.types[-1].name, function.types[-2].name if len(function.types) > 1 else ""
    args = ", ".join(parameter.name for parameter in function.parameters if not (quirks and parameter.starred))
    if function.constructor:
        forms = _constructor(kind, args)
        yield from forms
        if outer and quirks:
            yield from _prefixed(outer, forms)
        return
    calls: tuple[str, ...] = (f"{lower_first(kind)}.{function.name}({args})",)
    if "static" in function.modifiers:
        calls = (*calls, f"{kind}.{function.name}({args})")
    returned = class_type(function.returns, quirks=quirks)
    assigned = tuple(f"{returned} {lower_first(returned)} = {call}" for call in calls) if returned else ()
    yield from (*calls, *assigned)
    if outer:
        # An outer class before an assignment would be invalid Java.
        yield from _prefixed(outer, (*calls, *assigned) if quirks else calls)


def constructor_usages(kind: Type, outer: Type | None, *, quirks: bool) -> tuple[str, ...]:
    """Return the usage examples of a class that declares no constructor. The InferCom paper has no such examples."""
    forms = _constructor(kind.name, "")
    return forms + (_prefixed(outer.name, forms) if outer is not None and quirks else ())


def _constructor(kind: str, args: str) -> tuple[str, ...]:
    return f"{kind} {lower_first(kind)} = new {kind}({args})", f"new {kind}({args})"


def _prefixed(outer: str, forms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{lower_first(outer)}.{form}" for form in forms)


def class_type(returns: str, *, quirks: bool = False) -> str:
    """Return the class name of a return type (with `quirks`, as in InferCom's release); empty if it is not a class."""
    bare, before = _ANNOTATIONS.sub("", returns), ""
    while bare != before:
        bare, before = _ARGUMENTS.sub("", bare), bare
    bare = "".join(bare.split())
    if bare in _PRIMITIVES or bare.endswith("]"):
        return ""
    if quirks:
        # The release reads a generic type's name only if it is unqualified.
        return "" if "." in bare and returns.rstrip().endswith(">") else bare
    return bare.rpartition(".")[2]


def lower_first(name: str) -> str:
    """Convert the first letter to lower case: ``HTTPClient`` -> ``hTTPClient``."""
    return name[:1].lower() + name[1:]

"""Usage examples: calls of a function, made from its name, its parameters, its file and its class.

InferCom paper, table of usage examples, with the details of its released code. Where the two differ, the paper is
followed; ``quirks`` gives what the release would have made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from ctxbench.bench.languages.outline import Function, Type
from ctxbench.bench.types import Language

_BOUND = ("self", "cls")
_CLASS_LEVEL = ("@staticmethod", "@classmethod")
_PRIMITIVES = frozenset({"", "void", "boolean", "byte", "short", "int", "long", "char", "float", "double"})
_ARGUMENTS = re.compile(r"<[^<>]*>")
_ANNOTATIONS = re.compile(r"@[\w.]+(?:\([^()]*\))?\s*")


def usages(function: Function, path: str, language: Language, *, quirks: bool = False) -> tuple[str, ...]:
    """Return the usage examples of a function, each once, in the order of the paper's table.

    Args:
        function: as `bench.languages.outline` gives it.
        path: its file's; a Python function is also called by its module's name.
        language: the file's.
        quirks: reproduce the oddities of the released code (docs/apis.md lists them).
    """
    examples = (
        _java(function, quirks) if language is Language.JAVA else _python(function, PurePosixPath(path).stem, quirks)
    )
    return tuple(dict.fromkeys(examples))


def constructor_usages(kind: Type, outer: Type | None, language: Language, *, quirks: bool = False) -> tuple[str, ...]:
    """Return the usage examples of a class that declares no constructor. Not in the paper: an addition of ours."""
    if language is Language.PYTHON:
        return f"{kind.name}()", f"{snake(kind.name)} = {kind.name}()"
    forms = _java_constructor(kind.name, "")
    return forms + (_prefixed(outer.name, forms) if outer is not None and quirks else ())


def snake(name: str) -> str:
    """Return the name of a class as that of a variable: ``HTTPCartStore`` -> ``http_cart_store``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def lowered(name: str) -> str:
    """Return the name with its first letter lowered: ``HTTPClient`` -> ``hTTPClient``."""
    return name[:1].lower() + name[1:]


def _python(function: Function, module: str, quirks: bool) -> Iterator[str]:
    name, args = function.name, ", ".join(_python_arguments(function, quirks))
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


def _python_arguments(function: Function, quirks: bool) -> Iterator[str]:
    for parameter in function.parameters:
        if parameter.name in _BOUND and not (quirks and parameter.annotated):
            continue
        if quirks and parameter.starred and parameter.annotated:
            continue
        yield parameter.name
        if quirks and parameter.default_name:
            yield parameter.default_name


def _java(function: Function, quirks: bool) -> Iterator[str]:
    if not function.types:
        # A method without a type around it: a file without a class, or one that is broken there.
        return
    kind, outer = function.types[-1].name, function.types[-2].name if len(function.types) > 1 else ""
    args = ", ".join(parameter.name for parameter in function.parameters if not (quirks and parameter.starred))
    if function.constructor:
        forms = _java_constructor(kind, args)
        yield from forms
        if outer and quirks:
            yield from _prefixed(outer, forms)
        return
    calls: tuple[str, ...] = (f"{lowered(kind)}.{function.name}({args})",)
    if "static" in function.modifiers:
        calls = (*calls, f"{kind}.{function.name}({args})")
    returned = class_type(function.returns, quirks=quirks)
    assigned = tuple(f"{returned} {lowered(returned)} = {call}" for call in calls) if returned else ()
    yield from (*calls, *assigned)
    if outer:
        # In front of an assignment the outer class would give a text that is not Java.
        yield from _prefixed(outer, (*calls, *assigned) if quirks else calls)


def _java_constructor(kind: str, args: str) -> tuple[str, ...]:
    return f"{kind} {lowered(kind)} = new {kind}({args})", f"new {kind}({args})"


def _prefixed(outer: str, forms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{lowered(outer)}.{form}" for form in forms)


def class_type(returns: str, *, quirks: bool = False) -> str:
    """Return the bare name of a Java return type that is a class; empty for primitives, ``void`` and arrays."""
    bare, before = _ANNOTATIONS.sub("", returns), ""
    while bare != before:
        bare, before = _ARGUMENTS.sub("", bare), bare
    bare = "".join(bare.split())
    if bare in _PRIMITIVES or bare.endswith("]"):
        return ""
    return bare if quirks else bare.rpartition(".")[2]

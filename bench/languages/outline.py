"""`Outline`: a file's functions and classes, as plain data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]
"""Start and exclusive end, 0-based: lines in a file, or columns (in characters) in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter:
    """A function's parameter."""

    name: str
    """Name without stars, type or default value."""
    text: str
    default_name: str = ""
    """Default value if it is a name (``rate=DEFAULT``); otherwise empty."""
    starred: bool = False
    """Whether the parameter collects several arguments: ``*args``, ``**kwargs``, or Java's ``String... tags``."""
    annotated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """A class or, in Java, an interface, enum, record or annotation."""

    name: str
    header: str
    """Header as written, up to the colon or brace. It includes Java's annotations but not Python's decorators."""
    kind: str
    """``class``, ``interface``, ``enum``, ``record`` or ``annotation``."""
    lines: Span
    """Lines from the first decorator, annotation or attached comment to the end."""
    head: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function, method or constructor."""

    name: str
    types: tuple[Type, ...]
    inside: str
    lines: Span
    """Lines from the first decorator, annotation, attached comment or Javadoc to the end."""
    head: int
    """0-based line of ``def`` or ``async``, or a Java declaration's first line, which may be an annotation."""
    body: Span
    """Lines of the body, with docstring and closing brace; empty without a body."""
    decorators: tuple[str, ...]
    """Python's decorators as written, with ``@``, or Java's annotations."""
    modifiers: tuple[str, ...]
    """Modifiers as written: ``public``, ``static``, … in Java; ``async`` in Python."""
    parameters: tuple[FunctionParameter, ...]
    """Parameters in order, including ``self`` and ``cls`` but not bare ``*`` and ``/``."""
    parameters_text: str
    returns: str
    """Return type as written; empty if missing."""
    throws: str
    """Java's ``throws`` clause as written, or empty."""
    docstring: str
    """Python's docstring without indentation, or Javadoc without comment marks; empty if missing."""
    constructor: bool
    """Whether the function is a class's ``__init__``, or a Java constructor."""
    has_body: bool
    header: str = ""
    """Header as written: from ``def``, ``async`` or annotations to the return type or ``throws``."""
    code: str = field(default="", repr=False)

    @property
    def qualified(self) -> str:
        """Name with classes: ``Cart.add``."""
        return ".".join([*(outer.name for outer in self.types), self.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A file's functions and classes, in line order."""

    functions: tuple[Function, ...]
    """All functions, including nested functions, but not lambdas or methods of anonymous classes and enum constants."""
    types: tuple[Type, ...]
    broken: bool

    def named_lines(self, lines: Sequence[str]) -> Mapping[str, list[int]]:
        """Return the 0-based lines that declare each qualified name (``Cart.add``); several for an overloaded name.

        Definitions inside functions are left out. A constructor also counts as a declaration of its class.
        """
        outer = [function for function in self.functions if not function.inside]
        named: dict[str, list[int]] = defaultdict(list)
        for kind in self.types:
            if not any(function.lines[0] <= kind.lines[0] < function.lines[1] for function in outer):
                around = [other.name for other in self.types if _holds(other.lines, kind.lines)]
                named[".".join(around)].append(_row(lines, kind.head, kind.lines[1], kind.name))
        for function in outer:
            row = _row(lines, function.head, function.lines[1], function.name)
            named[function.qualified].append(row)
            if function.constructor:
                named[function.qualified.rpartition(".")[0]].append(row)
        return named


def _holds(outer: Span, inner: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _row(lines: Sequence[str], start: int, end: int, name: str) -> int:
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    return next((row for row in range(start, min(end, len(lines))) if word.search(lines[row])), start)

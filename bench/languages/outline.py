"""`Outline`: the functions and classes of one file, as plain data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]
"""Start and exclusive end of lines in a file, or of columns (characters) in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter:
    """One parameter of a function."""

    name: str
    """The name without stars, type and default value."""
    text: str
    default_name: str = ""
    """The default value if it is a bare name (``rate=DEFAULT``); otherwise empty."""
    starred: bool = False
    """Whether the parameter is ``*args``, ``**kwargs``, or Java's ``String... tags``."""
    annotated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """A class; in Java also an interface, enum, record or annotation."""

    name: str
    header: str
    """The header as written, without decorators, up to the colon or brace; Java's annotations are included."""
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
    """The enclosing classes, outermost first; empty at module level."""
    inside: str
    lines: Span
    """Lines from the first decorator, annotation, attached comment or Javadoc to the end."""
    head: int
    """The line of ``def``, or of a Java method's first modifier or annotation."""
    body: Span
    """Lines of the body, including docstring and closing brace; empty without a body."""
    decorators: tuple[str, ...]
    """Python: decorators as written, with ``@``. Java: annotations."""
    modifiers: tuple[str, ...]
    """Java: ``public``, ``static``, …; Python: ``async`` if present."""
    parameters: tuple[FunctionParameter, ...]
    """The parameters in order, with ``self`` and ``cls``, without bare ``*`` and ``/``."""
    parameters_text: str
    returns: str
    """The return type as written; empty if missing, and for a Java constructor."""
    throws: str
    """Java: the ``throws`` clause as written; otherwise empty."""
    docstring: str
    """Python: the docstring's value, cleaned. Java: the Javadoc without comment marks. Empty if missing."""
    constructor: bool
    """Whether the function is ``__init__`` of a class, or a Java constructor."""
    has_body: bool
    header: str = ""
    """The header as written: from ``def`` or ``async`` to the return type, or from Java's annotations to ``throws``."""
    code: str = field(default="", repr=False)
    """The whole text as written, from the start of `header`."""

    @property
    def qualified(self) -> str:
        """The name with its classes: ``Cart.add``."""
        return ".".join([*(outer.name for outer in self.types), self.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The functions and classes of one file, in line order."""

    functions: tuple[Function, ...]
    """All functions, including inner functions (see `Function.inside`), without lambdas and methods of anonymous
    classes."""
    types: tuple[Type, ...]
    broken: bool

    def named_lines(self, lines: Sequence[str]) -> Mapping[str, list[int]]:
        """Return qualified name (``Cart.add``) -> the lines that declare the name; several for overloads.

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

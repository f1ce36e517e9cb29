"""`Outline`: the functions and classes of one file, as plain data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Span = tuple[int, int]
"""Start and exclusive end: of lines in a file, or of columns (characters) in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionParameter:
    """One parameter of a function."""

    name: str
    """Bare: without stars, type and default value."""
    text: str
    """As written."""
    default_name: str = ""
    """The default value where it is a bare name (``rate=DEFAULT``), else empty."""
    starred: bool = False
    """``*args``, ``**kwargs``, or Java's ``String... tags``."""
    annotated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """A class; in Java also an interface, enum, record or annotation."""

    name: str
    header: str
    """As written, from decorators' end or modifiers to the colon or brace, which is left out; annotations stay."""
    kind: str
    """``class``, ``interface``, ``enum``, ``record`` or ``annotation``."""
    lines: Span
    """From the first decorator, annotation or attached comment to the last line."""
    head: int = 0
    """The line that the header begins on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function, method or constructor."""

    name: str
    types: tuple[Type, ...]
    """The classes around it, outermost first; empty at module level."""
    inside: str
    """The name of the function that it stands in; empty for what is no inner function."""
    lines: Span
    """From the first decorator, annotation, attached comment or Javadoc to the last line."""
    head: int
    """The line of ``def``, or of a Java method's first modifier or annotation."""
    body: Span
    """Lines of the body, docstring included; the closing brace's line is the last. Empty for one without."""
    decorators: tuple[str, ...]
    """Python: as written, ``@`` included. Java: annotations."""
    modifiers: tuple[str, ...]
    """Java: ``public``, ``static``, …; Python: ``async`` where it is."""
    parameters: tuple[FunctionParameter, ...]
    """In order, ``self`` and ``cls`` included, bare ``*`` and ``/`` left out."""
    parameters_text: str
    """As written between the brackets."""
    returns: str
    """The return type as written; empty if none, or for a Java constructor."""
    throws: str
    """Java: the ``throws`` clause as written; else empty."""
    docstring: str
    """Python: the docstring's value, cleaned. Java: the Javadoc without its comment marks. Empty if none."""
    constructor: bool
    """``__init__`` of a class, or a Java constructor."""
    has_body: bool
    header: str = ""
    """As written, from ``def`` (or ``async``) to the return type, or from a Java method's annotations to ``throws``."""
    code: str = field(default="", repr=False)
    """All of it as written, from where `header` begins."""

    @property
    def qualified(self) -> str:
        """The name with the classes around it: ``Cart.add``."""
        return ".".join([*(outer.name for outer in self.types), self.name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The functions and classes of one file, in the order of lines."""

    functions: tuple[Function, ...]
    """Inner functions too (see `Function.inside`); no lambdas, no methods of anonymous classes."""
    types: tuple[Type, ...]
    broken: bool
    """Whether the parser met a syntax error."""

    def named_lines(self, lines: Sequence[str]) -> Mapping[str, list[int]]:
        """Return the lines that name definitions, by qualified name: ``Cart.add``; several for overloads and variants.

        What stands in a function is left out. A constructor is under the name of its class too.

        Args:
            lines: of the file.
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
    """Return the first of some lines that has a name as a word."""
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    return next((row for row in range(start, min(end, len(lines))) if word.search(lines[row])), start)

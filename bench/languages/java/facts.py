"""Plain data about one Java file: package, imports, types, name loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.outline import Span

TYPE, METHOD, VALUE, LABEL = "type", "method", "value", "label"
"""What a name is read as: a type, a method that is called without a receiver, any other expression, and a bare name in
``case NAME:``, which is a constant of the switched enum unless a static import brings in a variable of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaImport:
    """One import declaration."""

    lines: Span
    name: str
    """The qualified name, without ``.*``."""
    static: bool
    wildcard: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaType:
    """One class, interface, enum, record or annotation, nested ones included."""

    name: str
    """Name inside the package: ``Outer.Inner``."""
    members: Mapping[str, str]
    """Fields, constants and methods -> ``variable`` or ``function``."""
    static: frozenset[str]
    """Those of `members` that a static import can bring in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaLoad:
    """A name that is read and that nothing in its file declares, with the names that follow it."""

    name: str
    role: str
    """`TYPE`, `METHOD`, `VALUE` or `LABEL`."""
    chain: tuple[str, ...]
    near: int
    """How many parts of `chain`, from its beginning, stand on the name's own line."""
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaFile(FileFacts):
    """The facts of one Java file."""

    package: str
    imports: tuple[JavaImport, ...]
    types: tuple[JavaType, ...]
    loads: tuple[JavaLoad, ...]

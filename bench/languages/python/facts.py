"""Plain data about one Python file: imports, definitions, name loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.outline import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedName:
    """One name bound by an import statement."""

    statement: int
    """Index into `PythonFile.statements`."""
    bound: str
    """The name in this file; for ``import a.b.c`` it is ``a``."""
    module: str
    """The dotted module, without leading dots."""
    level: int
    """Number of leading dots."""
    member: str | None
    """The name taken from the module; None for ``import module``."""
    dotted: bool
    """Whether it is ``import a.b.c`` without ``as``: reached as ``a.b.c``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StarImport:
    """``from module import *``."""

    statement: int
    module: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLoad:
    """A name that is read, with the attributes that follow it."""

    name: str
    chain: tuple[str, ...]
    near: int
    """How many parts of `chain`, from its beginning, stand on the name's own line."""
    line: int
    column: int
    quoted: bool
    imports: tuple[int, ...]
    """Indices into `PythonFile.imports`; empty for a name that nothing in the file binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile(FileFacts):
    """The facts of one Python file."""

    statements: tuple[Span, ...]
    imports: tuple[ImportedName, ...]
    stars: tuple[StarImport, ...]
    loads: tuple[NameLoad, ...]
    definitions: Mapping[str, str]
    """Names bound at module level other than by imports -> ``class``, ``function`` or ``variable``."""
    imported: Mapping[str, tuple[int, ...]]
    """Names bound at module level by imports -> indices into `imports`."""
    exported: tuple[str, ...] | None
    """``__all__`` where it is a plain list of strings."""
    dynamic: bool
    """Whether a module-level ``__getattr__`` makes names up."""

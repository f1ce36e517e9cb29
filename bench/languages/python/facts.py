"""Plain data about one Python file: imports, definitions, name loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.facts import FileFacts, Span
from ctxbench.bench.languages.python.reader import Reader
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Language


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


def analyse(path: str, text: str) -> PythonFile:
    """Read one file.

    Args:
        path: POSIX path inside the repository.
        text: the whole file.
    """
    source = Source(text, Language.PYTHON)
    reader = Reader(source)
    loads = _loads(reader)
    needed = {load.line for load in loads if not load.quoted}
    definitions = {name: reader.module.kinds.get(name, "variable") for name in sorted(reader.module.stores)}
    return PythonFile(
        path=path,
        broken=source.root.has_error,
        tokens=source.tokens(needed),
        barred={line: reason for line, reason in sorted(reader.barred.items()) if line in needed},
        statements=tuple(reader.statements),
        imports=tuple(reader.imports),
        stars=tuple(reader.stars),
        loads=loads,
        definitions=definitions,
        imported={name: tuple(i for _, i in bindings) for name, bindings in sorted(reader.module.imports.items())},
        exported=_exported(source),
        dynamic="__getattr__" in definitions,
    )


def _loads(reader: Reader) -> tuple[NameLoad, ...]:
    """Keep the loads that an import of this file, or one of its star imports, may supply."""
    imported = {item.bound for item in reader.imports}
    loads = []
    for scope, name, chain, near, node, quoted in reader.loads:
        if name not in imported and not reader.stars:
            continue
        imports = scope.find(name, node.start_byte)
        if imports == () or (imports is None and not reader.stars):
            continue
        row, byte = node.start_point
        column = reader.source.column(row, byte)
        load = NameLoad(
            name=name, chain=chain, near=near, line=row, column=column, quoted=quoted, imports=imports or ()
        )
        loads.append(load)
    return tuple(sorted(loads, key=lambda load: (load.line, load.column)))


def _exported(source: Source) -> tuple[str, ...] | None:
    """Return ``__all__`` if it is made of plain lists of strings only."""
    names: list[str] | None = None
    for statement in source.root.named_children:
        expression = statement.named_children[0] if statement.type == "expression_statement" else None
        if expression is None or not source.text(expression).startswith("__all__"):
            continue
        strings = _strings(expression, source)
        if strings is None:
            return None
        names = strings if expression.type == "assignment" else [*(names or []), *strings]
    return tuple(names) if names is not None else None


def _strings(expression: Node, source: Source) -> list[str] | None:
    """Return the strings listed by ``__all__ = […]``, ``__all__ += […]``, ``.extend([…])`` or ``.append(…)``."""
    if expression.type in ("assignment", "augmented_assignment"):
        pending = [expression.child_by_field_name("right")]
    elif expression.type == "call":
        pending = [expression.child_by_field_name("arguments")]
    else:
        return None
    strings: list[str] = []
    while pending:
        node = pending.pop(0)
        if node is None or node.type in ("identifier", "attribute", "call", "list_comprehension"):
            return None
        if node.type == "string":
            strings.append("".join(source.text(part) for part in node.named_children if part.type == "string_content"))
        else:
            pending = [*node.named_children, *pending]
    return strings

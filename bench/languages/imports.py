"""Lines that use imports, for languages that say no more than which names their imports bind.

A name that the file declares anywhere itself (a variable, a parameter, a function) is never taken for an import. What
is reached through a name is not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tree_sitter import Node

from ctxbench.bench.languages.base import FileFacts, InternalLoad
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.languages.syntax import Source, rows
from ctxbench.bench.types import Use

if TYPE_CHECKING:
    from ctxbench.bench.languages.base import Language

_DECLARING = ("declarator", "declaration", "definition", "parameter")
_DECLARED = ("name", "pattern", "parameter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One name that an import statement binds."""

    lines: Span
    """Of the whole statement."""
    name: str
    """As the file calls it."""
    module: str
    """As written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportingFile(FileFacts):
    """The facts of one file: what its imports bind, and where that is read."""

    imports: tuple[Import, ...]
    loads: tuple[tuple[int, int, str], ...]
    """(line, column, name), in order."""


def analyse(language: Language, path: str, text: str) -> ImportingFile:
    """Return the facts of one file."""
    source = Source(text, language)
    imports = tuple(language.imports(source))
    imported, declared = {item.name for item in imports}, set[str]()
    barred = {line: "import" for item in imports for line in range(*item.lines)}
    loads: list[tuple[int, int, str]] = []
    pending = [source.root]
    while pending:
        node = pending.pop()
        reason = language.barred.get(node.type, "")
        for line in _barred(node, reason):
            barred.setdefault(line, reason)
        if node.type in language.names and (name := source.text(node)) in imported:
            row, byte = node.start_point
            if _is_declared(node):
                declared.add(name)
            elif barred.get(row) != "import":
                loads.append((row, source.column(row, byte), name))
        pending += reversed(node.children)
    loads = [load for load in loads if load[2] not in declared]
    lines = {line for line, _, _ in loads}
    return ImportingFile(
        path=path,
        broken=source.root.has_error,
        tokens=source.tokens(lines),
        barred={line: barred[line] for line in sorted(lines & barred.keys())},
        imports=imports,
        loads=tuple(loads),
    )


def _barred(node: Node, reason: str) -> range:
    lines = rows(node)
    if not reason or (reason == "multiline_string" and len(lines) == 1):
        return range(0)
    body = node.child_by_field_name("body") if reason == "header" else None
    return lines if body is None else range(lines.start, body.start_point[0] + 1)


def _is_declared(node: Node) -> bool:
    around = node.parent
    if around is None or not around.type.endswith(_DECLARING):
        return False
    return any(around.child_by_field_name(field) == node for field in _DECLARED)


def resolve(language: Language, files: Mapping[str, ImportingFile]) -> dict[str, tuple[InternalLoad, ...]]:
    """Return the reads of names that other files of the project bring in."""
    return {path: tuple(_internal(language, file, files)) for path, file in files.items()}


def _internal(language: Language, file: ImportingFile, files: Mapping[str, ImportingFile]) -> list[InternalLoad]:
    origins: dict[str, str] = {}
    statements: dict[str, list[Span]] = {}
    for item in file.imports:
        origin = language.locate(item.module, file.path, files)
        if origin is not None and origin != file.path:
            origins[item.name] = language.module_of(origin)
            statements.setdefault(item.name, []).append(item.lines)
    loads = []
    for line, column, name in file.loads:
        if name in origins:
            uses = (Use(name=name, module=origins[name], kind="unknown"),)
            spans = tuple(sorted(statements[name]))
            loads.append(
                InternalLoad(line=line, column=column, name=name, uses=uses, near=uses, statements=spans, quoted=False)
            )
    return loads

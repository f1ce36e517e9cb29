"""Finds uses of project-internal imports in a repository's Python files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tree_sitter import Node

from ctxbench.bench.languages.base import FileFacts, InternalLoad, ends
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.modules import (
    OUTSIDE,
    Exports,
    ImportedName,
    ModuleIndex,
    NameLoad,
    PythonFile,
    PythonTarget,
)
from ctxbench.bench.languages.python.reader import Reader
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Use


def analyse(path: str, text: str) -> PythonFile:
    """Return a Python file's imports, definitions and used names."""
    source = Source(text, PYTHON)
    reader = Reader(source)
    loads = _loads(reader)
    needed = {load.line for load in loads}
    barred = {line: reason for line, reason in sorted(reader.barred.items()) if line in needed}
    tokens, leaves = source.tokens(needed)
    return replace(_declared(path, source, reader), tokens=tokens, leaves=leaves, barred=barred, loads=loads)


def declared(path: str, text: str) -> PythonFile:
    """Return a file's definitions and imports like `analyse`, but without the names that the file reads."""
    source = Source(text, PYTHON)
    return _declared(path, source, Reader(source))


def _declared(path: str, source: Source, reader: Reader) -> PythonFile:
    definitions = {name: reader.module.kinds.get(name, "variable") for name in sorted(reader.module.stores)}
    return PythonFile(
        path=path,
        broken=source.root.has_error,
        tokens={},
        leaves={},
        barred={},
        statements=tuple(reader.statements),
        imports=tuple(reader.imports),
        stars=tuple(reader.stars),
        loads=(),
        definitions=definitions,
        imported={name: tuple(i for _, i in bindings) for name, bindings in sorted(reader.module.imports.items())},
        exported=_exported(source),
        dynamic="__getattr__" in definitions,
    )


def _loads(reader: Reader) -> tuple[NameLoad, ...]:
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


def resolve(files: Mapping[str, FileFacts]) -> dict[str, tuple[InternalLoad, ...]]:
    """Return each Python file's uses of project-internal names, by path, in line and column order."""
    python = {path: file for path, file in files.items() if isinstance(file, PythonFile)}
    absolute = [item.module for file in python.values() for item in file.imports if not item.level]
    absolute += [star.module for file in python.values() for star in file.stars if not star.level]
    exports = Exports(python, ModuleIndex(python, absolute))
    return {path: _FileUses(file, exports).loads() for path, file in python.items()}


class _FileUses:
    def __init__(self, file: PythonFile, exports: Exports) -> None:
        self.file, self.exports = file, exports
        self._name = exports.index.name(file.path)
        self._targets = [self._target(item) for item in file.imports]
        self._stars = [(star, place) for star in file.stars if (place := exports.place(file.path, star)) is not None]

    def _target(self, item: ImportedName) -> PythonTarget | None:
        return self._elsewhere(self.exports.imported(self.file.path, item))

    def _elsewhere(self, target: PythonTarget | None) -> PythonTarget | None:
        return None if target is None or target.module == self._name else target

    def loads(self) -> tuple[InternalLoad, ...]:
        internal_loads = (self._load(load) for load in self.file.loads)
        return tuple(load for load in internal_loads if load is not None)

    def _load(self, load: NameLoad) -> InternalLoad | None:
        if not load.imports:
            return self._star_load(load)
        items = [(self.file.imports[index], self._targets[index]) for index in load.imports]
        internal = [(item, target) for item, target in items if target is not None]
        # With `import a.b` and `import a.b.c`, the longest match of `a.b.c.d` counts.
        reached = [pair for pair in internal if _reached(pair[0], load.chain)]
        if not reached:
            return self._top_package(load, [item for item, _ in internal])
        item, target = max(reached, key=lambda pair: pair[0].module.count(".") if pair[0].dotted else 0)
        skipped = item.module.count(".") if item.dotted else 0
        statements = {
            self.file.statements[other.statement]
            for index, (other, other_target) in enumerate(zip(self.file.imports, self._targets, strict=True))
            if (other.module == item.module if item.dotted and other.dotted else other.bound == load.name)
            # An alternative import, such as a compiled module before its fallback, names the API too.
            and (index in load.imports or (other_target is not None and other.dotted == item.dotted))
        }
        return self._internal_load(
            load, item.module if item.dotted else load.name, target, load.chain[skipped:], statements
        )

    def _top_package(self, load: NameLoad, items: list[ImportedName]) -> InternalLoad | None:
        """Resolve ``a.other`` after ``import a.b`` through the package ``a``."""
        place = self.exports.index.absolute(self.file.path, load.name)
        if not items or place is None:
            return None
        statements = {self.file.statements[item.statement] for item in items}
        return self._internal_load(load, load.name, self.exports.module(place), load.chain, statements)

    def _star_load(self, load: NameLoad) -> InternalLoad | None:
        supply = [(star, place) for star, place in self._stars if load.name in self.exports.public(place)]
        if not supply:
            return None
        target = self.exports.member(supply[-1][1], load.name)
        if target is OUTSIDE:
            return None
        target = target or PythonTarget("unknown", self.exports.index.name(supply[-1][1]))
        if self._elsewhere(target) is None:
            return None
        statements = {self.file.statements[star.statement] for star, _ in supply}
        return self._internal_load(load, load.name, target, load.chain, statements)

    def _internal_load(
        self, load: NameLoad, name: str, target: PythonTarget, chain: tuple[str, ...], statements: set[tuple[int, int]]
    ) -> InternalLoad:
        reached = [Use(name=name, module=target.module, kind=target.kind)]
        # Through modules (`shop.rules.round_up`), the required API is the member at the end.
        for part in chain:
            member = self.exports.member(target.place, part) if target.place is not None else None
            if member is None or member is OUTSIDE:
                break
            target = member
            reached.append(Use(name=f"{reached[-1].name}.{part}", module=target.module, kind=target.kind))
        near = load.near - (len(load.chain) - len(chain))
        return InternalLoad(
            line=load.line,
            column=load.column,
            name=name,
            uses=ends(reached),
            # If `.b` of `import a.b` is on the next line, this line reads the package.
            near=ends(reached[: near + 1]) if near >= 0 else (Use(name=load.name, module=load.name, kind="module"),),
            statements=tuple(sorted(statements)),
            quoted=load.quoted,
        )


def _reached(item: ImportedName, chain: tuple[str, ...]) -> bool:
    """Return whether the code after ``import a.b.c``, which binds only ``a``, writes ``a.b.c`` in full."""
    if not item.dotted:
        return True
    inner = tuple(item.module.split("."))[1:]
    return chain[: len(inner)] == inner

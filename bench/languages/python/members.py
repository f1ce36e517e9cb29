"""Finds the project's names that Python code reads (`bench.languages.base.ProjectNames`), and their definitions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.base import DefinitionName, ProjectReading
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.classes import SELF, Class, Hierarchy, read_classes
from ctxbench.bench.languages.python.modules import (
    OUTSIDE,
    Exports,
    ImportedName,
    ModuleIndex,
    NameLoad,
    PythonFile,
    PythonTarget,
)
from ctxbench.bench.languages.python.outline import outline
from ctxbench.bench.languages.python.reader import MODULE, RawLoad, Reader
from ctxbench.bench.languages.python.uses import analyse, declared
from ctxbench.bench.languages.syntax import Source

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import\b|import[ \t]+(\w[\w.]*))", re.MULTILINE)
_BUILT = re.compile(r"_.*|.*_pb2(_grpc)?|version")
"""Modules that a build often generates. They are not among the project's files."""


class ProjectFiles(Mapping[str, PythonFile]):
    """Facts about all files, without the names they read. Computed when needed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts, self._facts = texts, dict[str, PythonFile]()

    def __getitem__(self, path: str) -> PythonFile:
        if path not in self._facts:
            self._facts[path] = declared(path, self._texts[path])
        return self._facts[path]

    def __contains__(self, path: object) -> bool:
        """Return whether a file exists."""
        return path in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


@dataclass(frozen=True, slots=True)
class _Code:
    path: str
    source: Source
    reader: Reader
    classes: Mapping[str, Class]


class PythonProject:
    """The names of a Python project.

    Special names (``__name__``) and attributes that other code of the project assigns are never checked.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Store the files. Only import lines are read now."""
        self._texts = {path: texts[path] for path in texts if path.endswith(".py")}
        imported = {
            of_from or of_import for text in self._texts.values() for of_from, of_import in _IMPORT.findall(text)
        }
        self._index = ModuleIndex(self._texts, imported)
        self._exports = Exports(ProjectFiles(self._texts), self._index)
        self._hierarchy = Hierarchy(self._texts, self._exports)
        self._assigned: dict[str, bool] = {}

    def readings(self, path: str, code: str, *, start: tuple[int, int] = (0, 0)) -> tuple[ProjectReading, ...]:
        """Return the project's names that `code` reads from `start` on, in line order."""
        source = Source(code, PYTHON)
        read = _Code(path, source, Reader(source), read_classes(source))
        loads = [load for load in read.reader.loads if load.node.start_point[0] >= start[0]]
        items = [item for item in read.reader.imports if read.reader.statements[item.statement][0] >= start[0]]
        judged = [reading for load in loads if (reading := self._load(read, load)) is not None]
        judged += [reading for item in items if (reading := self._import(read, item)) is not None]
        from_start = [reading for reading in judged if (reading.line, reading.column) >= start]
        return tuple(sorted(from_start, key=lambda reading: (reading.line, reading.column)))

    def _import(self, code: _Code, item: ImportedName) -> ProjectReading | None:
        name = item.module if item.member is None else item.member
        line = code.reader.statements[item.statement][0]
        place = self._exports.place(code.path, item)
        if place is None:
            package = self._index.absolute(code.path, item.module.partition(".")[0]) if not item.level else None
            built = any(_BUILT.fullmatch(part) for part in item.module.split("."))
            missing = package is not None and package.endswith(".py") and "." in item.module and not built
            return ProjectReading(name=item.module, line=line, column=0, known=False) if missing else None
        if item.member is None:
            return ProjectReading(name=name, line=line, column=0, known=True)
        member = self._exports.member(place, item.member)
        if member is OUTSIDE:
            return None
        if member is None and (not self._whole(place) or _BUILT.fullmatch(item.member)):
            return None
        return ProjectReading(name=name, line=line, column=0, known=member is not None)

    def _load(self, code: _Code, load: RawLoad) -> ProjectReading | None:
        if load.name in SELF and load.chain:
            return self._own(code, load)
        imports = load.scope.find(load.name, load.node.start_byte)
        if imports:
            item = code.reader.imports[imports[-1]]
            if item.dotted:
                place = self._index.absolute(code.path, item.bound)
                target = self._exports.module(place) if place is not None else None
            else:
                target = self._exports.imported(code.path, item)
            return self._walk(code, load, target, item.member or load.name) if target is not None else None
        return self._walk(code, load, target, load.name) if (target := self._defined(code, load)) is not None else None

    def _defined(self, code: _Code, load: RawLoad) -> PythonTarget | None:
        binder = load.scope.binder(load.name)
        kind = None
        if binder is None and code.path in self._texts:
            kind = self._exports.files[code.path].definitions.get(load.name)
        elif binder is not None and binder.kind == MODULE:
            kind = binder.kinds.get(load.name)
        return PythonTarget(kind, self._index.name(code.path)) if kind in ("class", "function") else None

    def _walk(self, code: _Code, load: RawLoad, target: PythonTarget, name: str) -> ProjectReading | None:
        if target.kind == "unknown":
            return None
        spelled = load.name
        for part in load.chain:
            step = None if part.startswith("__") or not part else self._step(code, target, name, part)
            if step is None:
                break
            spelled = f"{spelled}.{part}"
            if not isinstance(step, PythonTarget):
                return _reading(code, load, spelled, is_defined=step)
            target, name = step, part
        return _reading(code, load, spelled, is_defined=True)

    def _step(self, code: _Code, target: PythonTarget, name: str, part: str) -> PythonTarget | bool | None:
        if target.kind == "class":
            path = self._hierarchy.path(target.module)
            if path is None:
                return None
            inner = self._hierarchy.classes(path).get(name)
            if inner is None and path == code.path:
                inner = code.classes.get(name)
            members = self._hierarchy.with_bases(path, inner) if inner is not None else None
            return self._verdict(part, members)
        if target.kind != "module" or target.place is None:
            return None
        member = self._exports.member(target.place, part)
        if member is OUTSIDE:
            return None
        return member or (self._verdict(part, frozenset()) if self._whole(target.place) else None)

    def _own(self, code: _Code, load: RawLoad) -> ProjectReading | None:
        name, part = _class_around(load.node, code.source), load.chain[0]
        if not name or part.startswith("__") or not part or _is_written(load):
            return None
        code_class, file_class = code.classes.get(name), self._hierarchy.classes(code.path).get(name)
        definition = file_class or code_class
        if definition is None:
            return None
        members = self._hierarchy.of_self(code.path, definition)
        if members is not None and code_class is not None:
            members |= code_class.members
        is_defined = self._verdict(part, members)
        return _reading(code, load, f"{load.name}.{part}", is_defined=is_defined) if is_defined is not None else None

    def _verdict(self, name: str, members: frozenset[str] | None) -> bool | None:
        if members is None:
            return None
        if name in members:
            return True
        if name not in self._assigned:
            word = re.compile(rf"""\.{name}\s*(?::[^=\n]*)?=(?!=)|setattr\([^,\n]*,\s*["']{name}["']""")
            self._assigned[name] = any(word.search(text) for text in self._texts.values() if name in text)
        return None if self._assigned[name] else False

    def _whole(self, place: str) -> bool:
        if place not in self._texts:
            return False
        file, text = self._exports.files[place], self._texts[place]
        outside = any(self._exports.place(place, star) not in self._texts for star in file.stars)
        return not (file.broken or file.dynamic or outside or "globals()" in text or "sys.modules" in text)


def _is_written(load: RawLoad) -> bool:
    around = node = load.node.parent
    if len(load.chain) > 1 or node is None:
        return False
    while around is not None and around.type in ("attribute", "pattern_list", "tuple_pattern"):
        node, around = around, around.parent
    return around is not None and around.type == "assignment" and around.child_by_field_name("left") == node


def _class_around(node: Node, source: Source) -> str:
    names: list[str] = []
    inside = False
    around = node.parent
    while around is not None:
        if around.type == "function_definition":
            if names:
                return ""  # a class inside a function
            inside = True
        elif around.type == "class_definition":
            names.insert(0, source.field(around, "name"))
        around = around.parent
    return ".".join(names) if inside else ""


def _reading(code: _Code, load: RawLoad, name: str, *, is_defined: bool) -> ProjectReading:
    row, byte = load.node.start_point
    return ProjectReading(name=name, line=row, column=code.source.column(row, byte), known=is_defined)


_WORD = re.compile(r"\w+")


def referred(path: str, line: int, texts: Mapping[str, str]) -> Iterator[DefinitionName]:
    """Yield the definitions that imports, and names up to a line, refer to. Types are not inferred."""
    files = ProjectFiles(texts)
    file = analyse(path, texts[path])
    # Imports distinguish a namespace package from a source root; only the target's own imports are considered.
    imported = [item.module for item in file.imports if not item.level]
    imported += [star.module for star in file.stars if not star.level]
    names = _Names(file, Exports(files, ModuleIndex(files, imported)))
    for item in file.imports:
        yield from names.definitions(names.exports.imported(path, item), item.member or "", ())
    for load in file.loads:
        if load.line <= line:
            yield from names.loaded(load)
    yield from _overridden(names, texts[path], line)


class _Names:
    def __init__(self, file: PythonFile, exports: Exports) -> None:
        self.file, self.exports = file, exports
        self._paths = {exports.index.name(path): path for path in reversed(list(exports.files))}

    def loaded(self, load: NameLoad, method: str = "") -> Iterator[DefinitionName]:
        tail = (method,) if method else ()
        for item in (self.file.imports[index] for index in load.imports):
            spelled = tuple(item.module.split("."))[1:] if item.dotted else ()
            if load.chain[: len(spelled)] == spelled:
                target = self.exports.imported(self.file.path, item)
                yield from self.definitions(target, item.member or "", (*load.chain[len(spelled) :], *tail))
        if not load.imports:
            places = [self.exports.place(self.file.path, star) for star in self.file.stars]
            supply = [place for place in places if place is not None and load.name in self.exports.public(place)]
            target = self.exports.member(supply[-1], load.name) if supply else None
            yield from self.definitions(target, load.name, (*load.chain, *tail))

    def definitions(self, target: PythonTarget | None, name: str, chain: tuple[str, ...]) -> Iterator[DefinitionName]:
        while target is not None and target.place is not None and chain:
            name, *attributes = chain
            target, chain = self.exports.member(target.place, name), tuple(attributes)
        path = self._path(target) if target is not None else None
        if target is None or path is None:
            return
        if target.kind in ("module", "class", "function"):
            yield DefinitionName(path, target.kind, name)
        if target.kind == "class" and chain:
            yield DefinitionName(path, "function", f"{name}.{chain[0]}")

    def _path(self, target: PythonTarget) -> str | None:
        path = target.place or self._paths.get(target.module)
        return path if path in self.exports.files else None


def _overridden(names: _Names, text: str, cursor: int) -> Iterator[DefinitionName]:
    methods = [function for function in outline(text).functions if function.lines[0] <= cursor and function.types]
    if not methods or methods[-1].lines[1] < cursor:
        return
    method = methods[-1]
    bases = set(_WORD.findall(method.types[-1].header.partition("(")[2]))
    for load in names.file.loads:
        if load.name in bases and method.types[-1].lines[0] <= load.line < method.lines[0]:
            yield from names.loaded(load, method.name)

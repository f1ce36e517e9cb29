"""Definitions in other files that a Python file refers to; see `bench.languages.base.Language.referred`.

That is what is imported, called, instantiated, inherited from or otherwise named, and the methods of imported base
classes that the method around a line overrides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ctxbench.bench.languages.base import DefinitionName
from ctxbench.bench.languages.python.facts import NameLoad, PythonFile
from ctxbench.bench.languages.python.members import ProjectFiles
from ctxbench.bench.languages.python.modules import Exports, ModuleIndex, PythonTarget
from ctxbench.bench.languages.python.outline import outline
from ctxbench.bench.languages.python.uses import analyse

_WORD = re.compile(r"\w+")


def referred(path: str, line: int, texts: Mapping[str, str]) -> Iterator[DefinitionName]:
    """Yield what the file imports and what the names up to a line stand for; no type is inferred."""
    files = ProjectFiles(texts)
    file = analyse(path, texts[path])
    # What other files import tells a namespace package from a source root; only the target's imports are looked at.
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
        """Yield the definitions that a name, with the attributes that follow it, stands for; or a class's method."""
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
        """Yield what a target called `name`, reached through modules, is; of a class also the method named."""
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
    """Yield the methods of imported base classes that are called as the method around the cursor."""
    methods = [function for function in outline(text).functions if function.lines[0] <= cursor and function.types]
    if not methods or methods[-1].lines[1] < cursor:
        return
    method = methods[-1]
    bases = set(_WORD.findall(method.types[-1].header.partition("(")[2]))
    for load in names.file.loads:
        if load.name in bases and method.types[-1].lines[0] <= load.line < method.lines[0]:
            yield from names.loaded(load, method.name)

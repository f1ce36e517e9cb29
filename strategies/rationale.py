"""RepoFuse's rationale context: the definitions in other files that the target file refers to, by static analysis.

RepoFuse asks Jedi, which infers types and reads files from the disk. Here names in the shown text are resolved
through the imports in it, and no type is inferred: ``store.load`` is resolved only where ``store`` is a module or
a class. Only definitions one step away are returned, not what they refer to in turn.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from posixpath import basename, dirname

from tree_sitter import Node

from ctxbench.bench.languages.base import Language, Outline
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.facts import JavaImport
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.facts import NameLoad, PythonFile
from ctxbench.bench.languages.python.modules import Exports, ModuleIndex, PythonTarget
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.repository import Repository
from ctxbench.bench.types import Place, Query
from ctxbench.bench.windows import split_lines

_WORD = re.compile(r"\w+")
_FUNCTIONS = frozenset(
    {"function_definition", "method_declaration", "constructor_declaration", "compact_constructor_declaration"}
)
_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_BODY = {PYTHON: b"...", JAVA: b"{ ... }"}


def rationale(query: Query, repo: Repository) -> list[ExternalDefinition]:
    """Return the definitions in other files that the shown part of the target file refers to, each once.

    Python: what is imported, called, instantiated, inherited from or otherwise named, and the methods of imported
    base classes that the method around the cursor overrides. Functions come whole, classes and modules as stubs;
    variables are left out. Java: the imported types, as stubs; of a package those that the file names.
    """
    definitions = _python(query, repo) if repo.language == PYTHON else _java(query, repo)
    others = (
        definition
        for definition in definitions
        if definition is not None and definition.place.path != query.path and definition.text.strip()
    )
    return list(dict.fromkeys(others))


class _Facts(Mapping[str, PythonFile]):
    """The facts of every file, each analysed at first use."""

    def __init__(self, repo: Repository) -> None:
        self._paths = repo.files()
        self._path_set = frozenset(self._paths)
        self._analyse = cache(lambda path: PYTHON.analyse(path, repo.read(path)))

    def __getitem__(self, path: str) -> PythonFile:
        if path not in self._path_set:
            raise KeyError(path)
        return self._analyse(path)

    def __contains__(self, path: object) -> bool:
        return path in self._path_set

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _python(query: Query, repo: Repository) -> Iterator[ExternalDefinition | None]:
    facts = _Facts(repo)
    file = facts[query.path]
    # What other files import tells a namespace package from a source root; only the target's imports are looked at.
    named = [item.module for item in file.imports if not item.level]
    named += [star.module for star in file.stars if not star.level]
    names = _Names(file, Exports(facts, ModuleIndex(facts, named)), Sources(repo))
    for item in file.imports:
        yield from names.definitions(names.exports.imported(file.path, item), item.member or "", ())
    for load in file.loads:
        if load.line <= query.cursor.line:
            yield from names.loaded(load)
    yield from _overridden(names, repo.read(query.path), query.cursor.line)


class _Names:
    """Follows the names of one Python file to their definitions."""

    def __init__(self, file: PythonFile, exports: Exports, sources: Sources) -> None:
        self.file, self.exports, self._sources = file, exports, sources
        self._paths = {exports.index.name(path): path for path in reversed(list(exports.files))}

    def loaded(self, load: NameLoad, method: str = "") -> Iterator[ExternalDefinition | None]:
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

    def definitions(
        self, target: PythonTarget | None, name: str, chain: tuple[str, ...]
    ) -> Iterator[ExternalDefinition | None]:
        """Yield what a target called `name`, reached through modules, is; of a class also the method named."""
        while target is not None and target.place is not None and chain:
            name, *attributes = chain
            target, chain = self.exports.member(target.place, name), tuple(attributes)
        path = self._path(target) if target is not None else None
        if target is None or path is None:
            return
        if target.kind == "module":
            yield self._sources.module(path)
        elif target.kind == "class":
            yield self._sources.type(path, name)
            if chain:
                yield self._sources.function(path, f"{name}.{chain[0]}")
        elif target.kind == "function":
            yield self._sources.function(path, name)

    def _path(self, target: PythonTarget) -> str | None:
        path = target.place or self._paths.get(target.module)
        return path if path in self.exports.files else None


def _overridden(names: _Names, text: str, cursor: int) -> Iterator[ExternalDefinition | None]:
    """Yield the methods of imported base classes that are called as the method around the cursor."""
    methods = [
        function for function in PYTHON.outline(text).functions if function.lines[0] <= cursor and function.types
    ]
    if not methods or methods[-1].lines[1] < cursor:
        return
    method = methods[-1]
    bases = set(_WORD.findall(method.types[-1].header.partition("(")[2]))
    for load in names.file.loads:
        if load.name in bases and method.types[-1].lines[0] <= load.line < method.lines[0]:
            yield from names.loaded(load, method.name)


def _java(query: Query, repo: Repository) -> Iterator[ExternalDefinition | None]:
    sources, paths = Sources(repo), repo.files()
    text = repo.read(query.path)
    words = frozenset(_WORD.findall(text))
    for item in JAVA.analyse(query.path, text).imports:
        owner = item.name.rpartition(".")[0] if item.static and not item.wildcard else item.name
        files = list(_files_of(owner, paths))
        for path, inner in files:
            yield sources.type(path, ".".join([basename(path).removesuffix(".java"), *inner]))
        if item.wildcard and not item.static and not files:
            for path in _package(item, paths):
                name = basename(path).removesuffix(".java")
                if name in words:
                    yield sources.type(path, name)


def _files_of(owner: str, paths: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the file of a qualified type, with the names of the types inside its own that lead to it."""
    parts = owner.split(".")
    for length in range(len(parts), 0, -1):
        ending = "/".join(parts[:length]) + ".java"
        matches = [path for path in paths if path == ending or path.endswith("/" + ending)]
        if matches:
            yield from ((path, parts[length:]) for path in matches)
            return


def _package(item: JavaImport, paths: tuple[str, ...]) -> list[str]:
    folder = item.name.replace(".", "/")
    return [path for path in paths if dirname(path) == folder or dirname(path).endswith("/" + folder)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalDefinition:
    """One definition in another file."""

    place: Place
    text: str
    stub: bool
    """Whether it is a class or a module with its bodies left out; a function is whole."""


class Sources:
    """The definitions in a repository's files; each file is read once."""

    def __init__(self, repo: Repository) -> None:
        """Look things up in `repo`."""
        self._repo = repo
        self.outline = cache(self._outline)

    def _outline(self, path: str) -> Outline:
        return self._repo.language.outline(self._repo.read(path))

    def module(self, path: str) -> ExternalDefinition:
        """Return a whole file."""
        text = self._repo.read(path)
        place = Place(path=path, start=0, end=len(split_lines(text)))
        return ExternalDefinition(place=place, text=stub(text, self._repo.language), stub=True)

    def type(self, path: str, name: str) -> ExternalDefinition | None:
        """Return a type by its name, or the name of one inside (``Outer.Inner``)."""
        types = self.outline(path).types
        type_outline = next((inner for inner in types if inner.name == name.rpartition(".")[2]), None)
        if type_outline is None:
            return None
        text = self._lines(path, type_outline.lines)
        place = Place(path=path, start=type_outline.lines[0], end=type_outline.lines[1])
        return ExternalDefinition(place=place, text=stub(textwrap.dedent(text), self._repo.language), stub=True)

    def function(self, path: str, name: str) -> ExternalDefinition | None:
        """Return a function by its name with the classes around it."""
        functions = (function for function in self.outline(path).functions if not function.inside)
        function = next((function for function in functions if function.qualified == name), None)
        if function is None:
            return None
        place = Place(path=path, start=function.lines[0], end=function.lines[1])
        return ExternalDefinition(place=place, text=self._lines(path, function.lines), stub=False)

    def _lines(self, path: str, lines: tuple[int, int]) -> str:
        return "\n".join(self._repo.read(path).split("\n")[slice(*lines)])


def stub(text: str, language: Language) -> str:
    """Return a class or a file as a stub, without blank lines.

    Of a broken definition as much is taken as the parser understands.
    """
    source = Source(text, language)
    pieces, end = [], 0
    for start, stop, instead in _cuts(source.root, _BODY[language]):
        pieces += [source.data[end:start], instead]
        end = stop
    stubbed = b"".join([*pieces, source.data[end:]]).decode("utf-8", "replace")
    return "\n".join(line.rstrip() for line in stubbed.split("\n") if line.strip())


def _cuts(root: Node, body: bytes) -> list[tuple[int, int, bytes]]:
    """Return the stretches of bytes to replace, in order, and what takes their place."""
    cuts, stack = [], [root]
    while stack:
        node = stack.pop()
        inner = node.child_by_field_name("body") if node.type in _FUNCTIONS else None
        if node.type in _COMMENTS:
            cuts.append((node.start_byte, node.end_byte, b""))
        elif inner is not None:
            cuts.append((inner.start_byte, inner.end_byte, body))
        stack.extend(child for child in node.children if child != inner)
    return sorted(cuts)

"""The functions of a Python repository as far as its text tells: which can be asked for, and what each needs. Pure.

The levels are CoderEval's (Yu et al., "CoderEval: A Benchmark of Pragmatic Code Generation with
Generative Pre-trained Models", ICSE 2024, section 3): a function is ``self_contained`` if it needs
built-ins only, ``slib_runnable`` if also the standard library, ``plib_runnable`` if also packages of
others, ``class_runnable`` if also other members of its class, ``file_runnable`` if also other names of
its file, ``project_runnable`` if also other files of its project. The highest holds.

Only the body counts: signature, decorators and docstring are given. A function's own name is no need.
"""

from __future__ import annotations

import builtins
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from ctxbench.bench.formats.hygiene import Copies
from ctxbench.bench.functions.candidates import Definitions, ListedFunction, Static, test_places, unique
from ctxbench.bench.functions.mining import Project
from ctxbench.bench.functions.python.definitions import Definition, definition_at, definitions
from ctxbench.bench.functions.types import Level, Spot
from ctxbench.bench.judging.suites import ADDED
from ctxbench.bench.languages.base import FileFacts, InternalLoad
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import parse
from ctxbench.bench.languages.python.facts import ImportedName, StarImport
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.languages.python.reader import MODULE, RawLoad, Reader
from ctxbench.bench.languages.python.standard import STANDARD
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.types import Use

_ORDER = tuple(Level)
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__"}


class FileNames:
    """The names of one file, for asking what its functions need."""

    def __init__(self, path: str, text: str, internal: Iterable[InternalLoad], index: ModuleIndex) -> None:
        """Read a file.

        Args:
            path: where it lies.
            text: the whole file.
            internal: its loads of names of other files of the project.
            index: the project's modules.
        """
        self._path, self._index = path, index
        self._reader = Reader(Source(text, PYTHON))
        self._internal: dict[tuple[int, int], InternalLoad] = {(load.line, load.column): load for load in internal}

    def needs(self, function: Definition) -> tuple[Level, tuple[Use, ...]]:
        """Return the level of a function and the names of the project that its body needs."""
        level = Level.SELF_CONTAINED
        uses: list[Use] = []
        for load in self._loads(function):
            row, byte = load.node.start_point
            internal = self._internal.get((row, self._reader.source.column(row, byte)))
            if internal is not None:
                uses += internal.uses
                needed = Level.PROJECT
            else:
                needed = self._level(load, function)
            level = max(level, needed, key=_ORDER.index)
        return level, tuple(dict.fromkeys(uses))

    def _loads(self, function: Definition) -> Iterator[RawLoad]:
        for load in self._reader.loads:
            if function.first <= tuple(load.node.start_point) < (function.end, 0):
                yield load

    def _level(self, load: RawLoad, function: Definition) -> Level:
        if load.name == function.parameter:
            return Level.CLASS
        binder = load.scope.binder(load.name)
        if binder is None:
            return self._unbound(load.name, function)
        if load.name in binder.imports:
            imports = load.scope.find(load.name, load.node.start_byte) or ()
            if imports:
                return max((self._origin(self._reader.imports[index]) for index in imports), key=_ORDER.index)
        if binder.kind != MODULE:
            return Level.SELF_CONTAINED
        if load.name in function.owners:
            return Level.CLASS
        return Level.SELF_CONTAINED if load.name == function.name else Level.FILE

    def _unbound(self, name: str, function: Definition) -> Level:
        if name in ("super", "__class__") and function.owners:
            return Level.CLASS
        if name in _BUILTINS or not self._reader.stars:
            return Level.SELF_CONTAINED
        return max((self._origin(star) for star in self._reader.stars), key=_ORDER.index)

    def _origin(self, item: ImportedName | StarImport) -> Level:
        """Return the level of a name by the module that it is imported from."""
        if item.level or self._index.absolute(self._path, item.module) is not None:
            return Level.PROJECT  # also where that file only passes on what is another package's
        return Level.SLIB if item.module.partition(".")[0] in STANDARD else Level.PLIB


def read_functions(project: Project, tests: Iterable[str] = ()) -> Static[Definition]:
    """Find the documented functions of a repository's source files that could be asked for.

    Args:
        project: the repository.
        tests: files that hold tests, whatever they are called.
    """
    texts, hidden = project.snapshot.texts, hidden_of(project, tests)
    left_out: Counter[str] = Counter()
    bodies: Counter[str] = Counter()
    sources: dict[str, Definitions[Definition]] = {}
    unparsed: dict[str, str] = {}
    for path, text in texts.items():
        if is_hidden(path, hidden):
            left_out["test"] += 1
            continue
        tree = parse(text)
        if tree is None:
            left_out["syntax_error"] += 1
            unparsed[path] = text
            continue
        file_definitions = definitions(text, tree)
        # Also of files that give no samples: strategies see them.
        bodies += file_definitions.bodies
        if project.manifest.excludes(path):
            left_out["excluded"] += 1
        elif "\ufffd" in text:
            left_out["bad_encoding"] += 1
        else:
            sources[path] = file_definitions
    functions, drops = _usable_functions(texts, sources, bodies, Copies(unparsed))
    counts = {
        "files": len(texts),
        "source_files": len(sources),
        **{f"left_out_{reason}": count for reason, count in sorted(left_out.items())},
        "functions": sum(file_definitions.functions for file_definitions in sources.values()),
        "documented": sum(file_definitions.documented for file_definitions in sources.values()),
    }
    return Static(functions=functions, hidden=hidden, counts=counts, drops=drops)


def hidden_of(project: Project, tests: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the test files and folders of a repository, those of ours included; `tests` are files that hold some."""
    suite = project.manifest.tests
    places = test_places(project.snapshot.texts, (*(suite.paths if suite is not None else ()), *tests))
    return tuple(sorted({*places, ADDED})) if suite is not None and suite.added is not None else places


def uses_at(project: Project) -> Callable[[Spot], tuple[Use, ...]]:
    """Return what gives the names of the project that a function's body needs; reads every file when first asked."""
    names = functools.cache(lambda: _names(project.snapshot.texts))

    def of(spot: Spot) -> tuple[Use, ...]:
        text = project.snapshot.texts[spot.path]
        tree = parse(text)
        definition = definition_at(text, tree, spot.start) if tree is not None else None
        return names()(spot.path).needs(definition)[1] if definition is not None else ()

    return of


def _names(texts: Mapping[str, str]) -> Callable[[str], FileNames]:
    facts: dict[str, FileFacts] = {path: PYTHON.analyse(path, text) for path, text in texts.items()}
    loads = PYTHON.resolve(facts)
    index = ModuleIndex(texts, [])
    return functools.cache(lambda path: FileNames(path, texts[path], loads[path], index))


def _usable_functions(
    texts: Mapping[str, str],
    sources: Mapping[str, Definitions[Definition]],
    bodies: Mapping[str, int],
    unparsed: Copies,
) -> tuple[tuple[ListedFunction[Definition], ...], Counter[str]]:
    drops = sum((file_definitions.drops for file_definitions in sources.values()), Counter[str]())
    usable: dict[str, list[Definition]] = {}
    for path, file_definitions in sources.items():
        lines = texts[path].split("\n")
        usable[path] = []
        for definition in file_definitions.usable:
            if unparsed.elsewhere("\n".join(lines[definition.cursor.line : definition.end]), path):
                drops["body_elsewhere"] += 1
            else:
                usable[path].append(definition)
    return unique(usable, _names(texts), bodies, drops), drops

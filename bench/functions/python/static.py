"""Lists a Python repository's functions that can become samples, with their levels and the project names they use."""

from __future__ import annotations

import ast
import builtins
import functools
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ctxbench.bench.formats.hygiene import Copies
from ctxbench.bench.functions.candidates import Declaration, Definitions, Static, static, test_places
from ctxbench.bench.functions.mining import Level, Project, Spot
from ctxbench.bench.judging.suites import ADDED
from ctxbench.bench.languages.base import FileFacts, InternalLoad
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import FunctionNode, all_functions, docstring, functions, parse, statements
from ctxbench.bench.languages.python.modules import STANDARD, ImportedName, ModuleIndex, StarImport
from ctxbench.bench.languages.python.reader import MODULE, RawLoad, Reader
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.masking import is_hidden
from ctxbench.bench.types import Cursor, Use

_ACCESSORS = frozenset({"setter", "deleter", "getter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Declaration):
    """A Python function that may become a sample."""

    first: tuple[int, int]
    """0-based line and byte column of the first statement after the docstring."""
    parameter: str
    """A method's first parameter (``self`` or ``cls``); empty for functions and static methods."""
    statements: int


def definitions(text: str, tree: ast.Module) -> Definitions[Definition]:
    """Return a file's usable documented functions in line order, with counts of all its functions."""
    lines = text.split("\n")
    met = list(functions(tree))
    names = Counter(_qualified(node, owners) for node, owners in met if not _is_accessor(node))
    drops: Counter[str] = Counter()
    usable: list[Definition] = []
    documented = 0
    for node, owners in met:
        if not docstring(node):
            continue
        documented += 1
        reason = _reason(node) or ("shares_name" if names[_qualified(node, owners)] > 1 else "")
        if reason:
            drops[reason] += 1
        else:
            usable.append(described(node, owners, lines))
    bodies = Counter(_code(node) for node in all_functions(tree) if statements(node))
    return Definitions(len(met), documented, tuple(usable), drops, bodies)


def definition_at(text: str, tree: ast.Module, line: int) -> Definition | None:
    """Return the function declared on a 0-based line; None for a nested or empty function, and for other lines."""
    for node, owners in functions(tree):
        if node.lineno - 1 == line and statements(node):
            return described(node, owners, text.split("\n"))
    return None


def _qualified(node: FunctionNode, owners: Sequence[str]) -> str:
    return ".".join([*owners, node.name])


def _decorators(node: FunctionNode) -> Iterator[str]:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute):
            yield target.attr
        elif isinstance(target, ast.Name):
            yield target.id


def _is_accessor(node: FunctionNode) -> bool:
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr in _ACCESSORS for decorator in node.decorator_list
    )


def _reason(node: FunctionNode) -> str:
    marks = set(_decorators(node))
    if "overload" in marks:
        return "overload"
    if any(mark.startswith("abstract") for mark in marks):
        return "abstract"
    if _is_accessor(node):
        return "accessor"
    own = statements(node)
    if not own or all(map(_says_nothing, own)):
        return "empty_body"
    if own[0].lineno <= (node.body[0].end_lineno or 0):
        return "shares_line"
    return ""


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Raise) or statement.exc is None:
        return False
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _code(node: FunctionNode) -> str:
    return "\n".join(ast.dump(statement) for statement in statements(node))


def described(node: FunctionNode, owners: tuple[str, ...], lines: Sequence[str]) -> Definition:
    """Return the definition of a function, given its node and the lines of its file."""
    own = statements(node)
    start, end = node.lineno - 1, _end(lines, node)
    signature = _signature("\n".join(lines[start : node.body[0].end_lineno]), lines[start])
    # Without a docstring the body begins after the declaration.
    body = (node.body[0].end_lineno or node.lineno) if own != node.body else start + signature.count("\n") + 1
    first = own[0] if own else None
    if isinstance(first, FunctionNode | ast.ClassDef) and first.decorator_list:
        first_at = first.decorator_list[0].lineno - 1, first.decorator_list[0].col_offset
    else:
        first_at = (first.lineno - 1, first.col_offset) if first is not None else (end, 0)
    arguments = [*node.args.posonlyargs, *node.args.args]
    bound = bool(owners) and "staticmethod" not in set(_decorators(node)) and bool(arguments)
    return Definition(
        name=_qualified(node, owners),
        signature=signature,
        docstring=docstring(node) or "",
        start=start,
        cursor=Cursor(line=body, column=0),
        end=end,
        first=first_at,
        parameter=arguments[0].arg if bound else "",
        owners=owners,
        code=_code(node),
        statements=sum(isinstance(inner, ast.stmt) for statement in own for inner in ast.walk(statement)),
    )


def _end(lines: Sequence[str], node: FunctionNode) -> int:
    end = node.end_lineno or node.lineno
    last = end
    while end < len(lines):
        text = lines[end].strip()
        if text and not (text.startswith("#") and _indentation(lines[end]) > _indentation(lines[node.lineno - 1])):
            break
        end += 1
        last = end if text else last
    return last


def _indentation(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _signature(text: str, header: str) -> str:
    margin = header[: len(header) - len(header.lstrip())]
    lines = [line.removeprefix(margin) for line in text.split("\n")]
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and not depth:
            row, column = token.end
            return "\n".join([*lines[: row - 1], lines[row - 1][:column]])
    return lines[0]


_ORDER = tuple(Level)
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__"}


class FileNames:
    """A lookup of the level of each function in a file, and of the project names that the function uses."""

    def __init__(self, path: str, text: str, internal: Iterable[InternalLoad], index: ModuleIndex) -> None:
        """Read a file. `internal` lists the file's uses of names from other files of the project."""
        self._path, self._index = path, index
        self._reader = Reader(Source(text, PYTHON))
        self._internal: dict[tuple[int, int], InternalLoad] = {(load.line, load.column): load for load in internal}

    def needs(self, function: Definition) -> tuple[Level, tuple[Use, ...]]:
        """Return a function's level, and the project names that its body uses."""
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
        if item.level or self._index.absolute(self._path, item.module) is not None:
            return Level.PROJECT  # also if that file re-exports a name of another package
        return Level.SLIB if item.module.partition(".")[0] in STANDARD else Level.PLIB


def read_functions(project: Project, tests: Iterable[str] = ()) -> Static[Definition]:
    """List a repository's documented functions that can become samples. `tests` are files with tests."""
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
        # Count files without samples too: strategies see them.
        bodies += file_definitions.bodies
        if project.manifest.excludes(path):
            left_out["excluded"] += 1
        elif "\ufffd" in text:
            left_out["bad_encoding"] += 1
        else:
            sources[path] = file_definitions
    copies = Copies(unparsed)

    def elsewhere(path: str, definition: Definition) -> bool:
        lines = texts[path].split("\n") if unparsed else ()
        return bool(copies.elsewhere("\n".join(lines[definition.cursor.line : definition.end]), path))

    return static(sources, _names(texts), bodies, elsewhere, hidden=hidden, left_out=left_out)


def hidden_of(project: Project, tests: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a repository's test files and folders. `tests` are further files with tests."""
    suite = project.manifest.tests
    places = test_places(project.snapshot.texts, (*(suite.paths if suite is not None else ()), *tests))
    return tuple(sorted({*places, ADDED})) if suite is not None and suite.added is not None else places


def uses_at(project: Project) -> Callable[[Spot], tuple[Use, ...]]:
    """Return a lookup from a function to the project names that it uses. The lookup's first call reads every file."""
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

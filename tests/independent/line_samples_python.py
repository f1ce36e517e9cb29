"""The Python part of the line sample checker, based on the standard library's parser and tokenizer."""

import ast
import io
import sys
import tokenize
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tests.independent.line_samples import Read, Span

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)
_BLANK = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}


@dataclass(frozen=True)
class Bound:
    """A name that an import statement binds."""

    name: str
    span: Span
    dotted: str
    """The whole dotted name of ``import a.b.c`` without ``as``; otherwise empty."""
    module: str
    """The other file or folder of the project that the statement reaches; empty if there is none."""
    member: str | None
    scope: ast.AST | None
    """The class or function that contains the statement, or the whole file."""


@dataclass(frozen=True)
class _NameRead:
    """A place that reads a name bound by an import."""

    line: int
    column: int
    spelled: str
    """The name with the following parts on its line."""
    key: str
    """The imported name; for ``import a.b.c``, the whole dotted name."""
    quoted: bool
    bound: frozenset[Bound]


class Project:
    """The modules of a repository, found by their paths alone."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._folders = {"/".join(p.split("/")[:n]) for p in texts for n in range(p.count("/") + 1)}
        self._ends: dict[str, set[str]] = {}
        for path in [*texts, *self._folders]:
            parts = self._parts(path)
            for start in range(len(parts)):
                # A folder with an __init__.py is a package, so the names of its modules begin with the package's name.
                if "/".join([*parts[:start], "__init__.py"]) not in texts:
                    self._ends.setdefault(".".join(parts[start:]), set()).add(path)

    @staticmethod
    def _parts(path: str) -> list[str]:
        parts = path.removesuffix(".py").split("/")
        return parts[:-1] if parts[-1] == "__init__" else parts

    def places(self, path: str, module: str, level: int) -> set[str]:
        """Return the files and folders that an import in `path` may mean by `module`."""
        if not level:
            places = self._ends.get(module, set())
            # The standard library comes before a folder that only happens to have its name.
            return places & self.texts.keys() if module.partition(".")[0] in sys.stdlib_module_names else set(places)
        base = path.split("/")[:-level]
        parts = [*base, *module.split(".")] if module else base
        whole = "/".join(parts)
        return {place for place in (f"{whole}.py", f"{whole}/__init__.py", whole) if place in self.texts} or (
            {whole} & self._folders
        )

    def tree(self, path: str) -> ast.Module | None:
        """Return the syntax tree of a file, or None for a folder or a file that does not parse."""
        if path not in self._trees:
            self._trees[path] = parse(self.texts.get(path, "("))
        return self._trees[path]

    @cached_property
    def _trees(self) -> dict[str, ast.Module | None]:
        return {}


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a text, or None if it does not parse."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return None


class PythonFile:
    """One file of a project."""

    def __init__(self, path: str, project: Project) -> None:
        self.path, self.project, self.text = path, project, project.texts[path]
        self.tree = project.tree(path)
        self.parses = self.tree is not None
        if self.tree is None:
            return
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.lines = self.text.split("\n")
        self._imports = list(self._bound())
        self._stars = [
            node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
        ]
        self._reads = list(self._all_reads())

    # Lines

    @cached_property
    def _barred(self) -> set[int]:
        found: set[int] = set()
        for node in ast.walk(self.tree or ast.Module([], [])):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.update(range(*_span(node)))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    found.update(range(*_span(decorator)))
                found.update(range(node.lineno - 1, self._colon(node) + 1))
            strings = ast.Constant | ast.JoinedStr
            if isinstance(node, strings) and not isinstance(getattr(node, "value", ""), int | float | complex):
                start, end = _span(node)
                pieces = [token for token in self._strings if start <= token[0] < end]
                for first, last in pieces:
                    if last > first:
                        found.update(range(first, last + 1))
        return found

    def _colon(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
        """Return the line of the colon that ends a header."""
        depth = 0
        for token in self._tokens:
            if token.type == tokenize.OP and token.start >= (node.lineno, node.col_offset):
                depth += (token.string in "([{") - (token.string in ")]}")
                if token.string == ":" and depth == 0:
                    return token.start[0] - 1
        return node.lineno - 1

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        return list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @cached_property
    def _strings(self) -> list[Span]:
        kinds = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        return [(token.start[0] - 1, token.end[0] - 1) for token in self._tokens if token.type in kinds]

    @cached_property
    def _columns(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for token in self._tokens:
            if token.type not in _BLANK and token.start[0] == token.end[0]:
                found.setdefault(token.start[0] - 1, []).append(token.start[1])
        return found

    def barred(self, line: int) -> bool:
        return line in self._barred

    def tokens(self, line: int) -> Sequence[int]:
        return self._columns.get(line, [])

    # Imports

    def _bound(self) -> Iterator[Bound]:
        for node in ast.walk(self.tree or ast.Module([], [])):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    dotted = "" if alias.asname else alias.name
                    name = alias.asname or alias.name.partition(".")[0]
                    yield Bound(name, _span(node), dotted, self._other(alias.name, 0, None), None, self._scope(node))
            elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
                for alias in node.names:
                    module = self._other(node.module or "", node.level, alias.name)
                    yield Bound(alias.asname or alias.name, _span(node), "", module, alias.name, self._scope(node))

    def _scope(self, node: ast.AST | None) -> ast.AST | None:
        while node is not None and not isinstance(node, _SCOPES):
            node = self.parents.get(node)
        return node

    def _other(self, module: str, level: int, member: str | None) -> str:
        """Return the other file or folder of the project that an import reaches, or an empty text."""
        places = self.project.places(self.path, module, level)
        if member is not None:
            places = _origins(self.project, self.path, places, module, level, member, set())
        # Several star imports may provide a name. If it may be the file's own name, it counts as such.
        return "" if self.path in places else min(places, default="")

    # Reads

    def _all_reads(self) -> Iterator[_NameRead]:
        """Yield the reads of names bound by imports."""
        for node in ast.walk(self.tree or ast.Module([], [])):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                bound = frozenset(item for item in self._imports if item.name == node.id)
                if (bound or self._stars) and not self._shadowed(node):
                    dotted = self._dotted(bound, node)
                    yield _NameRead(
                        node.lineno - 1,
                        len(self.lines[node.lineno - 1].encode()[: node.col_offset].decode("utf-8", "replace")),
                        ".".join([node.id, *self._chain(node)]),
                        dotted or node.id,
                        self._quoted(node),
                        frozenset(item for item in bound if item.dotted == dotted or not (dotted and item.dotted)),
                    )

    def _chain(self, node: ast.expr, *, anywhere: bool = False) -> Iterator[str]:
        line = node.lineno
        parent = self.parents.get(node)
        while isinstance(parent, ast.Attribute) and (anywhere or parent.end_lineno == line):
            yield parent.attr
            parent = self.parents.get(parent)

    def _dotted(self, bound: frozenset[Bound], node: ast.Name) -> str:
        """Return the longest imported dotted name, such as ``a.b.c``, that begins the read name, or an empty text."""
        spelled = ".".join([node.id, *self._chain(node, anywhere=True)]) + "."
        whole = [item.dotted for item in bound if item.module and item.dotted and spelled.startswith(f"{item.dotted}.")]
        return max(whole, key=len, default="")

    def _quoted(self, node: ast.AST | None) -> bool:
        while node is not None and not isinstance(node, ast.stmt):
            if isinstance(node, ast.JoinedStr):
                return True
            node = self.parents.get(node)
        return False

    def _shadowed(self, node: ast.Name) -> bool:
        """Return whether something other than an import binds the name."""
        inner: ast.AST = node
        scope = self.parents.get(node)
        direct = True
        while scope is not None:
            if isinstance(scope, _SCOPES) and self._inside(scope, inner):
                if direct or not isinstance(scope, ast.ClassDef):
                    stored, imported = self._names(scope)
                    if imported.get(node.id, node.lineno) < node.lineno:
                        return False
                    if node.id in stored:
                        return True
                direct = False
            inner, scope = scope, self.parents.get(scope)
        return node.id not in self._names(self.tree)[1] and not self._stars

    @staticmethod
    def _inside(scope: ast.AST, child: ast.AST) -> bool:
        """Return whether the scope evaluates a child. Decorators, defaults, annotations and bases are outside."""
        if isinstance(scope, ast.Lambda):
            return child is scope.body
        if isinstance(scope, _COMPREHENSIONS):
            return True
        return child in getattr(scope, "body", [])

    def _names(self, scope: ast.AST | None) -> tuple[set[str], dict[str, int]]:
        if scope not in self._scope_names:
            self._scope_names[scope] = _names(scope)
        return self._scope_names[scope]

    @cached_property
    def _scope_names(self) -> dict[ast.AST | None, tuple[set[str], dict[str, int]]]:
        return {}

    def reads(self, line: int) -> Sequence[Read]:
        found = []
        for read in self._reads:
            if read.line == line and not read.quoted:
                # Next to an import of the project there may be an alternative import, for example of a compiled module.
                scopes = {item.scope for item in read.bound if item.module}
                spans = frozenset(item.span for item in read.bound if item.module or item.scope in scopes)
                spans = spans if read.bound else self._from_stars(read.key)
                first = not any(other.line < line and other.key == read.key for other in self._reads)
                found.append(Read(read.spelled, read.column, spans, first))
        return found

    def _from_stars(self, name: str) -> frozenset[Span]:
        return frozenset(
            _span(node)
            for node in self._stars
            for place in self.project.places(self.path, node.module or "", node.level)
            if place != self.path and _public(self.project, place, name, set())
        )

    def defines(self, module: str, name: str, kind: str) -> bool:
        places = self.project.places("", module, 0)
        if kind in ("module", "unknown"):
            return bool(places)
        leaf = name.rpartition(".")[2]
        leaves = {item.member or leaf for item in self._imports if item.name == leaf} | {leaf}
        trees = [tree for tree in map(self.project.tree, places) if tree is not None]
        # Other files may export the definition under another name, so any definition of the kind is accepted.
        return any(_has(tree, kind, leaves) or _has(tree, kind, None) for tree in trees)


def _span(node: ast.stmt | ast.expr) -> Span:
    return node.lineno - 1, node.end_lineno or node.lineno


def _names(scope: ast.AST | None) -> tuple[set[str], dict[str, int]]:
    """Return the names that a scope stores, and the names that it imports with their first import's line."""
    stored: set[str] = set()
    imported: dict[str, int] = {}
    elsewhere: set[str] = set()
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        stored.update(node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg))
    body = getattr(scope, "body", [])
    pending = list(body) if isinstance(body, list) else [body]
    if isinstance(scope, _COMPREHENSIONS):
        pending = list(scope.generators)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                imported[name] = min(imported.get(name, node.lineno), node.lineno)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere.update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            stored.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            stored.add(node.name)
        elif not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
    return stored - elsewhere, imported


def _origins(
    project: Project, path: str, places: set[str], module: str, level: int, member: str, seen: set[tuple[str, str]]
) -> set[str]:
    """Return the files and folders of the project that define what ``from module import member`` binds in `path`."""
    found = project.places(path, f"{module}.{member}".strip("."), level)
    for place in places - {key for key, name in seen if name == member}:
        seen.add((place, member))
        tree = project.tree(place)
        if tree is None:
            continue
        if _has(tree, "", {member}):
            found.add(place)
            continue
        imports = list(_sources(tree, member))
        for origin, deeper, name in imports:
            there = project.places(place, origin, deeper)
            found |= _origins(project, place, there, origin, deeper, name, seen) if name else there
        if not imports or _open(project, place, tree):
            found.add(place)  # created at run time, or provided by another package
    return found


def _open(project: Project, path: str, tree: ast.Module) -> bool:
    """Return whether a module imports all names of a module outside the project."""
    stars = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
    return any(not project.places(path, node.module or "", node.level) for node in stars)


def _sources(tree: ast.Module, name: str) -> Iterator[tuple[str, int, str]]:
    """Yield module, level and member of each import that may bind a name. Without a member, it binds the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname == name:
                    yield alias.name, 0, ""
                elif not alias.asname and alias.name.partition(".")[0] == name:
                    yield name, 0, ""
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*" or (alias.asname or alias.name) == name:
                    yield node.module or "", node.level, name if alias.name == "*" else alias.name


def _public(project: Project, place: str, name: str, seen: set[str]) -> bool:
    """Return whether a star import of a module may import the name from the project."""
    tree = project.tree(place)
    if tree is None or place in seen:
        return False
    seen.add(place)
    if _has(tree, "", {name}):
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            places = project.places(place, node.module or "", node.level)
            if node.names[0].name == "*":
                if any(_public(project, one, name, seen) for one in places):
                    return True
            elif places and any((alias.asname or alias.name) == name for alias in node.names):
                return True
    return False


def _has(tree: ast.Module, kind: str, names: set[str] | None) -> bool:
    """Return whether a module's top level defines one of the names (None: any) as this kind (empty: any)."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = "class" if isinstance(node, ast.ClassDef) else "function"
            if kind in ("", own) and (names is None or node.name in names):
                return True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if kind in ("", "variable") and (names is None or node.id in names):
                return True
        elif not isinstance(node, _SCOPES):
            pending += ast.iter_child_nodes(node)
    return False

"""Finds what names refer to in a file, the file's repository and a completion."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ctxbench.bench.judging.python.plain import allowed
from ctxbench.bench.languages.python import asts

_WORD = re.compile(rb"[A-Za-z_]\w*")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_TEST_PATH = re.compile(r"(.*/)?(tests?/.*|conftest\.py|test_[^/]*\.py|[^/]*_test\.py)")
TEST_TEXT = re.compile(
    r"(.*[/\\])?(tests?[/\\].*|conftest.*|test_.*\.py|.*_test\.py)|pytest.*|PYTEST_.*|unittest.*|ctxbench.*"
)
_TEST_MODULE = re.compile(r"_?pytest|pluggy|unittest|mock|doctest|conftest|tests?|test_.*|.*_tests?|ctxbench_.*")


@dataclass(frozen=True, slots=True)
class RepositoryWords:
    """The words in a repository's Python files, with separate sets for sources and tests."""

    sources: frozenset[str]
    tests: frozenset[str]

    @classmethod
    def of(cls, tree: Mapping[str, bytes]) -> RepositoryWords:
        """Read the words in all Python files of a repository."""
        sources: set[bytes] = set()
        tests: set[bytes] = set()
        for path, content in tree.items():
            if path.endswith(".py"):
                (tests if _TEST_PATH.fullmatch(path) else sources).update(_WORD.findall(content))
        return cls(_decoded(sources), _decoded(tests))


def _decoded(words: set[bytes]) -> frozenset[str]:
    return frozenset(word.decode("ascii", "replace") for word in words)


@dataclass(frozen=True, slots=True)
class BoundNames:
    """The names that a file or a completion binds, and what they refer to."""

    modules: dict[str, str] = field(default_factory=dict)
    members: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Module and original name of each imported name, by the name that the code uses."""
    imports: set[str] = field(default_factory=set)
    defined: dict[str, str] = field(default_factory=dict)
    """Dump of the syntax tree of each function or class, by name; empty for other values."""
    starred: list[str] = field(default_factory=list)

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Add the names that an import statement binds."""
        if isinstance(node, ast.Import):
            for name in node.names:
                self.imports.add(name.name)
                self.modules[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
            return
        module = "." * node.level + (node.module or "")
        self.imports.add(module)
        for name in node.names:
            if name.name == "*":
                self.starred.append(module)
            elif allowed.is_module(f"{module}.{name.name}"):
                self.modules[name.asname or name.name] = f"{module}.{name.name}"
            else:
                self.members[name.asname or name.name] = (module, name.name)

    def knows(self, name: str) -> bool:
        """Return whether a name is bound."""
        return name in self.modules or name in self.members or name in self.defined

    def module(self, node: ast.expr) -> str:
        """Return the module that an expression refers to; empty if unknown."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, "")
        if isinstance(node, ast.Attribute):
            inner = self.module(node.value)
            if inner and (allowed.is_module(f"{inner}.{node.attr}") or f"{inner}.{node.attr}" in self.imports):
                return f"{inner}.{node.attr}"
        return ""

    def path(self, node: ast.expr) -> str:
        """Return the dotted path of a name, or of an attribute of an imported name; empty for other expressions."""
        if isinstance(node, ast.Name):
            if node.id in self.members:
                return ".".join(self.members[node.id])
            return node.id
        if not isinstance(node, ast.Attribute):
            return ""
        inner = self.module(node.value)
        if not inner and isinstance(node.value, ast.Name) and node.value.id in self.members:
            inner = self.path(node.value)
        return f"{inner}.{node.attr}" if inner else ""


@lru_cache(maxsize=32)
def of_file(source: bytes) -> BoundNames:
    """Return the names that a file binds at top level; no names if the file cannot be parsed."""
    names = BoundNames()
    tree = asts.parse(source)
    for node in _top(tree) if tree else ():
        _bind(names, node)
    return names


def of_text(tree: ast.Module) -> BoundNames:
    """Return the names that a completion imports anywhere or defines at top level."""
    names = BoundNames()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.add_import(node)
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            _bind(names, node)
    return names


def _top(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, asts.FunctionNode | ast.ClassDef | ast.Lambda):
            yield from _top(child)


def _bind(names: BoundNames, node: ast.AST) -> None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names.add_import(node)
    elif isinstance(node, asts.FunctionNode | ast.ClassDef):
        names.defined[node.name] = ast.dump(node)
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                names.defined.setdefault(inner.id, "")


def is_reaching(name: str) -> bool:
    """Return whether code can use a name to reach the interpreter, the tests or files."""
    return name in allowed.REACHING or name.strip("_") in allowed.REACHING


def is_of_tests(module: str) -> bool:
    """Return whether a module belongs to tests or test runners."""
    return any(_TEST_MODULE.fullmatch(part) for part in module.split("."))


def is_dunder(name: str) -> bool:
    """Return whether a name begins and ends with two underscores."""
    return name.startswith("__") and name.endswith("__")


def words(text: str) -> list[str]:
    """Return the identifiers in a text."""
    return _IDENTIFIER.findall(text)

"""Checks what a completion defines in addition to its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ctxbench.bench.judging.python.plain import allowed
from ctxbench.bench.judging.python.plain.names import BoundNames, RepositoryWords, is_dunder
from ctxbench.bench.languages.python import asts


def decorators(node: ast.AST) -> list[ast.expr]:
    """Return a function's or class's decorators; an empty list for other nodes."""
    return node.decorator_list if isinstance(node, asts.FunctionNode | ast.ClassDef) else []


def dropped(tree: ast.Module, own: str) -> Iterator[ast.AST]:
    """Yield code without effect: the function's decorators, which `splice` drops, and constants such as docstrings."""
    for node in tree.body:
        if isinstance(node, asts.FunctionNode) and node.name == own.rpartition(".")[2]:
            yield from node.decorator_list
            break
    for each in ast.walk(tree):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            yield each.value


def is_changed(node: ast.Attribute | ast.Subscript) -> bool:
    """Return whether an attribute or item is set or deleted."""
    return isinstance(node.ctx, ast.Store | ast.Del)


def members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that a class's body binds."""
    for inner in node.body:
        if isinstance(inner, asts.FunctionNode | ast.ClassDef):
            yield inner.name
        else:
            yield from (part.id for part in ast.walk(inner) if isinstance(part, ast.Name) and not _is_read(part))


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def written_annotations(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the strings in annotations. Some libraries evaluate such strings as code."""
    found: list[ast.expr | None] = []
    if isinstance(node, ast.arg | ast.AnnAssign):
        found = [node.annotation]
    elif isinstance(node, asts.FunctionNode):
        found = [node.returns]
    for annotation in found:
        for part in ast.walk(annotation) if annotation else ():
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part


def shown(node: ast.expr) -> str:
    """Return the first 60 characters of an expression, on one line."""
    return " ".join(ast.unparse(node).split())[:60]


_COMMON = frozenset(["name", "value", "key", "text", "data", "count", "index"])
"""Names that are common in tests. A completion's classes may define them as attributes."""

Findings = Iterator[tuple[ast.AST, str]]


def faults_outside_function(tree: ast.Module, file: BoundNames, own: str, repository: RepositoryWords) -> Findings:
    """Yield faults: names that hide others, code that runs on import, and a function that is not defined just once."""
    leaf = own.rpartition(".")[2]
    found = 0
    for node in tree.body:
        if isinstance(node, asts.FunctionNode | ast.ClassDef):
            if node.name == leaf and isinstance(node, asts.FunctionNode):
                found += 1
                continue
            if file.defined.get(node.name) == ast.dump(node):
                continue
            yield from _hides(node, node.name, file, repository)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node, file, repository)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield from _hides(node, target.id, file, repository)
                else:
                    yield node, "runs when its file is imported"
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node, "runs when its file is imported"
    if found != 1:
        yield tree, f"defines its function {found} times"


def _hides(node: ast.AST, name: str, file: BoundNames, repository: RepositoryWords) -> Findings:
    known = file.knows(name) or name in allowed.BUILTINS or name in repository.tests
    if known or is_dunder(name) or name.startswith(("test", "pytest", "setUp", "tearDown", "setup", "teardown")):
        yield node, f"binds {name} beside its function"


def _imports(node: ast.Import | ast.ImportFrom, file: BoundNames, repository: RepositoryWords) -> Findings:
    inner = BoundNames()
    inner.add_import(node)
    for name, module in inner.modules.items():
        if file.modules.get(name) != module and (file.knows(name) or name != module.rpartition(".")[2]):
            yield from _hides(node, name, file, repository)
    for name, member in inner.members.items():
        if file.members.get(name) != member and (file.knows(name) or name != member[1] or name in allowed.BUILTINS):
            yield from _hides(node, name, file, repository)


def classes(tree: ast.Module, names: BoundNames, repository: RepositoryWords) -> Findings:
    """Yield the features of a completion's classes that a plain record with methods does not need."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _class(node, names, repository)


def _class(node: ast.ClassDef, names: BoundNames, repository: RepositoryWords) -> Findings:
    if node.keywords:
        yield node, "creates a class with a metaclass or other keyword arguments"
    if len(node.bases) > 1:
        yield node, "creates a class with several bases"
    for base in node.bases:
        path = names.path(base)
        if path.rpartition(".")[2] not in allowed.BASES or (names.knows(path) and path not in names.members):
            yield node, f"creates a class with the base {ast.unparse(base)[:60]}"
    for inner in node.body:
        for name in _defined(inner):
            if is_dunder(name):
                if name not in allowed.METHODS | allowed.CLASS_NAMES:
                    yield inner, f"defines {name}"
            elif name in allowed.VALUES:
                yield inner, f"defines {name}, a method of builtin values"
            elif name in repository.tests and name not in _COMMON:
                yield inner, f"defines {name}, a name that tests use"
        if not isinstance(inner, asts.FunctionNode | ast.Assign | ast.AnnAssign | ast.Expr | ast.Pass | ast.ClassDef):
            yield inner, "runs statements in a class"


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, asts.FunctionNode | ast.ClassDef):
        yield node.name
    else:
        yield from (
            part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
        )

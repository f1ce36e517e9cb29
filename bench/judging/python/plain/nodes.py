"""Parts of syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ctxbench.bench.languages.python import asts


def decorators(node: ast.AST) -> list[ast.expr]:
    """Return the decorators of a function or class."""
    return node.decorator_list if isinstance(node, asts.FunctionNode | ast.ClassDef) else []


def dropped(tree: ast.Module, own: str) -> Iterator[ast.AST]:
    """Yield the decorators of the function itself, which are dropped, and docstrings."""
    for node in tree.body:
        if isinstance(node, asts.FunctionNode) and node.name == own.rpartition(".")[2]:
            yield from node.decorator_list
            break
    for each in ast.walk(tree):
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            yield each.value


def is_changed(node: ast.Attribute | ast.Subscript) -> bool:
    """Say whether an attribute or item is set or deleted."""
    return isinstance(node.ctx, ast.Store | ast.Del)


def members(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names that the body of a class binds."""
    for inner in node.body:
        if isinstance(inner, asts.FunctionNode | ast.ClassDef):
            yield inner.name
        else:
            yield from (part.id for part in ast.walk(inner) if isinstance(part, ast.Name) and not _is_read(part))


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def written_annotations(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the annotations that are texts, which some libraries evaluate."""
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
    """Return the beginning of an expression on one line."""
    return " ".join(ast.unparse(node).split())[:60]

"""Creates faulty versions of a Python function to evaluate the function's tests. No version should loop forever."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from ctxbench.bench.functions.choose import faulty_versions
from ctxbench.bench.languages.python import asts

_Change = Callable[[ast.AST], ast.AST | None]
"""A function that takes a copy of a node, which the function may change, and returns the replacement."""
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Delete, ast.Raise)


def mutants(text: str, most: int) -> tuple[str, ...]:
    """Create up to `most` distinct faulty versions of a function. The order depends only on `text`."""
    tree = asts.parse(text)
    if tree is None or not tree.body or not isinstance(tree.body[0], asts.FunctionNode):
        return ()
    places = _places(tree, tree.body[0])
    return faulty_versions(ast.unparse(tree), places, text, lambda place: _changed(tree, *place), most)


def _places(tree: ast.Module, function: asts.FunctionNode) -> Iterator[tuple[str, tuple[int, _Change]]]:
    own = {id(node) for statement in asts.statements(function) for node in ast.walk(statement)}
    endless = {
        id(node)
        for loop in ast.walk(function)
        if isinstance(loop, ast.While)
        for part in [loop.test, *loop.body]
        for node in ast.walk(part)
    }
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in own:
            yield from ((kind, (number, change)) for kind, change in _changes(node, loops=id(node) in endless))


def _changes(node: ast.AST, *, loops: bool) -> Iterator[tuple[str, _Change]]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return", lambda _: ast.Return(ast.Constant(None))
    if isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        yield "call", lambda call: call.args[0] if isinstance(call, ast.Call) else call
    if isinstance(node, ast.BoolOp):
        yield "bool", _other_bool
    if isinstance(node, ast.Constant):
        yield "constant", _other_constant
    if loops:
        return
    if isinstance(node, _SIMPLE) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        yield "statement", lambda _: ast.Pass()
    if isinstance(node, ast.If | ast.IfExp):
        yield "condition", _negated
    if isinstance(node, ast.For | ast.AsyncFor):
        yield "loop", lambda _: ast.Pass()
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield "comparison", _other_comparison
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield "operator", _other_operator


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _negated(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _other_bool(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    return node


def _other_constant(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, ast.Constant):
        return None
    if isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node.value, int | float):
        return ast.Constant(node.value + 1)
    if isinstance(node.value, str):
        return ast.Constant("" if node.value else "x")
    if isinstance(node.value, bytes):
        return ast.Constant(b"" if node.value else b"x")
    return None


def _other_comparison(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.Compare):
        node.ops[0] = _COMPARISONS[type(node.ops[0])]()
    return node


def _other_operator(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.BinOp):
        node.op = _OPERATORS[type(node.op)]()
    return node


class _Replacing(ast.NodeTransformer):
    def __init__(self, target: ast.AST, new: ast.AST) -> None:
        self._target, self._new = target, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._target else self.generic_visit(node)


def _changed(tree: ast.Module, place: int, change: _Change) -> str:
    whole: ast.AST = copy.deepcopy(tree)
    node = next(node for number, node in enumerate(ast.walk(whole)) if number == place)
    new = change(copy.copy(node))
    if new is not None:
        whole = _Replacing(node, new).visit(whole)
    return ast.unparse(ast.fix_missing_locations(whole))

"""Finds the objects that a completion created and therefore may change. All scopes count as one scope."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ctxbench.bench.judging.python.plain import allowed
from ctxbench.bench.judging.python.plain.names import BoundNames, is_dunder
from ctxbench.bench.languages.python import asts

_OLD = frozenset(
    ["next", "getattr", "min", "max", "sum", "super", "property", "map", "filter", "zip", "reversed", "type"]
)
"""Built-in functions that may return an existing object."""
_ELEMENTS = frozenset(["split", "rsplit", "splitlines"])
_NEW = ast.Constant(None)
_DISPLAYS = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_VALUES = ast.Constant | ast.JoinedStr | ast.Lambda | ast.BinOp | ast.Compare | ast.UnaryOp
_UNKNOWN = ast.Name("", ast.Load())
_NEW_SHELL = ast.Call(ast.Name("list", ast.Load()), [_UNKNOWN], [])
"""An expression that stands for a new container of existing objects."""


class Ownership:
    """A lookup of the objects that a completion created and may change, by the values that it binds to names."""

    def __init__(self, tree: ast.Module, names: BoundNames, own: str) -> None:
        """Read a completion. The completion or its file binds `names`; `own` is the function's name."""
        self._names = names
        self.bindings: dict[str, list[ast.expr | None]] = {}
        self._contents: dict[str, list[ast.expr]] = {}
        self._classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self._selves = set(_selves(tree, own))
        inner = {id(node) for node in tree.body}
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            for name, value in _bound(node, outermost=id(node) in inner):
                self.bindings.setdefault(name, []).append(value)
            for name, value in _put(node, called):
                self._contents.setdefault(name, []).append(value)
        self._aliased = {
            part.id
            for values in self.bindings.values()
            for value in values
            if isinstance(value, ast.Name | ast.IfExp | ast.BoolOp | ast.NamedExpr)
            for part in ast.walk(value)
            if isinstance(part, ast.Name)
        }
        for method in _methods(tree, own):
            # `_selves` records the uses of this name that may be changed.
            for argument in _object(method):
                self.bindings[argument.arg].remove(None)

    def is_self(self, node: ast.expr) -> bool:
        """Return whether an expression is the object that the method was called on."""
        return isinstance(node, ast.Name) and id(node) in self._selves and not self.bindings.get(node.id)

    def is_new(self, node: ast.expr | None, seen: frozenset[str] = frozenset()) -> bool:
        """Return whether an expression refers to an object that the completion created."""
        if isinstance(node, ast.Name):
            values = self.bindings.get(node.id, [])
            if node.id in seen:
                return True
            return bool(values) and all(self.is_new(value, seen | {node.id}) for value in values)
        if isinstance(node, ast.IfExp):
            return self.is_new(node.body, seen) and self.is_new(node.orelse, seen)
        if isinstance(node, ast.BoolOp):
            return all(self.is_new(value, seen) for value in node.values)
        if isinstance(node, ast.NamedExpr):
            return self.is_new(node.value, seen)
        if isinstance(node, ast.Call):
            return self._makes(node.func)
        return isinstance(node, _DISPLAYS | _VALUES)

    def may_change(self, node: ast.expr) -> bool:
        """Return whether the completion may change the contents of the object that an expression refers to."""
        if self.is_new(node) or self.is_self(node):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
            return self.may_change(ast.Subscript(node.func.value, node, ast.Load()))
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return False
        root: ast.expr = node
        depth, first = 0, ""
        while isinstance(root, ast.Attribute | ast.Subscript):
            first = root.attr if isinstance(root, ast.Attribute) else ""
            root, depth = root.value, depth + 1
        if isinstance(root, ast.Name) and self.is_self(root):
            return depth <= 2 and all(map(self.is_new, self._contents.get(f"{root.id}.{first}", [])))
        return depth == 1 and self._is_new_inside(root)

    def _is_new_inside(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name) or not self.is_new(node) or node.id in self._aliased:
            return False
        values = [value for value in self.bindings[node.id] if value is not None]
        return all(map(self._is_new_whole, [*values, *self._contents.get(node.id, [])]))

    def _is_new_whole(self, node: ast.expr | None) -> bool:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return all(map(self._is_new_whole, node.elts))
        if isinstance(node, ast.Dict):
            return all(map(self._is_new_whole, node.values))
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self._is_new_whole(node.elt)
        if isinstance(node, ast.DictComp):
            return self._is_new_whole(node.value)
        if isinstance(node, ast.Call):
            inner = [*node.args, *(keyword.value for keyword in node.keywords)]
            kinds = {value.id for value in inner if isinstance(value, ast.Name)} <= {"list", "dict", "set", "int"}
            own = isinstance(node.func, ast.Name) and node.func.id in self._classes
            making = isinstance(node.func, ast.Attribute) and node.func.attr in allowed.MAKING
            names_only = kinds and all(isinstance(value, ast.Name) for value in inner)
            return self._makes(node.func) and names_only and not own and not making
        if isinstance(node, ast.BinOp):
            return self._is_new_whole(node.left) and self._is_new_whole(node.right)
        return isinstance(node, _VALUES)

    def _makes(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name) and function.id in self._classes:
            return True
        if isinstance(function, ast.Name) and function.id in allowed.BUILTINS:
            known = function.id in self.bindings or self._names.knows(function.id)
            return function.id not in _OLD and not known
        path = self._names.path(function)
        if isinstance(function, ast.Attribute) and function.attr in allowed.MAKING and not path:
            return True
        module, _, name = path.rpartition(".")
        if module and allowed.is_allowed(module, name):
            return path not in allowed.SHARING
        known = isinstance(function, ast.Attribute) or (
            isinstance(function, ast.Name) and self._names.knows(function.id) and function.id not in self.bindings
        )
        return bool(known and path and name.lstrip("_")[:1].isupper())


def _methods(tree: ast.Module, own: str) -> Iterator[asts.FunctionNode]:
    for node in tree.body:
        if isinstance(node, asts.FunctionNode) and "." in own and node.name == own.rpartition(".")[2]:
            yield node
    for each in ast.walk(tree):
        if isinstance(each, ast.ClassDef):
            yield from (inner for inner in each.body if isinstance(inner, asts.FunctionNode))


def _object(method: asts.FunctionNode) -> list[ast.arg]:
    first = [*method.args.posonlyargs, *method.args.args][:1]
    return [argument for argument in first if argument.arg in ("self", "cls")]


def _selves(tree: ast.Module, own: str) -> Iterator[int]:
    """Yield the ids of names that refer to a method's own object, if the method may change it.

    In the completion's own classes, only special methods count, because others may be called with any object.
    """
    for method in _methods(tree, own):
        if (is_dunder(method.name) and not method.decorator_list) or method in tree.body:
            for argument in _object(method):
                yield from (id(n) for n in ast.walk(method) if isinstance(n, ast.Name) and n.id == argument.arg)


def _bound(node: ast.AST, *, outermost: bool) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(node, ast.arguments):
        for argument in (*node.posonlyargs, *node.args, *node.kwonlyargs):
            yield argument.arg, None
        yield from ((argument.arg, _NEW_SHELL) for argument in (node.vararg, node.kwarg) if argument)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _to(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign):
        yield from _to(node.target, _combined(node) if isinstance(node, ast.AugAssign) else node.value)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield from _each(node.target, node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars:
        yield from _to(node.optional_vars, None)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name, None
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, _NEW_SHELL
    elif isinstance(node, asts.FunctionNode):
        yield node.name, None if outermost else _NEW
    elif isinstance(node, ast.ClassDef):
        yield node.name, None


def _combined(node: ast.AugAssign) -> ast.expr:
    return ast.BinOp(node.target, node.op, node.value)


def _to(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Starred) and isinstance(target.value, ast.Name):
        yield target.value.id, _NEW_SHELL
    elif isinstance(target, ast.List | ast.Tuple):
        pairs = isinstance(value, ast.List | ast.Tuple) and len(value.elts) == len(target.elts)
        values: list[ast.expr | None] = [None] * len(target.elts)
        if pairs and isinstance(value, ast.List | ast.Tuple):
            values = [None if isinstance(each, ast.Starred) else each for each in value.elts]
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "divmod":
            values = [_NEW] * len(target.elts)
        for inner, each in zip(target.elts, values, strict=True):
            yield from _to(inner, each)


def _each(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[str, ast.expr | None]]:
    function = iterated.func if isinstance(iterated, ast.Call) else None
    name = function.id if isinstance(function, ast.Name) else ""
    if name == "range" or (isinstance(function, ast.Attribute) and function.attr in _ELEMENTS):
        yield from _to(target, _NEW)
    elif name == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        yield from _to(target.elts[0], _NEW)
        yield from _to(target.elts[1], None)
    else:
        yield from _to(target, None)


def _put(node: ast.AST, called: set[int]) -> Iterator[tuple[str, ast.expr]]:
    targets: list[ast.expr] = []
    values: list[ast.expr] = []
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    elif isinstance(node, ast.Attribute) and node.attr in allowed.CHANGING and id(node) not in called:
        if isinstance(node.value, ast.Name):
            yield node.value.id, _UNKNOWN
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        targets = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.expr)]
        values = [node.value]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets, values = [node.func], [*node.args[-1:], *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.For | ast.AsyncFor):
        targets, values = [node.target], [node.iter]
    for target in targets:
        if isinstance(target, ast.Attribute | ast.Subscript) and isinstance(target.value, ast.Name):
            yield from ((target.value.id, value) for value in values)
            if isinstance(target, ast.Attribute) and not isinstance(node, ast.Call):
                yield from ((f"{target.value.id}.{target.attr}", value) for value in values)

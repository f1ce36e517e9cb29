"""Checks with a syntax tree whether a Python completion uses only allow-listed code (see docs/verdicts.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctxbench.bench.judging.python.plain import allowed
from ctxbench.bench.judging.python.plain.definitions import (
    classes,
    decorators,
    dropped,
    faults_outside_function,
    is_changed,
    members,
    shown,
    written_annotations,
)
from ctxbench.bench.judging.python.plain.names import (
    TEST_TEXT,
    BoundNames,
    RepositoryWords,
    is_dunder,
    is_of_tests,
    is_reaching,
    of_file,
    of_text,
    words,
)
from ctxbench.bench.judging.python.plain.ownership import Ownership
from ctxbench.bench.judging.python.text import shift
from ctxbench.bench.languages.python import asts

__all__ = ["Remark", "RepositoryWords", "remarks"]

_FIELD_OF_FIELD = re.compile(r"\{[^{}]*[.\[]")


_RECORDS = ("collections.namedtuple", "typing.NamedTuple", "typing.TypedDict", "enum.Enum", "enum.IntEnum")
_CONSTANTS = frozenset(("None", "True", "False", "Ellipsis", "__debug__", "__name__"))


class Remark(NamedTuple):
    """A reason why part of a completion is outside the allow-list, and the line of that part."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}"


class CompletionReader:
    """A check of one completion against the allow-list."""

    def __init__(
        self,
        tree: ast.Module,
        names: BoundNames,
        file: BoundNames,
        repository: RepositoryWords,
        ownership: Ownership,
        own: str,
    ) -> None:
        """Store a completion's syntax tree and what is known about the names in it.

        Args:
            names: names that the completion and its file bind.
            file: names that the file binds.
            own: name of the function.
        """
        self._tree, self._names, self._file, self._repository = tree, names, file, repository
        self._ownership, self._own = ownership, own
        nodes = list(ast.walk(tree))
        self._holders = {id(node.value): node for node in nodes if isinstance(node, ast.Attribute)}
        """Attribute nodes, by the id of the node before the dot."""
        self._called = {id(node.func): node for node in nodes if isinstance(node, ast.Call)}
        self._functions = {node.name for node in nodes if isinstance(node, asts.FunctionNode)}
        self._decorating = {id(part) for node in nodes for part in decorators(node)}
        self._unread = {id(part) for node in dropped(tree, own) for part in ast.walk(node)}
        self._attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_changed(node)}
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                self._attributes.update(members(node))

    def remarks(self) -> Iterator[Remark]:
        """Yield a remark for each part of the completion that is outside the allow-list."""
        for node, reason in self._findings():
            yield Remark(getattr(node, "lineno", 1), reason)

    def _findings(self) -> Iterator[tuple[ast.AST, str]]:
        rules: dict[type[ast.AST], Callable[..., Iterator[str]]] = {
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.AugAssign: self._in_place,
            ast.Global: self._global,
            ast.Assign: self._assigned,
            ast.AnnAssign: self._assigned,
            ast.Constant: self._constant,
            ast.MatchClass: self._pattern,
        }
        yield from faults_outside_function(self._tree, self._file, self._own, self._repository)
        yield from classes(self._tree, self._names, self._repository)
        for node in ast.walk(self._tree):
            if id(node) in self._unread:
                continue
            yield from ((node, reason) for reason in rules.get(type(node), _nothing)(node))
            for decorator in decorators(node):
                if id(decorator) not in self._unread:
                    yield from ((decorator, reason) for reason in self._decorator(decorator))
            for annotation in written_annotations(node):
                yield from self._annotation(annotation)

    def _import(self, node: ast.Import) -> Iterator[str]:
        for name in node.names:
            if not self._may_import(name.name):
                yield f"imports {name.name}"

    def _import_from(self, node: ast.ImportFrom) -> Iterator[str]:
        module = "." * node.level + (node.module or "")
        for name in node.names:
            whole = f"{module}.{name.name}" if module.strip(".") else module + name.name
            allowed_name = allowed.is_allowed(module, name.name) or allowed.is_module(whole)
            if _is_standard(module):
                if not allowed_name or name.name == "*":
                    yield f"imports {whole}"
            elif (
                not self._may_import(module)
                or name.name == "*"
                or not self._may_read(name.name)
                or name.name in allowed.STANDARD
                or is_of_tests(name.name)
            ):
                yield f"imports {whole}"

    def _may_import(self, module: str) -> bool:
        if _is_standard(module):
            return allowed.is_module(module)
        return module in self._file.imports and not is_of_tests(module)

    def _may_read(self, attribute: str) -> bool:
        known = attribute in allowed.ATTRIBUTES or attribute in self._repository.sources
        return (known or attribute in self._attributes) and not is_reaching(attribute)

    def _name(self, node: ast.Name) -> Iterator[str]:
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            if is_dunder(name) and name not in allowed.CLASS_NAMES:
                yield f"binds {name}"
            return
        module = self._names.module(node)
        if module and id(node) not in self._holders:
            yield f"uses the module {module} as a value"
        if name in self._names.members:
            yield from self._member(*self._names.members[name])
        if self._names.knows(name) or name in self._ownership.bindings:
            if is_dunder(name) and name != "__name__":
                yield f"uses {name}"
        elif name not in allowed.BUILTINS and not (self._names.starred and name in self._repository.sources):
            yield f"uses {name}"
        elif name == "super" and not self._is_super(node):
            yield "uses super for something other than a method"
        elif name in ("setattr", "delattr", "getattr", "type", "next", "print") and id(node) not in self._called:
            yield f"uses {name} as a value"

    def _is_super(self, node: ast.Name) -> bool:
        call = self._called.get(id(node))
        return call is not None and id(call) in self._holders

    def _member(self, module: str, name: str) -> Iterator[str]:
        if _is_standard(module):
            if not allowed.is_allowed(module, name):
                yield f"uses {module}.{name}"
        elif is_of_tests(module) or is_reaching(name):
            yield f"uses {module}.{name}"

    def _attribute(self, node: ast.Attribute) -> Iterator[str]:
        name, module = node.attr, self._names.module(node.value)
        if is_changed(node):
            yield from self._changed_attribute(node)
        if is_dunder(name):
            if not self._is_harmless(node):
                yield f"uses the attribute {name}"
        elif module and _is_standard(module):
            if not allowed.is_allowed(module, name) and not allowed.is_module(f"{module}.{name}"):
                yield f"uses {module}.{name}"
            elif allowed.is_module(f"{module}.{name}") and id(node) not in self._holders:
                yield f"uses the module {module}.{name} as a value"
        elif (module and (name in allowed.STANDARD or is_of_tests(name))) or not self._may_read(name):
            yield f"uses the attribute {name}"
        changing = name in allowed.CHANGING and not (module and _is_standard(module))
        if changing and isinstance(node.ctx, ast.Load) and not self._ownership.may_change(node.value):
            yield from self._change(node)
        if name in ("format", "format_map") and not self._is_plain_format(node.value):
            yield "uses a format string that can read attributes of the values"
        path = self._names.path(node)
        if path in allowed.CHANGING_FUNCTIONS:
            yield from self._changing_function(node, path)
        yield from self._own_method(node)

    def _own_method(self, node: ast.Attribute) -> Iterator[str]:
        owner, _, leaf = self._own.rpartition(".")
        kind = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner and node.attr == leaf and (self._names.knows(kind) or kind == "cls"):
            yield f"calls {leaf} on an object of its choice"

    def _is_harmless(self, node: ast.Attribute) -> bool:
        if node.attr in allowed.DESCRIPTIONS and not is_changed(node):
            return True
        holder = self._holders.get(id(node))
        if node.attr == "__class__" and not is_changed(node):
            return id(node) in self._called or (holder is not None and holder.attr in allowed.DESCRIPTIONS)
        parent = node.value
        of_super = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "super"
        return of_super and not (isinstance(parent, ast.Call) and parent.args) and node.attr in allowed.METHODS

    def _changed_attribute(self, node: ast.Attribute) -> Iterator[str]:
        if not (self._ownership.is_self(node.value) or self._ownership.is_new(node.value)):
            yield from self._change(node)
        elif node.attr in allowed.VALUES:
            yield f"sets {node.attr}, a method of builtin values"

    def _change(self, node: ast.Attribute | ast.Subscript | ast.Name) -> Iterator[str]:
        yield f"changes an object that it did not create: {shown(node)}"

    def _changing_function(self, node: ast.expr, path: str) -> Iterator[str]:
        call = self._called.get(id(node))
        if call is None or not call.args or not self._ownership.may_change(call.args[0]):
            yield f"uses {path} to change an object that it did not create"

    def _subscript(self, node: ast.Subscript) -> Iterator[str]:
        if is_changed(node) and not self._ownership.may_change(node.value):
            yield from self._change(node)

    def _in_place(self, node: ast.AugAssign) -> Iterator[str]:
        if isinstance(node.target, ast.Name) and not self._ownership.is_new(node.target):
            yield from self._change(node.target)

    def _global(self, node: ast.Global) -> Iterator[str]:
        for name in node.names:
            yield f"binds the global name {name}"

    def _call(self, node: ast.Call) -> Iterator[str]:
        for keyword in node.keywords:
            if keyword.arg in allowed.KEYWORDS:
                yield f"passes {keyword.arg}="
            elif keyword.arg is None and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield "passes keyword arguments to print by **"
        path = self._names.path(node.func)
        if isinstance(node.func, ast.Name):
            if path in allowed.CHANGING_FUNCTIONS:
                yield from self._changing_function(node.func, path)
            yield from self._builtin(node, node.func.id)
        if path in allowed.DECORATORS and "." in path and id(node) not in self._decorating:
            yield f"uses {path} for something other than a decorator"
        if path in _RECORDS:
            yield from self._namedtuple(node)
        if self._is_class_of(node.func) and (len(node.args) > 2 or any(isinstance(a, ast.Starred) for a in node.args)):
            yield "may create a class by calling the class of an object"

    def _is_class_of(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            values = self._ownership.bindings.get(node.id, [])
            return any(self._is_class_of(value) for value in values if isinstance(value, ast.Call | ast.Attribute))
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "type"
        return isinstance(node, ast.Attribute) and node.attr == "__class__"

    def _assigned(self, node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        attributes = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Attribute)]
        if node.value and any(map(is_changed, attributes)) and self._is_function(node.value):
            yield f"puts a function into {shown(attributes[0])}"

    def _is_function(self, node: ast.expr) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Lambda):
                return True
            if isinstance(part, ast.Name) and id(part) not in self._called and id(part) not in self._holders:
                values = self._ownership.bindings.get(part.id, [])
                bound = part.id in self._functions or any(isinstance(value, ast.Lambda) for value in values)
                known = self._names.defined.get(part.id, "") or part.id in self._names.members
                if bound or known or (not values and part.id in allowed.BUILTINS - _CONSTANTS):
                    return True
        return False

    def _builtin(self, node: ast.Call, name: str) -> Iterator[str]:
        first = node.args[0] if node.args else None
        if name == "type" and (len(node.args) != 1 or node.keywords or isinstance(first, ast.Starred)):
            yield "creates a class by type"
        elif name == "next" and not (first and (self._ownership.is_new(first) or self._ownership.may_change(first))):
            yield "takes the next item of an iterator that it did not create"
        elif name in ("getattr", "setattr", "delattr"):
            attribute = node.args[1] if len(node.args) > 1 else None
            if not isinstance(attribute, ast.Constant) or not isinstance(attribute.value, str):
                yield f"calls {name} with a computed name"
            elif name == "getattr" and first:
                inner = ast.copy_location(ast.Attribute(first, attribute.value, ast.Load()), node)
                self._holders[id(first)] = inner
                yield from self._attribute(inner)
            elif first:
                if len(node.args) > 2 and self._is_function(node.args[2]):
                    yield f"puts a function into {attribute.value}"
                yield from self._changed_attribute(ast.Attribute(first, attribute.value, ast.Store()))
                if is_dunder(attribute.value) or is_reaching(attribute.value):
                    yield f"uses the attribute {attribute.value}"

    def _namedtuple(self, node: ast.Call) -> Iterator[str]:
        shown = all(isinstance(part, ast.Constant | ast.List | ast.Tuple) for part in node.args) and not node.keywords
        texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
        fields = {word for text in texts if isinstance(text, str) for word in words(text)}
        if not shown or fields & (allowed.VALUES - {"count", "index", "real", "imag", "start", "stop", "step"}):
            yield "creates a named tuple with names of builtin methods, or computed names"

    def _decorator(self, node: ast.expr) -> Iterator[str]:
        function = node.func if isinstance(node, ast.Call) else node
        if self._names.path(function) in allowed.DECORATORS:
            return
        if isinstance(node, ast.Attribute) and node.attr in ("setter", "getter", "deleter"):
            return
        yield f"decorates with {shown(function)}"

    def _constant(self, node: ast.Constant) -> Iterator[str]:
        if isinstance(node.value, str) and len(node.value) < 200 and TEST_TEXT.fullmatch(node.value):
            yield f"names tests or their runner: {node.value}"

    def _pattern(self, node: ast.MatchClass) -> Iterator[str]:
        for name in node.kwd_attrs:
            if is_dunder(name) or not self._may_read(name):
                yield f"uses the attribute {name}"

    def _annotation(self, node: ast.Constant) -> Iterator[tuple[ast.AST, str]]:
        tree = asts.parse(str(node.value).strip())
        for part in ast.walk(tree) if tree else ():
            if isinstance(part, ast.Call):
                yield node, "calls a function in an annotation"

    def _is_plain_format(self, node: ast.expr) -> bool:
        values = [node]
        if isinstance(node, ast.Name) and self._names.module(node) == "":
            found = self._ownership.bindings.get(node.id, [])
            values = [value for value in found if value is not None]
            if len(values) < len(found):
                return False
        return bool(values) and all(
            isinstance(value, ast.Constant)
            and (not isinstance(value.value, str) or not _FIELD_OF_FIELD.search(value.value))
            for value in values
        )


def _nothing(_: ast.AST) -> Iterator[str]:
    return iter(())


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in allowed.STANDARD


def remarks(
    repository: RepositoryWords, source: bytes, name: str, text: str, reference: str = ""
) -> tuple[Remark, ...]:
    """Return why parts of a completion are outside the allow-list. Each reason has the line where it first applies.

    Args:
        source: the file with the reference in it.
        name: name of the function (``Class.method`` for a method).
        reference: code whose remarks are left out.
    """
    usual = {remark.reason for remark in _read(repository, source, name, reference)} if reference else set()
    found: dict[str, Remark] = {}
    for remark in sorted(_read(repository, source, name, text)):
        if remark.reason not in usual:
            found.setdefault(remark.reason, remark)
    return tuple(found.values())


def _read(repository: RepositoryWords, source: bytes, name: str, text: str) -> Iterator[Remark]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tree = asts.parse("\n".join(shift(lines, "")))
    if tree is None:
        yield Remark(1, "cannot be read as Python")
        return
    file, own = of_file(source), of_text(tree)
    names = BoundNames(
        {**file.modules, **own.modules},
        {**file.members, **own.members},
        file.imports | own.imports,
        {**file.defined, **own.defined},
        [*file.starred, *own.starred],
    )
    yield from CompletionReader(tree, names, file, repository, Ownership(tree, names, name), name).remarks()

"""Reads one Python syntax tree into imports, scopes and name loads: definitions and imports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from ctxbench.bench.languages.python import scopes
from ctxbench.bench.languages.python.expressions import EXPRESSIONS, PATTERNS, ExpressionReader, Handler, PythonPlace
from ctxbench.bench.languages.python.facts import ImportedName, StarImport
from ctxbench.bench.languages.python.scopes import PythonScope
from ctxbench.bench.languages.syntax import rows, span

_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_PARAMETER_WITH_NAME = frozenset({"default_parameter", "typed_default_parameter"})


class Reader(ExpressionReader):
    """Walks a whole file."""

    # Definitions

    def _decorator(self, node: Node, place: PythonPlace) -> None:
        self._bar(rows(node), "decorator")
        self._push(node.named_children, place)

    def _header(self, node: Node, body: Node | None) -> None:
        colon = next((child for child in reversed(node.children) if child.type == ":"), None)
        end = colon or body or node
        self._bar(range(node.start_point[0], end.start_point[0] + 1), "header")

    def _define(self, node: Node, place: PythonPlace, kind: str) -> Node | None:
        body = node.child_by_field_name("body")
        name = node.child_by_field_name("name")
        if name is not None:
            position = body.start_byte if body is not None else node.end_byte
            place.scope.store(self.source.text(name), position, plain=not place.conditional, kind=kind)
        self._header(node, body)
        return body

    def _function(self, node: Node, place: PythonPlace) -> None:
        body = self._define(node, place, "function")
        inner = PythonScope(scopes.FUNCTION, place.scope)
        self._type_parameters(node, inner)
        self._parameters(node.child_by_field_name("parameters"), inner, place)
        self._push_field(node, "return_type", place)
        if body is not None:
            self._stack.append((body, PythonPlace(inner, place.quoted)))

    def _class(self, node: Node, place: PythonPlace) -> None:
        body = self._define(node, place, "class")
        inner = PythonScope(scopes.CLASS, place.scope)
        self._type_parameters(node, inner)
        self._push_field(node, "superclasses", place)
        if body is not None:
            self._stack.append((body, PythonPlace(inner, place.quoted)))

    def _lambda(self, node: Node, place: PythonPlace) -> None:
        inner = PythonScope(scopes.FUNCTION, place.scope)
        self._parameters(node.child_by_field_name("parameters"), inner, place)
        self._push_field(node, "body", place._replace(scope=inner, conditional=False))

    def _comprehension(self, node: Node, place: PythonPlace) -> None:
        inner = PythonScope(scopes.COMPREHENSION, place.scope)
        self._push(node.named_children, place._replace(scope=inner, conditional=False))

    def _type_parameters(self, node: Node, inner: PythonScope) -> None:
        parameters = node.child_by_field_name("type_parameters")
        for child in parameters.named_children if parameters is not None else ():
            name: Node | None = child
            while name is not None and name.type != "identifier":
                name = name.named_children[0] if name.named_children else None
            if name is not None:
                inner.store(self.source.text(name), 0, plain=True)

    def _parameters(self, parameters: Node | None, inner: PythonScope, place: PythonPlace) -> None:
        """Bind the parameters in the function; defaults and annotations are read outside it."""
        for parameter in parameters.named_children if parameters is not None else ():
            target: Node | None = parameter
            if parameter.type in _PARAMETER_WITH_NAME:
                target = parameter.child_by_field_name("name")
                self._push_field(parameter, "value", place)
                self._push_field(parameter, "type", place)
            elif parameter.type == "typed_parameter":
                target = parameter.named_children[0] if parameter.named_children else None
                self._push_field(parameter, "type", place)
            if target is not None and (target.type == "identifier" or target.type in PATTERNS):
                self._store(target, PythonPlace(inner), 0)

    # Imports

    def _statement(self, node: Node) -> int:
        self._bar(rows(node), "import")
        self.statements.append(span(node))
        return len(self.statements) - 1

    def _bind(self, item: ImportedName, node: Node, place: PythonPlace) -> None:
        scope = place.scope.module() if item.bound in place.scope.outside else place.scope
        scope.imports.setdefault(item.bound, []).append((node.end_byte, len(self.imports)))
        self.imports.append(item)

    def _named(self, child: Node) -> tuple[str, str | None]:
        if child.type != "aliased_import":
            return self.source.text(child), None
        name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
        return self.source.text(name) if name else "", self.source.text(alias) if alias else None

    def _import(self, node: Node, place: PythonPlace) -> None:
        statement = self._statement(node)
        for child in node.children_by_field_name("name"):
            name, alias = self._named(child)
            name = "".join(name.split())
            item = ImportedName(
                statement=statement,
                bound=alias or name.partition(".")[0],
                module=name,
                level=0,
                member=None,
                dotted=alias is None,
            )
            self._bind(item, node, place)

    def _import_from(self, node: Node, place: PythonPlace) -> None:
        statement = self._statement(node)
        origin = node.child_by_field_name("module_name")
        text = "".join(self.source.text(origin).split()) if origin is not None else ""
        module = text.lstrip(".")
        level = len(text) - len(module)
        if any(child.type == "wildcard_import" for child in node.children):
            self.stars.append(StarImport(statement=statement, module=module, level=level))
            return
        for child in node.children_by_field_name("name"):
            name, alias = self._named(child)
            item = ImportedName(
                statement=statement, bound=alias or name, module=module, level=level, member=name, dotted=False
            )
            self._bind(item, node, place)

    def _future(self, node: Node, place: PythonPlace) -> None:
        self._bar(rows(node), "import")

    HANDLERS: ClassVar[Mapping[str, Handler]] = {
        **EXPRESSIONS,
        "decorator": _decorator,
        "function_definition": _function,
        "class_definition": _class,
        "lambda": _lambda,
        "import_statement": _import,
        "import_from_statement": _import_from,
        "future_import_statement": _future,
        **dict.fromkeys(_COMPREHENSIONS, _comprehension),
    }

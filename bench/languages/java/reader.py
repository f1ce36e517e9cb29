"""Reads one Java syntax tree into imports, types and name loads: imports and declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tree_sitter import Node

from ctxbench.bench.languages.java.expressions import EXPRESSIONS, Handler, JavaExpressionReader
from ctxbench.bench.languages.java.facts import JavaImport
from ctxbench.bench.languages.java.scopes import JavaPlace, JavaScope, TypeFacts
from ctxbench.bench.languages.syntax import rows, span

_TYPES = frozenset(
    {
        "class_declaration",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "annotation_type_declaration",
    }
)
_CALLABLES = frozenset({"method_declaration", "constructor_declaration", "compact_constructor_declaration"})
_NAMED = frozenset({"formal_parameter", "catch_formal_parameter", "resource", "instanceof_expression"})
_OPEN = frozenset({"interface_declaration", "annotation_type_declaration"})


class JavaReader(JavaExpressionReader):
    """Walks a whole file."""

    # Package and imports

    def _package(self, node: Node, place: JavaPlace) -> None:
        self._bar(rows(node), "import")
        names = [child for child in node.named_children if child.type in ("identifier", "scoped_identifier")]
        self.package = self._joined(names[0]) if names else ""

    def _import(self, node: Node, place: JavaPlace) -> None:
        self._bar(rows(node), "import")
        names = [child for child in node.named_children if child.type in ("identifier", "scoped_identifier")]
        if names:
            item = JavaImport(
                lines=span(node),
                name=self._joined(names[0]),
                static=any(child.type == "static" for child in node.children),
                wildcard=any(child.type == "asterisk" for child in node.children),
            )
            self.imports.append(item)

    def _joined(self, node: Node) -> str:
        return "".join(self.source.text(node).split())

    # Declarations

    def _type(self, node: Node, place: JavaPlace) -> None:
        name, name_node = self._name(node)
        body = node.child_by_field_name("body")
        self._bar_header(node, body)
        owner = TypeFacts(f"{place.owner.name}.{name}" if place.owner else name, node.type in _OPEN)
        if place.owner is not None or place.scope.parent is None:
            self.types.append(owner)  # types declared inside methods cannot be imported
        place.scope.types.add(name)
        inner = JavaPlace(JavaScope(place.scope), owner)
        inner.scope.types.add(name)
        if node.type == "record_declaration":
            self._push([child for child in node.named_children if child.type == "formal_parameters"], inner)
        skipped = [name_node, *(c for c in node.named_children if c.type == "formal_parameters")]
        self._push([child for child in node.named_children if child not in skipped], inner)

    def _bar_header(self, node: Node, body: Node | None) -> None:
        last = body.start_point[0] if body is not None else node.end_point[0]
        self._bar(range(node.start_point[0], last + 1), "header")

    def _callable(self, node: Node, place: JavaPlace) -> None:
        name, name_node = self._name(node)
        self._bar_header(node, node.child_by_field_name("body"))
        if node.type == "method_declaration":
            place.scope.methods.add(name)
            self._member(node, place, name, "function")
        inner = place._replace(scope=JavaScope(place.scope), owner=None)
        self._push([child for child in node.named_children if child != name_node], inner)

    def _member(self, node: Node, place: JavaPlace, name: str, kind: str) -> None:
        if place.owner is None:
            return
        place.owner.members.setdefault(name, kind)
        modifiers = next((child for child in node.named_children if child.type == "modifiers"), None)
        static = modifiers is not None and any(child.type == "static" for child in modifiers.children)
        if static or (place.owner.open and kind == "variable"):
            place.owner.static.add(name)

    def _field(self, node: Node, place: JavaPlace) -> None:
        for declarator in node.children_by_field_name("declarator"):
            self._member(node, place, self._name(declarator)[0], "variable")
        self._push(node.named_children, place)

    def _enum_constant(self, node: Node, place: JavaPlace) -> None:
        name, name_node = self._name(node)
        place.scope.values.add(name)
        if place.owner is not None:
            place.owner.members[name] = "variable"
            place.owner.static.add(name)
        inner = place._replace(scope=JavaScope(place.scope), owner=None)
        self._push([child for child in node.named_children if child != name_node], inner)

    def _declared(self, node: Node, place: JavaPlace) -> None:
        """A variable: the field ``name`` is bound, everything else is read."""
        name, name_node = self._name(node)
        if name:
            place.scope.values.add(name)
        self._push([child for child in node.named_children if child != name_node], place)

    def _pattern(self, node: Node, place: JavaPlace) -> None:
        for child in node.named_children:
            if child.type == "identifier":
                place.scope.values.add(self.source.text(child))
            else:
                self._stack.append((child, place))

    def _lambda(self, node: Node, place: JavaPlace) -> None:
        inner = place._replace(scope=JavaScope(place.scope), owner=None)
        parameters = node.child_by_field_name("parameters")
        if parameters is not None and parameters.type in ("identifier", "inferred_parameters"):
            names = [parameters] if parameters.type == "identifier" else parameters.named_children
            inner.scope.values.update(self.source.text(name) for name in names)
        elif parameters is not None:
            self._stack.append((parameters, inner))
        self._push([child for child in node.named_children if child != parameters], inner)

    def _type_parameter(self, node: Node, place: JavaPlace) -> None:
        children = node.named_children
        names = [child for child in children if child.type in ("type_identifier", "identifier")]
        place.scope.types.update(self.source.text(name) for name in names[:1])
        self._push([child for child in children if child not in names[:1]], place)

    def _anonymous(self, node: Node, place: JavaPlace) -> None:
        """The body of ``new T() {…}`` is a scope of its own."""
        for child in reversed(node.named_children):
            self._stack.append((child, JavaPlace(JavaScope(place.scope)) if child.type == "class_body" else place))

    HANDLERS: ClassVar[Mapping[str, Handler]] = {
        **EXPRESSIONS,
        "package_declaration": _package,
        "import_declaration": _import,
        **dict.fromkeys(_TYPES, _type),
        **dict.fromkeys(_CALLABLES, _callable),
        **dict.fromkeys(_NAMED, _declared),
        "annotation_type_element_declaration": _callable,
        "variable_declarator": _declared,
        "enhanced_for_statement": _declared,
        "field_declaration": _field,
        "constant_declaration": _field,
        "enum_constant": _enum_constant,
        "type_pattern": _pattern,
        "record_pattern_component": _pattern,
        "lambda_expression": _lambda,
        "type_parameter": _type_parameter,
        "object_creation_expression": _anonymous,
    }

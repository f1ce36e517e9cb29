"""Reads a Java file's package, imports, types and used names from its syntax tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from tree_sitter import Node

from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import KINDS
from ctxbench.bench.languages.outline import Span
from ctxbench.bench.languages.syntax import Handler, Source, TreeReader, rows, span

TYPE, METHOD, VALUE, LABEL = "type", "method", "value", "label"
"""Roles of a name: a type, a method called without a receiver, another expression, or ``case NAME:``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaImport:
    """An import declaration."""

    lines: Span
    name: str
    static: bool
    wildcard: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaType:
    """A class, interface, enum, record or annotation, possibly nested."""

    name: str
    members: Mapping[str, str]
    """Kind (``variable`` or ``function``) of each field, constant and method, by name."""
    static: frozenset[str]
    """Names of the members that can be imported statically."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaLoad:
    """A name that a file reads but does not declare, with the names that follow after dots."""

    name: str
    role: str
    chain: tuple[str, ...]
    near: int
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaFile(FileFacts):
    """The package, imports, types and used names of a Java file."""

    package: str
    imports: tuple[JavaImport, ...]
    types: tuple[JavaType, ...]
    loads: tuple[JavaLoad, ...]


_NAMED = frozenset({"formal_parameter", "catch_formal_parameter", "resource", "instanceof_expression"})
_OPEN = frozenset({"interface_declaration", "annotation_type_declaration"})


@dataclass(slots=True)
class JavaScope:
    """The names declared in one scope: a file, a type's body, a method or a lambda."""

    parent: JavaScope | None
    values: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)

    def declares(self, name: str, role: str) -> bool:
        """Return whether this or an outer scope declares `name` in a `role`. A type's name also counts as a value."""
        scope: JavaScope | None = self
        while scope is not None:
            names = {TYPE: scope.types, METHOD: scope.methods, VALUE: scope.values}[role]
            # `Foo.bar()` reads a value only if a variable is called Foo, and otherwise a type (JLS 6.4.2, obscuring).
            if name in names or (role == VALUE and name in scope.types):
                return True
            scope = scope.parent
        return False


@dataclass(slots=True)
class TypeFacts:
    """Facts about a type declaration, collected while the tree is walked."""

    name: str
    open: bool
    """Whether fields are implicitly static, as in interfaces."""
    members: dict[str, str] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)


class JavaPlace(NamedTuple):
    """The scope and type around the current node of the tree walk."""

    scope: JavaScope
    owner: TypeFacts | None = None


class JavaRawLoad(NamedTuple):
    """A name that is read, before its scope is resolved. The name may be declared further down."""

    scope: JavaScope
    name: str
    role: str
    chain: tuple[str, ...]
    near: int
    node: Node


class JavaReader(TreeReader[JavaPlace]):
    """Reads the declarations, imports and used names of a whole file."""

    def __init__(self, source: Source) -> None:
        self.package = ""
        self.imports: list[JavaImport] = []
        self.types: list[TypeFacts] = []
        self.loads: list[JavaRawLoad] = []
        self.labels: list[JavaRawLoad] = []
        super().__init__(source, JavaPlace(JavaScope(None)))

    def _name(self, node: Node) -> tuple[str, Node | None]:
        name = node.child_by_field_name("name")
        return (self.source.text(name), name) if name is not None else ("", None)

    def _load(self, node: Node, place: JavaPlace, role: str, parts: list[Node] | None = None) -> None:
        following = parts[::-1] if parts else []
        near = sum(part.start_point[0] == node.start_point[0] for part in following)
        chain = tuple(self.source.text(part) for part in following)
        self.loads.append(JavaRawLoad(place.scope, self.source.text(node), role, chain, near, node))

    def _identifier(self, node: Node, place: JavaPlace) -> None:
        self._load(node, place, VALUE)

    def _type_identifier(self, node: Node, place: JavaPlace) -> None:
        self._load(node, place, TYPE)

    def _scoped_type(self, node: Node, place: JavaPlace) -> None:
        chain: list[Node] = []
        inner: Node | None = node
        while inner is not None and inner.type == "scoped_type_identifier":
            parts = [child for child in inner.named_children if not child.type.endswith("annotation")]
            chain.append(parts[-1])
            inner = parts[0] if len(parts) > 1 else None
        if inner is not None and inner.type == "type_identifier":
            self._load(inner, place, TYPE, chain)
        elif inner is not None:
            self._stack.append((inner, place))

    def _access(self, node: Node, place: JavaPlace) -> None:
        chain: list[Node] = []
        inner: Node | None = node
        while inner is not None and inner.type in ("field_access", "method_invocation"):
            called = inner.type == "method_invocation"
            receiver = inner.child_by_field_name("object")
            name = inner.child_by_field_name("name" if called else "field")
            if called:
                arguments = [child for child in inner.named_children if child not in (receiver, name)]
                self._push(arguments, place)
            if name is None:
                return
            if receiver is None:
                self._load(name, place, METHOD, chain)
                return
            chain.append(name)
            inner = receiver
        if inner is not None and inner.type == "identifier":
            self._load(inner, place, VALUE, chain)
        elif inner is not None:
            self._stack.append((inner, place))

    def _method_reference(self, node: Node, place: JavaPlace) -> None:
        children = node.named_children
        if not children:
            return
        first, last = children[0], children[-1]
        if first.type == "identifier":
            self._load(first, place, VALUE, [last] if len(children) > 1 and last.type == "identifier" else [])
        else:
            self._stack.append((first, place))
        self._push([child for child in children[1:] if child.type != "identifier"], place)

    def _annotation(self, node: Node, place: JavaPlace) -> None:
        self._bar(rows(node), "decorator")
        _, name = self._name(node)
        if name is not None and name.type == "identifier":
            self._load(name, place, TYPE)
        self._push([child for child in node.named_children if child != name], place)

    def _pair(self, node: Node, place: JavaPlace) -> None:
        self._push_field(node, "value", place)

    def _switch_label(self, node: Node, place: JavaPlace) -> None:
        """Record the name in ``case NAME:``. A constant of the switched enum needs no import."""
        for child in node.named_children:
            if child.type == "identifier":
                self.labels.append(JavaRawLoad(place.scope, self.source.text(child), LABEL, (), 0, child))
            else:
                self._push([child], place)

    def _string(self, node: Node, place: JavaPlace) -> None:
        if node.start_point[0] != node.end_point[0]:
            self._bar(rows(node), "multiline_string")

    def _label(self, node: Node, place: JavaPlace) -> None:
        self._push([child for child in node.named_children if child.type != "identifier"], place)

    def _nothing(self, node: Node, place: JavaPlace) -> None:
        return

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
        for child in reversed(node.named_children):
            self._stack.append((child, JavaPlace(JavaScope(place.scope)) if child.type == "class_body" else place))

    HANDLERS: ClassVar[Mapping[str, Handler]] = {
        "identifier": _identifier,
        "type_identifier": _type_identifier,
        "scoped_type_identifier": _scoped_type,
        "field_access": _access,
        "method_invocation": _access,
        "method_reference": _method_reference,
        "annotation": _annotation,
        "marker_annotation": _annotation,
        "element_value_pair": _pair,
        "switch_label": _switch_label,
        "string_literal": _string,
        "labeled_statement": _label,
        "break_statement": _label,
        "continue_statement": _label,
        "line_comment": _nothing,
        "block_comment": _nothing,
        "package_declaration": _package,
        "import_declaration": _import,
        **dict.fromkeys(KINDS, _type),
        **dict.fromkeys(JAVA.function_nodes, _callable),
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

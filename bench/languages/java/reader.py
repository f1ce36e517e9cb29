"""Reads one Java syntax tree into imports, types and name loads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tree_sitter import Node

from bench.languages.java.facts import METHOD, TYPE, VALUE, JavaImport
from bench.languages.syntax import Source, rows, span

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


@dataclass(slots=True)
class Scope:
    """A type's body, a method or a lambda while a file is read."""

    parent: Scope | None
    values: set[str] = field(default_factory=set)
    """Fields, parameters and local variables."""
    methods: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    """Type parameters and member types."""

    def declares(self, name: str, role: str) -> bool:
        """Say whether this scope or one around it declares the name."""
        scope: Scope | None = self
        while scope is not None:
            known = {TYPE: scope.types, METHOD: scope.methods, VALUE: scope.values}[role]
            # `Foo.bar()` is a value only if a variable is called Foo, else a type (JLS 6.4.2, obscuring).
            if name in known or (role == VALUE and name in scope.types):
                return True
            scope = scope.parent
        return False


@dataclass(slots=True)
class TypeFacts:
    """A type declaration while it is read."""

    name: str
    open: bool
    """Whether members are static without saying so (interfaces' constants)."""
    members: dict[str, str] = field(default_factory=dict)
    static: set[str] = field(default_factory=set)


class Place(NamedTuple):
    """Where the walk stands."""

    scope: Scope
    owner: TypeFacts | None = None


class RawLoad(NamedTuple):
    """A load before its scope has been looked at: locals may be declared after it in walk order."""

    scope: Scope
    name: str
    role: str
    chain: tuple[str, ...]
    node: Node


class Reader:
    """Walks a tree once; its public attributes hold what was found."""

    def __init__(self, source: Source) -> None:
        """Walk the whole tree of `source`."""
        self.source = source
        self.package = ""
        self.imports: list[JavaImport] = []
        self.types: list[TypeFacts] = []
        self.loads: list[RawLoad] = []
        self.barred: dict[int, str] = {}
        self._stack: list[tuple[Node, Place]] = [(source.root, Place(Scope(None)))]
        while self._stack:
            node, place = self._stack.pop()
            handler = _HANDLERS.get(node.type)
            if handler is not None:
                handler(self, node, place)
            else:
                self._push(node.named_children, place)

    def _push(self, nodes: list[Node], place: Place) -> None:
        self._stack.extend((node, place) for node in reversed(nodes))

    def _bar(self, lines: range, reason: str) -> None:
        for line in lines:
            self.barred.setdefault(line, reason)

    def _name(self, node: Node) -> tuple[str, Node | None]:
        name = node.child_by_field_name("name")
        return (self.source.text(name), name) if name is not None else ("", None)

    # Package and imports

    def _package(self, node: Node, place: Place) -> None:
        self._bar(rows(node), "import")
        names = [child for child in node.named_children if child.type in ("identifier", "scoped_identifier")]
        self.package = self._joined(names[0]) if names else ""

    def _import(self, node: Node, place: Place) -> None:
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

    def _type(self, node: Node, place: Place) -> None:
        name, name_node = self._name(node)
        body = node.child_by_field_name("body")
        self._bar_header(node, body)
        owner = TypeFacts(f"{place.owner.name}.{name}" if place.owner else name, node.type in _OPEN)
        if place.owner is not None or place.scope.parent is None:
            self.types.append(owner)  # types declared inside methods cannot be imported
        place.scope.types.add(name)
        inner = Place(Scope(place.scope), owner)
        inner.scope.types.add(name)
        if node.type == "record_declaration":
            self._push([child for child in node.named_children if child.type == "formal_parameters"], inner)
        skipped = [name_node, *(c for c in node.named_children if c.type == "formal_parameters")]
        self._push([child for child in node.named_children if child not in skipped], inner)

    def _bar_header(self, node: Node, body: Node | None) -> None:
        last = body.start_point[0] if body is not None else node.end_point[0]
        self._bar(range(node.start_point[0], last + 1), "header")

    def _callable(self, node: Node, place: Place) -> None:
        name, name_node = self._name(node)
        self._bar_header(node, node.child_by_field_name("body"))
        if node.type == "method_declaration":
            place.scope.methods.add(name)
            self._member(node, place, name, "function")
        inner = place._replace(scope=Scope(place.scope), owner=None)
        self._push([child for child in node.named_children if child != name_node], inner)

    def _member(self, node: Node, place: Place, name: str, kind: str) -> None:
        if place.owner is None:
            return
        place.owner.members.setdefault(name, kind)
        modifiers = next((child for child in node.named_children if child.type == "modifiers"), None)
        static = modifiers is not None and any(child.type == "static" for child in modifiers.children)
        if static or (place.owner.open and kind == "variable"):
            place.owner.static.add(name)

    def _field(self, node: Node, place: Place) -> None:
        for declarator in node.children_by_field_name("declarator"):
            self._member(node, place, self._name(declarator)[0], "variable")
        self._push(node.named_children, place)

    def _enum_constant(self, node: Node, place: Place) -> None:
        name, name_node = self._name(node)
        place.scope.values.add(name)
        if place.owner is not None:
            place.owner.members[name] = "variable"
            place.owner.static.add(name)
        inner = place._replace(scope=Scope(place.scope), owner=None)
        self._push([child for child in node.named_children if child != name_node], inner)

    def _declared(self, node: Node, place: Place) -> None:
        """A variable: the field ``name`` is bound, everything else is read."""
        name, name_node = self._name(node)
        if name:
            place.scope.values.add(name)
        self._push([child for child in node.named_children if child != name_node], place)

    def _pattern(self, node: Node, place: Place) -> None:
        for child in node.named_children:
            if child.type == "identifier":
                place.scope.values.add(self.source.text(child))
            else:
                self._stack.append((child, place))

    def _lambda(self, node: Node, place: Place) -> None:
        inner = place._replace(scope=Scope(place.scope), owner=None)
        parameters = node.child_by_field_name("parameters")
        if parameters is not None and parameters.type in ("identifier", "inferred_parameters"):
            names = [parameters] if parameters.type == "identifier" else parameters.named_children
            inner.scope.values.update(self.source.text(name) for name in names)
        elif parameters is not None:
            self._stack.append((parameters, inner))
        self._push([child for child in node.named_children if child != parameters], inner)

    def _type_parameter(self, node: Node, place: Place) -> None:
        children = node.named_children
        names = [child for child in children if child.type in ("type_identifier", "identifier")]
        place.scope.types.update(self.source.text(name) for name in names[:1])
        self._push([child for child in children if child not in names[:1]], place)

    def _anonymous(self, node: Node, place: Place) -> None:
        """The body of ``new T() {…}`` is a scope of its own."""
        for child in reversed(node.named_children):
            self._stack.append((child, Place(Scope(place.scope)) if child.type == "class_body" else place))

    # Loads

    def _load(self, node: Node, place: Place, role: str, chain: tuple[str, ...] = ()) -> None:
        self.loads.append(RawLoad(place.scope, self.source.text(node), role, chain, node))

    def _identifier(self, node: Node, place: Place) -> None:
        self._load(node, place, VALUE)

    def _type_identifier(self, node: Node, place: Place) -> None:
        self._load(node, place, TYPE)

    def _scoped_type(self, node: Node, place: Place) -> None:
        """``Outer.Inner``: the first part is read, the others follow it."""
        chain: list[str] = []
        inner: Node | None = node
        while inner is not None and inner.type == "scoped_type_identifier":
            parts = [child for child in inner.named_children if not child.type.endswith("annotation")]
            chain.append(self.source.text(parts[-1]))
            inner = parts[0] if len(parts) > 1 else None
        if inner is not None and inner.type == "type_identifier":
            self._load(inner, place, TYPE, tuple(reversed(chain)))
        elif inner is not None:
            self._stack.append((inner, place))

    def _access(self, node: Node, place: Place) -> None:
        """``a.b.c`` and ``a.b.c(…)``: the leftmost name is read, the others follow it."""
        chain: list[str] = []
        inner: Node | None = node
        while inner is not None and inner.type in ("field_access", "method_invocation"):
            called = inner.type == "method_invocation"
            receiver = inner.child_by_field_name("object")
            name = inner.child_by_field_name("name" if called else "field")
            if called:
                rest = [child for child in inner.named_children if child not in (receiver, name)]
                self._push(rest, place)
            if name is None:
                return
            if receiver is None:
                self._load(name, place, METHOD, tuple(reversed(chain)))
                return
            chain.append(self.source.text(name))
            inner = receiver
        if inner is not None and inner.type == "identifier":
            self._load(inner, place, VALUE, tuple(reversed(chain)))
        elif inner is not None:
            self._stack.append((inner, place))

    def _method_reference(self, node: Node, place: Place) -> None:
        children = node.named_children
        if not children:
            return
        first, last = children[0], children[-1]
        if first.type == "identifier":
            chain = (self.source.text(last),) if len(children) > 1 and last.type == "identifier" else ()
            self._load(first, place, VALUE, chain)
        else:
            self._stack.append((first, place))
        self._push([child for child in children[1:] if child.type != "identifier"], place)

    def _annotation(self, node: Node, place: Place) -> None:
        self._bar(rows(node), "decorator")
        _, name = self._name(node)
        if name is not None and name.type == "identifier":
            self._load(name, place, TYPE)
        self._push([child for child in node.named_children if child != name], place)

    def _pair(self, node: Node, place: Place) -> None:
        value = node.child_by_field_name("value")
        if value is not None:
            self._stack.append((value, place))

    def _switch_label(self, node: Node, place: Place) -> None:
        """A bare name in ``case NAME:`` is a constant of the switched enum, not a name of this file."""
        self._push([child for child in node.named_children if child.type != "identifier"], place)

    def _string(self, node: Node, place: Place) -> None:
        if node.start_point[0] != node.end_point[0]:
            self._bar(rows(node), "multiline_string")

    def _label(self, node: Node, place: Place) -> None:
        self._push([child for child in node.named_children if child.type != "identifier"], place)

    def _nothing(self, node: Node, place: Place) -> None:
        return


_HANDLERS = {
    "package_declaration": Reader._package,
    "import_declaration": Reader._import,
    **dict.fromkeys(_TYPES, Reader._type),
    **dict.fromkeys(_CALLABLES, Reader._callable),
    **dict.fromkeys(_NAMED, Reader._declared),
    "annotation_type_element_declaration": Reader._callable,
    "variable_declarator": Reader._declared,
    "enhanced_for_statement": Reader._declared,
    "field_declaration": Reader._field,
    "constant_declaration": Reader._field,
    "enum_constant": Reader._enum_constant,
    "type_pattern": Reader._pattern,
    "record_pattern_component": Reader._pattern,
    "lambda_expression": Reader._lambda,
    "type_parameter": Reader._type_parameter,
    "object_creation_expression": Reader._anonymous,
    "identifier": Reader._identifier,
    "type_identifier": Reader._type_identifier,
    "scoped_type_identifier": Reader._scoped_type,
    "field_access": Reader._access,
    "method_invocation": Reader._access,
    "method_reference": Reader._method_reference,
    "annotation": Reader._annotation,
    "marker_annotation": Reader._annotation,
    "element_value_pair": Reader._pair,
    "switch_label": Reader._switch_label,
    "string_literal": Reader._string,
    "labeled_statement": Reader._label,
    "break_statement": Reader._label,
    "continue_statement": Reader._label,
    "line_comment": Reader._nothing,
    "block_comment": Reader._nothing,
}

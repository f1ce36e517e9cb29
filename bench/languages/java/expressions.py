"""Reads Java names where they are used: the lower half of the walk over a syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tree_sitter import Node

from ctxbench.bench.languages.java.facts import LABEL, METHOD, TYPE, VALUE, JavaImport
from ctxbench.bench.languages.java.scopes import JavaPlace, JavaRawLoad, JavaScope, TypeFacts
from ctxbench.bench.languages.syntax import Source, rows

Handler = Callable[[Any, Node, JavaPlace], None]


class JavaExpressionReader:
    """Walks a tree once; its public attributes hold what was found."""

    HANDLERS: ClassVar[Mapping[str, Handler]] = {}

    def __init__(self, source: Source) -> None:
        """Walk the whole tree of `source`."""
        self.source = source
        self.package = ""
        self.imports: list[JavaImport] = []
        self.types: list[TypeFacts] = []
        self.loads: list[JavaRawLoad] = []
        self.labels: list[JavaRawLoad] = []
        self.barred: dict[int, str] = {}
        self._stack: list[tuple[Node, JavaPlace]] = [(source.root, JavaPlace(JavaScope(None)))]
        while self._stack:
            node, place = self._stack.pop()
            handler = self.HANDLERS.get(node.type)
            if handler is not None:
                handler(self, node, place)
            else:
                self._push(node.named_children, place)

    def _push(self, nodes: list[Node], place: JavaPlace) -> None:
        self._stack.extend((node, place) for node in reversed(nodes))

    def _bar(self, lines: range, reason: str) -> None:
        for line in lines:
            self.barred.setdefault(line, reason)

    def _name(self, node: Node) -> tuple[str, Node | None]:
        name = node.child_by_field_name("name")
        return (self.source.text(name), name) if name is not None else ("", None)

    # Loads

    def _load(self, node: Node, place: JavaPlace, role: str, parts: list[Node] | None = None) -> None:
        """Note a name, with the parts that follow it, last first."""
        following = parts[::-1] if parts else []
        near = sum(part.start_point[0] == node.start_point[0] for part in following)
        chain = tuple(self.source.text(part) for part in following)
        self.loads.append(JavaRawLoad(place.scope, self.source.text(node), role, chain, near, node))

    def _identifier(self, node: Node, place: JavaPlace) -> None:
        self._load(node, place, VALUE)

    def _type_identifier(self, node: Node, place: JavaPlace) -> None:
        self._load(node, place, TYPE)

    def _scoped_type(self, node: Node, place: JavaPlace) -> None:
        """``Outer.Inner``: the first part is read, the others follow it."""
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
        """``a.b.c`` and ``a.b.c(…)``: the leftmost name is read, the others follow it."""
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
        value = node.child_by_field_name("value")
        if value is not None:
            self._stack.append((value, place))

    def _switch_label(self, node: Node, place: JavaPlace) -> None:
        """A bare name in ``case NAME:`` may be a constant of the switched enum, which no import brings in."""
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


EXPRESSIONS: Mapping[str, Handler] = {
    "identifier": JavaExpressionReader._identifier,
    "type_identifier": JavaExpressionReader._type_identifier,
    "scoped_type_identifier": JavaExpressionReader._scoped_type,
    "field_access": JavaExpressionReader._access,
    "method_invocation": JavaExpressionReader._access,
    "method_reference": JavaExpressionReader._method_reference,
    "annotation": JavaExpressionReader._annotation,
    "marker_annotation": JavaExpressionReader._annotation,
    "element_value_pair": JavaExpressionReader._pair,
    "switch_label": JavaExpressionReader._switch_label,
    "string_literal": JavaExpressionReader._string,
    "labeled_statement": JavaExpressionReader._label,
    "break_statement": JavaExpressionReader._label,
    "continue_statement": JavaExpressionReader._label,
    "line_comment": JavaExpressionReader._nothing,
    "block_comment": JavaExpressionReader._nothing,
}

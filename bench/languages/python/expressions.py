"""Reads Python expressions and bindings: the lower half of the walk over a syntax tree.

The walk keeps its own stack instead of recursing: a sum of a thousand terms is a tree a thousand deep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from tree_sitter import Node

from ctxbench.bench.languages.facts import Span
from ctxbench.bench.languages.python import scopes
from ctxbench.bench.languages.python.facts import ImportedName, StarImport
from ctxbench.bench.languages.python.scopes import PythonScope
from ctxbench.bench.languages.syntax import Source, rows

_CONDITIONAL = frozenset({"if_statement", "try_statement", "while_statement", "match_statement"})
PATTERNS = frozenset(
    {
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "tuple",
        "list",
        "parenthesized_expression",
        "as_pattern_target",
        "list_splat_pattern",
        "dictionary_splat_pattern",
    }
)
"""Nodes whose parts are bound one by one."""


class PythonPlace(NamedTuple):
    """The place of the walk in the tree."""

    scope: PythonScope
    quoted: bool = False
    conditional: bool = False


class RawLoad(NamedTuple):
    """A load before its scope has been looked at."""

    scope: PythonScope
    name: str
    chain: tuple[str, ...]
    near: int
    """How many parts of `chain`, from its beginning, stand on the name's own line."""
    node: Node
    quoted: bool


Handler = Callable[[Any, Node, PythonPlace], None]


class ExpressionReader:
    """Walks a tree once; its public attributes hold what was found."""

    HANDLERS: ClassVar[Mapping[str, Handler]] = {}

    def __init__(self, source: Source) -> None:
        """Walk the whole tree of `source`."""
        self.source = source
        self.module = PythonScope(scopes.MODULE, None)
        self.statements: list[Span] = []
        self.imports: list[ImportedName] = []
        self.stars: list[StarImport] = []
        self.loads: list[RawLoad] = []
        self.barred: dict[int, str] = {}
        self._stack: list[tuple[Node, PythonPlace]] = [(source.root, PythonPlace(self.module))]
        while self._stack:
            node, place = self._stack.pop()
            handler = self.HANDLERS.get(node.type)
            if handler is not None:
                handler(self, node, place)
            else:
                self._push(node.named_children, place)

    def _push(self, nodes: list[Node], place: PythonPlace) -> None:
        # Reversed, so that the walk is in source order and meets `global x` before `x = …`.
        self._stack.extend((node, place) for node in reversed(nodes))

    def _push_field(self, node: Node, name: str, place: PythonPlace) -> None:
        child = node.child_by_field_name(name)
        if child is not None:
            self._stack.append((child, place))

    def _bar(self, lines: range, reason: str) -> None:
        for line in lines:
            self.barred.setdefault(line, reason)

    # Loads

    def _identifier(self, node: Node, place: PythonPlace) -> None:
        self.loads.append(RawLoad(place.scope, self.source.text(node), (), 0, node, place.quoted))

    def _attribute(self, node: Node, place: PythonPlace) -> None:
        chain: list[str] = []
        lines: list[int] = []
        inner: Node | None = node
        while inner is not None and inner.type == "attribute":
            name = inner.child_by_field_name("attribute")
            chain.append(self.source.text(name) if name is not None else "")
            lines.append(inner.end_point[0])
            inner = inner.child_by_field_name("object")
        if inner is None:
            return
        if inner.type == "identifier":
            name_text = self.source.text(inner)
            near = lines.count(inner.start_point[0])
            self.loads.append(RawLoad(place.scope, name_text, tuple(reversed(chain)), near, inner, place.quoted))
        else:
            self._stack.append((inner, place))

    def _string(self, node: Node, place: PythonPlace) -> None:
        if node.start_point[0] != node.end_point[0]:
            self._bar(rows(node), "multiline_string")
        self._push(node.named_children, place._replace(quoted=True))

    def _keyword_argument(self, node: Node, place: PythonPlace) -> None:
        self._push_field(node, "value", place)

    # Bindings

    def _store(self, target: Node, place: PythonPlace, position: int) -> None:
        """Bind what a target names; subscripts and attributes in it are loads."""
        pending = [target]
        while pending:
            node = pending.pop()
            if node.type == "identifier":
                scope = place.scope
                scope.store(self.source.text(node), position, plain=not place.conditional)
            elif node.type in PATTERNS:
                pending.extend(node.named_children)
            else:
                self._stack.append((node, place))

    def _assignment(self, node: Node, place: PythonPlace) -> None:
        target = node.child_by_field_name("left")
        if target is not None:
            self._store(target, place, node.end_byte)
            if node.type == "augmented_assignment" and target.type == "identifier":
                self._identifier(target, place)
        self._push_field(node, "type", place)
        self._push_field(node, "right", place)

    def _named_expression(self, node: Node, place: PythonPlace) -> None:
        scope = place.scope
        while scope.kind == scopes.COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        name = node.child_by_field_name("name")
        if name is not None:
            self._store(name, place._replace(scope=scope), node.end_byte)
        self._push_field(node, "value", place)

    def _for(self, node: Node, place: PythonPlace) -> None:
        target = node.child_by_field_name("left")
        if target is not None:
            self._store(target, place, target.end_byte)
        other_children = [child for child in node.named_children if child != target]
        self._push(other_children, place._replace(conditional=True) if node.type == "for_statement" else place)

    def _delete(self, node: Node, place: PythonPlace) -> None:
        """``del name`` reads nothing; ``del name[key]`` does."""
        pending = list(node.named_children)
        while pending:
            child = pending.pop()
            if child.type == "expression_list" or child.type in PATTERNS:
                pending += child.named_children
            elif child.type != "identifier":
                self._stack.append((child, place))

    def _conditional(self, node: Node, place: PythonPlace) -> None:
        self._push(node.named_children, place._replace(conditional=True))

    def _as_pattern(self, node: Node, place: PythonPlace) -> None:
        alias = node.child_by_field_name("alias")
        children = node.named_children
        if alias is None and len(children) > 1 and children[-1].type == "identifier":
            alias = children[-1]  # inside `case`, the alias is a bare identifier
        if alias is not None:
            self._store(alias, place, alias.end_byte)
        self._push([child for child in children if child != alias], place)

    def _dotted_name(self, node: Node, place: PythonPlace) -> None:
        """A name in a ``case`` pattern: one part captures, several are read."""
        parts = node.named_children
        parent = node.parent
        if len(parts) == 1 and (parent is None or parent.type != "class_pattern"):
            self._store(parts[0], place, parts[0].end_byte)
        elif parts:
            chain = tuple(self.source.text(part) for part in parts[1:])
            near = sum(part.start_point[0] == parts[0].start_point[0] for part in parts[1:])
            self.loads.append(RawLoad(place.scope, self.source.text(parts[0]), chain, near, parts[0], place.quoted))

    def _keyword_pattern(self, node: Node, place: PythonPlace) -> None:
        for child in node.named_children[1:]:
            self._stack.append((child, place))

    def _splat_pattern(self, node: Node, place: PythonPlace) -> None:
        for child in node.named_children:
            self._store(child, place, child.end_byte)

    def _global(self, node: Node, place: PythonPlace) -> None:
        names = {self.source.text(child) for child in node.named_children}
        (place.scope.outside if node.type == "global_statement" else place.scope.nonlocals).update(names)


EXPRESSIONS: Mapping[str, Handler] = {
    "identifier": ExpressionReader._identifier,
    "attribute": ExpressionReader._attribute,
    "string": ExpressionReader._string,
    "keyword_argument": ExpressionReader._keyword_argument,
    "assignment": ExpressionReader._assignment,
    "augmented_assignment": ExpressionReader._assignment,
    "delete_statement": ExpressionReader._delete,
    "named_expression": ExpressionReader._named_expression,
    "for_statement": ExpressionReader._for,
    "for_in_clause": ExpressionReader._for,
    "as_pattern": ExpressionReader._as_pattern,
    "dotted_name": ExpressionReader._dotted_name,
    "keyword_pattern": ExpressionReader._keyword_pattern,
    "splat_pattern": ExpressionReader._splat_pattern,
    "global_statement": ExpressionReader._global,
    "nonlocal_statement": ExpressionReader._global,
    **dict.fromkeys(_CONDITIONAL, ExpressionReader._conditional),
}

"""Reads one Python syntax tree into imports, scopes and name loads.

The walk keeps its own stack instead of recursing: a sum of a thousand terms is a tree a thousand deep.
"""

from __future__ import annotations

from typing import NamedTuple

from tree_sitter import Node

from bench.languages.facts import Span
from bench.languages.python import scopes
from bench.languages.python.facts import ImportedName, StarImport
from bench.languages.python.scopes import Scope
from bench.languages.syntax import Source, rows, span

_CONDITIONAL = frozenset({"if_statement", "try_statement", "while_statement", "match_statement"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_PARAMETER_WITH_NAME = frozenset({"default_parameter", "typed_default_parameter"})
_STAR = frozenset({"list_splat_pattern", "dictionary_splat_pattern"})
_PATTERNS = (
    frozenset(
        {
            "pattern_list",
            "tuple_pattern",
            "list_pattern",
            "tuple",
            "list",
            "parenthesized_expression",
            "as_pattern_target",
        }
    )
    | _STAR
)


class Place(NamedTuple):
    """Where the walk stands."""

    scope: Scope
    quoted: bool = False
    conditional: bool = False


class RawLoad(NamedTuple):
    """A load before its scope has been looked at."""

    scope: Scope
    name: str
    chain: tuple[str, ...]
    node: Node
    quoted: bool


class Reader:
    """Walks a tree once; its public attributes hold what was found."""

    def __init__(self, source: Source) -> None:
        """Walk the whole tree of `source`."""
        self.source = source
        self.module = Scope(scopes.MODULE, None)
        self.statements: list[Span] = []
        self.imports: list[ImportedName] = []
        self.stars: list[StarImport] = []
        self.loads: list[RawLoad] = []
        self.barred: dict[int, str] = {}
        self._stack: list[tuple[Node, Place]] = [(source.root, Place(self.module))]
        while self._stack:
            node, place = self._stack.pop()
            handler = _HANDLERS.get(node.type)
            if handler is not None:
                handler(self, node, place)
            else:
                self._push(node.named_children, place)

    def _push(self, nodes: list[Node], place: Place) -> None:
        # Reversed, so that the walk is in source order and meets `global x` before `x = …`.
        self._stack.extend((node, place) for node in reversed(nodes))

    def _push_field(self, node: Node, name: str, place: Place) -> None:
        child = node.child_by_field_name(name)
        if child is not None:
            self._stack.append((child, place))

    def _bar(self, lines: range, reason: str) -> None:
        for line in lines:
            self.barred.setdefault(line, reason)

    # Loads

    def _identifier(self, node: Node, place: Place) -> None:
        self.loads.append(RawLoad(place.scope, self.source.text(node), (), node, place.quoted))

    def _attribute(self, node: Node, place: Place) -> None:
        chain: list[str] = []
        inner: Node | None = node
        while inner is not None and inner.type == "attribute":
            name = inner.child_by_field_name("attribute")
            chain.append(self.source.text(name) if name is not None else "")
            inner = inner.child_by_field_name("object")
        if inner is None:
            return
        if inner.type == "identifier":
            name_text = self.source.text(inner)
            self.loads.append(RawLoad(place.scope, name_text, tuple(reversed(chain)), inner, place.quoted))
        else:
            self._stack.append((inner, place))

    def _string(self, node: Node, place: Place) -> None:
        if node.start_point[0] != node.end_point[0]:
            self._bar(rows(node), "multiline_string")
        self._push(node.named_children, place._replace(quoted=True))

    def _keyword_argument(self, node: Node, place: Place) -> None:
        self._push_field(node, "value", place)

    # Bindings

    def _store(self, target: Node, place: Place, position: int) -> None:
        """Bind what a target names; subscripts and attributes in it are loads."""
        pending = [target]
        while pending:
            node = pending.pop()
            if node.type == "identifier":
                scope = place.scope
                scope.store(self.source.text(node), position, plain=not place.conditional)
            elif node.type in _PATTERNS:
                pending.extend(node.named_children)
            else:
                self._stack.append((node, place))

    def _assignment(self, node: Node, place: Place) -> None:
        left = node.child_by_field_name("left")
        if left is not None:
            self._store(left, place, node.end_byte)
            if node.type == "augmented_assignment" and left.type == "identifier":
                self._identifier(left, place)
        self._push_field(node, "type", place)
        self._push_field(node, "right", place)

    def _named_expression(self, node: Node, place: Place) -> None:
        scope = place.scope
        while scope.kind == scopes.COMPREHENSION and scope.parent is not None:
            scope = scope.parent
        name = node.child_by_field_name("name")
        if name is not None:
            self._store(name, place._replace(scope=scope), node.end_byte)
        self._push_field(node, "value", place)

    def _for(self, node: Node, place: Place) -> None:
        left = node.child_by_field_name("left")
        if left is not None:
            self._store(left, place, left.end_byte)
        rest = [child for child in node.named_children if child != left]
        self._push(rest, place._replace(conditional=True) if node.type == "for_statement" else place)

    def _conditional(self, node: Node, place: Place) -> None:
        self._push(node.named_children, place._replace(conditional=True))

    def _as_pattern(self, node: Node, place: Place) -> None:
        alias = node.child_by_field_name("alias")
        children = node.named_children
        if alias is None and len(children) > 1 and children[-1].type == "identifier":
            alias = children[-1]  # inside `case`, the alias is a bare identifier
        if alias is not None:
            self._store(alias, place, alias.end_byte)
        self._push([child for child in children if child != alias], place)

    def _dotted_name(self, node: Node, place: Place) -> None:
        """A name in a ``case`` pattern: one part captures, several are read."""
        parts = node.named_children
        parent = node.parent
        if len(parts) == 1 and (parent is None or parent.type != "class_pattern"):
            self._store(parts[0], place, parts[0].end_byte)
        elif parts:
            chain = tuple(self.source.text(part) for part in parts[1:])
            self.loads.append(RawLoad(place.scope, self.source.text(parts[0]), chain, parts[0], place.quoted))

    def _keyword_pattern(self, node: Node, place: Place) -> None:
        for child in node.named_children[1:]:
            self._stack.append((child, place))

    def _splat_pattern(self, node: Node, place: Place) -> None:
        for child in node.named_children:
            self._store(child, place, child.end_byte)

    def _global(self, node: Node, place: Place) -> None:
        names = {self.source.text(child) for child in node.named_children}
        (place.scope.outside if node.type == "global_statement" else place.scope.nonlocals).update(names)

    # Definitions

    def _decorator(self, node: Node, place: Place) -> None:
        self._bar(rows(node), "decorator")
        self._push(node.named_children, place)

    def _header(self, node: Node, body: Node | None) -> None:
        colon = next((child for child in reversed(node.children) if child.type == ":"), None)
        end = colon or body or node
        self._bar(range(node.start_point[0], end.start_point[0] + 1), "header")

    def _define(self, node: Node, place: Place, kind: str) -> Node | None:
        body = node.child_by_field_name("body")
        name = node.child_by_field_name("name")
        if name is not None:
            position = body.start_byte if body is not None else node.end_byte
            place.scope.store(self.source.text(name), position, plain=not place.conditional, kind=kind)
        self._header(node, body)
        return body

    def _function(self, node: Node, place: Place) -> None:
        body = self._define(node, place, "function")
        inner = Scope(scopes.FUNCTION, place.scope)
        self._type_parameters(node, inner)
        self._parameters(node.child_by_field_name("parameters"), inner, place)
        self._push_field(node, "return_type", place)
        if body is not None:
            self._stack.append((body, Place(inner, place.quoted)))

    def _class(self, node: Node, place: Place) -> None:
        body = self._define(node, place, "class")
        inner = Scope(scopes.CLASS, place.scope)
        self._type_parameters(node, inner)
        self._push_field(node, "superclasses", place)
        if body is not None:
            self._stack.append((body, Place(inner, place.quoted)))

    def _lambda(self, node: Node, place: Place) -> None:
        inner = Scope(scopes.FUNCTION, place.scope)
        self._parameters(node.child_by_field_name("parameters"), inner, place)
        self._push_field(node, "body", place._replace(scope=inner, conditional=False))

    def _comprehension(self, node: Node, place: Place) -> None:
        inner = Scope(scopes.COMPREHENSION, place.scope)
        self._push(node.named_children, place._replace(scope=inner, conditional=False))

    def _type_parameters(self, node: Node, inner: Scope) -> None:
        parameters = node.child_by_field_name("type_parameters")
        for child in parameters.named_children if parameters is not None else ():
            name: Node | None = child
            while name is not None and name.type != "identifier":
                name = name.named_children[0] if name.named_children else None
            if name is not None:
                inner.store(self.source.text(name), 0, plain=True)

    def _parameters(self, parameters: Node | None, inner: Scope, place: Place) -> None:
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
            if target is not None and (target.type == "identifier" or target.type in _PATTERNS):
                self._store(target, Place(inner), 0)

    # Imports

    def _statement(self, node: Node) -> int:
        self._bar(rows(node), "import")
        self.statements.append(span(node))
        return len(self.statements) - 1

    def _bind(self, item: ImportedName, node: Node, place: Place) -> None:
        scope = place.scope.module() if item.bound in place.scope.outside else place.scope
        scope.imports.setdefault(item.bound, []).append((node.end_byte, len(self.imports)))
        self.imports.append(item)

    def _named(self, child: Node) -> tuple[str, str | None]:
        if child.type != "aliased_import":
            return self.source.text(child), None
        name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
        return self.source.text(name) if name else "", self.source.text(alias) if alias else None

    def _import(self, node: Node, place: Place) -> None:
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

    def _import_from(self, node: Node, place: Place) -> None:
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

    def _future(self, node: Node, place: Place) -> None:
        self._bar(rows(node), "import")


_HANDLERS = {
    "identifier": Reader._identifier,
    "attribute": Reader._attribute,
    "string": Reader._string,
    "keyword_argument": Reader._keyword_argument,
    "assignment": Reader._assignment,
    "augmented_assignment": Reader._assignment,
    "named_expression": Reader._named_expression,
    "for_statement": Reader._for,
    "for_in_clause": Reader._for,
    "as_pattern": Reader._as_pattern,
    "dotted_name": Reader._dotted_name,
    "keyword_pattern": Reader._keyword_pattern,
    "splat_pattern": Reader._splat_pattern,
    "global_statement": Reader._global,
    "nonlocal_statement": Reader._global,
    "decorator": Reader._decorator,
    "function_definition": Reader._function,
    "class_definition": Reader._class,
    "lambda": Reader._lambda,
    "import_statement": Reader._import,
    "import_from_statement": Reader._import_from,
    "future_import_statement": Reader._future,
    **dict.fromkeys(_CONDITIONAL, Reader._conditional),
    **dict.fromkeys(_COMPREHENSIONS, Reader._comprehension),
}

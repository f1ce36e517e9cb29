"""Reads imports, scopes and used names from a Python syntax tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from tree_sitter import Node

from ctxbench.bench.languages.outline import Span
from ctxbench.bench.languages.python.modules import ImportedName, StarImport
from ctxbench.bench.languages.syntax import Handler, Source, TreeReader, rows, span

MODULE, CLASS, FUNCTION, COMPREHENSION, TYPES = "module", "class", "function", "comprehension", "types"


@dataclass(slots=True)
class PythonScope:
    """A scope in a file. Positions are byte offsets."""

    kind: str
    parent: PythonScope | None
    stores: dict[str, list[int]] = field(default_factory=dict)
    """Positions where each name is bound, except by imports; -1 for a conditional or ``global`` binding."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Kind of each name: ``class`` or ``function``, whichever binds it last; ``variable`` if neither does."""
    imports: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """End position of each import that binds a name, and the import's index in the list of imports."""
    outside: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)

    def store(self, name: str, position: int, *, plain: bool, kind: str = "variable") -> None:
        """Record that something other than an import binds the name at `position`, conditionally if not `plain`."""
        if name in self.outside:
            self.module().stores.setdefault(name, []).append(-1)
            return
        if name in self.nonlocals:
            return
        self.stores.setdefault(name, []).append(position if plain else -1)
        if kind != "variable" or name not in self.kinds:
            self.kinds[name] = kind

    def module(self) -> PythonScope:
        """Return the module's scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str, position: int) -> tuple[int, ...] | None:
        """Return indices of the imports that `name` may refer to; empty if bound otherwise, None if it is unbound."""
        scope = self.binder(name)
        if scope is None:
            return None
        return scope.imports_at(name, position, nested=scope is not self) if name in scope.imports else ()

    def binder(self, name: str) -> PythonScope | None:
        """Return the scope whose binding of `name` this scope sees; None if no scope binds the name."""
        scope: PythonScope | None = self
        direct = True
        while scope is not None:
            if direct or scope.kind != CLASS:
                if name in scope.outside:
                    scope = scope.module()
                if name in scope.imports or name in scope.stores:
                    return scope
            # The type parameters of a method, and annotations beside them, see the names of its class.
            direct = direct and scope.kind == TYPES
            scope = scope.parent
        return None

    def imports_at(self, name: str, position: int, *, nested: bool) -> tuple[int, ...]:
        """Return the indices of imports that may bind `name` at `position` (if `nested`, anywhere); may be empty."""
        imports = self.imports[name]
        before = [place for place, _ in imports if nested or place < position]
        if not before:
            return ()
        last = max(before)
        if any(last < place and (nested or place <= position) for place in self.stores.get(name, ())):
            return ()
        return tuple(index for _, index in imports)


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
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)
_TYPE_PARAMETER = frozenset({"type", "constrained_type", "splat_type"})
_PARAMETER_WITH_NAME = frozenset({"default_parameter", "typed_default_parameter"})


class PythonPlace(NamedTuple):
    """The scope around the current node of the tree walk, and whether a string or conditional statement contains it."""

    scope: PythonScope
    quoted: bool = False
    conditional: bool = False


class RawLoad(NamedTuple):
    """A name that is read, before its scope is resolved."""

    scope: PythonScope
    name: str
    chain: tuple[str, ...]
    near: int
    node: Node
    quoted: bool


class Reader(TreeReader[PythonPlace]):
    """Reads a file's imports, scopes and used names in text order, so that ``global x`` comes before ``x = …``."""

    def __init__(self, source: Source) -> None:
        self.module = PythonScope(MODULE, None)
        self.statements: list[Span] = []
        self.imports: list[ImportedName] = []
        self.stars: list[StarImport] = []
        self.loads: list[RawLoad] = []
        super().__init__(source, PythonPlace(self.module))

    def _identifier(self, node: Node, place: PythonPlace) -> None:
        self.loads.append(RawLoad(place.scope, self.source.text(node), (), 0, node, place.quoted))

    def _attribute(self, node: Node, place: PythonPlace) -> None:
        chain: list[str] = []
        lines: list[int] = []
        inner: Node | None = node
        while inner is not None and inner.type == "attribute":
            chain.append(self.source.field(inner, "attribute"))
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

    def _store(self, target: Node, place: PythonPlace, position: int) -> None:
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
        while scope.kind == COMPREHENSION and scope.parent is not None:
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
        types = self._type_parameters(node.child_by_field_name("type_parameters"), place)
        inner = PythonScope(FUNCTION, types.scope)
        self._parameters(node.child_by_field_name("parameters"), inner, place, types)
        self._push_field(node, "return_type", types)
        if body is not None:
            self._stack.append((body, PythonPlace(inner, place.quoted)))

    def _class(self, node: Node, place: PythonPlace) -> None:
        body = self._define(node, place, "class")
        types = self._type_parameters(node.child_by_field_name("type_parameters"), place)
        inner = PythonScope(CLASS, types.scope)
        self._push_field(node, "superclasses", types)
        if body is not None:
            self._stack.append((body, PythonPlace(inner, place.quoted)))

    def _lambda(self, node: Node, place: PythonPlace) -> None:
        inner = PythonScope(FUNCTION, place.scope)
        self._parameters(node.child_by_field_name("parameters"), inner, place, place)
        self._push_field(node, "body", place._replace(scope=inner, conditional=False))

    def _comprehension(self, node: Node, place: PythonPlace) -> None:
        inner = place._replace(scope=PythonScope(COMPREHENSION, place.scope), conditional=False)
        first = next((child for child in node.named_children if child.type == "for_in_clause"), None)
        if first is not None:
            # The first iterable is read outside the comprehension; in a class it may be the class's own.
            target = first.child_by_field_name("left")
            if target is not None:
                self._store(target, inner, target.end_byte)
            self._push([child for child in first.named_children if child != target], place)
        self._push([child for child in node.named_children if child != first], inner)

    def _type_alias(self, node: Node, place: PythonPlace) -> None:
        name, parameters = node.child_by_field_name("left"), None
        while name is not None and name.type in ("type", "generic_type"):
            parameters = next((child for child in name.named_children if child.type == "type_parameter"), None)
            name = name.named_children[0]
        if name is not None:
            self._store(name, place, node.end_byte)
        # The value is evaluated lazily, so it may name the alias.
        types = self._type_parameters(parameters, place, always=True)
        self._push_field(node, "right", types)

    def _type_parameters(self, parameters: Node | None, place: PythonPlace, *, always: bool = False) -> PythonPlace:
        if parameters is None and not always:
            return place
        types = place._replace(scope=PythonScope(TYPES, place.scope))
        pending = parameters.named_children if parameters is not None else []
        while pending:
            node = pending.pop()
            if node.type == "identifier":
                types.scope.store(self.source.text(node), 0, plain=True)
            elif node.type in _TYPE_PARAMETER and node.named_children:
                pending.append(node.named_children[0])
                self._push(node.named_children[1:], types)
        return types

    def _parameters(self, parameters: Node | None, inner: PythonScope, place: PythonPlace, types: PythonPlace) -> None:
        for parameter in parameters.named_children if parameters is not None else ():
            target: Node | None = parameter
            if parameter.type in _PARAMETER_WITH_NAME:
                target = parameter.child_by_field_name("name")
                self._push_field(parameter, "value", place)
                self._push_field(parameter, "type", types)
            elif parameter.type == "typed_parameter":
                target = parameter.named_children[0] if parameter.named_children else None
                self._push_field(parameter, "type", types)
            if target is not None and (target.type == "identifier" or target.type in PATTERNS):
                self._store(target, PythonPlace(inner), 0)

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
        return self.source.field(child, "name"), self.source.field(child, "alias") or None

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
        text = "".join(self.source.field(node, "module_name").split())
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
        "identifier": _identifier,
        "attribute": _attribute,
        "string": _string,
        "keyword_argument": _keyword_argument,
        "assignment": _assignment,
        "augmented_assignment": _assignment,
        "delete_statement": _delete,
        "named_expression": _named_expression,
        "for_statement": _for,
        "for_in_clause": _for,
        "as_pattern": _as_pattern,
        "dotted_name": _dotted_name,
        "keyword_pattern": _keyword_pattern,
        "splat_pattern": _splat_pattern,
        "global_statement": _global,
        "nonlocal_statement": _global,
        **dict.fromkeys(_CONDITIONAL, _conditional),
        "decorator": _decorator,
        "function_definition": _function,
        "class_definition": _class,
        "lambda": _lambda,
        "type_alias_statement": _type_alias,
        "import_statement": _import,
        "import_from_statement": _import_from,
        "future_import_statement": _future,
        **dict.fromkeys(_COMPREHENSIONS, _comprehension),
    }

"""The classes of one Python file: their bases, and the names that their bodies and methods bind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.syntax import Source

SELF = frozenset({"self", "cls"})
"""What methods call their own object or class; other spellings are not followed."""
_PLAIN_DECORATORS = frozenset(
    {"dataclass", "define", "frozen", "mutable", "attrs", "final", "runtime_checkable", "total_ordering", "unique"}
)
"""Decorators, by their last name, that add no member except special methods."""
_DYNAMIC = ("__getattr__", "__getattribute__", "__dict__", "setattr(", "vars(")
_NAMES = frozenset({"identifier", "pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern", "tuple"})
_TARGETS = frozenset({"assignment", "augmented_assignment", "for_statement", "for_in_clause"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """One class."""

    name: str
    """With the classes around it: ``Outer.Inner``."""
    bases: tuple[str, ...]
    """As written, without subscripts: ``Base``, ``shop.Base``; empty text for what is no plain name."""
    members: frozenset[str]
    """Bound in its body, or assigned to its object or class in a method."""
    dynamic: bool
    """Whether members may come from elsewhere: a metaclass, a decorator, ``__getattr__``, ``setattr``."""


def read_classes(source: Source) -> dict[str, Class]:
    """Return the classes of a file by name, those inside functions left out; of two of one name, their union."""
    classes: dict[str, Class] = {}
    pending: list[tuple[Node, str]] = [(source.root, "")]
    while pending:
        node, outer = pending.pop()
        if node.type in ("function_definition", "lambda"):
            continue
        if node.type == "class_definition":
            definition = _class(node, outer, source)
            earlier = classes.get(definition.name)
            classes[definition.name] = _joined(earlier, definition) if earlier else definition
            outer = f"{definition.name}."
        pending += [(child, outer) for child in node.named_children]
    return classes


def _joined(earlier: Class, later: Class) -> Class:
    return Class(
        name=earlier.name,
        bases=tuple(dict.fromkeys([*earlier.bases, *later.bases])),
        members=earlier.members | later.members,
        dynamic=earlier.dynamic or later.dynamic,
    )


def _class(node: Node, outer: str, source: Source) -> Class:
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    bases, keywords = _bases(node.child_by_field_name("superclasses"), source)
    text = source.text(node)
    return Class(
        name=outer + (source.text(name) if name is not None else ""),
        bases=bases,
        members=frozenset(_members(body, source)) if body is not None else frozenset(),
        dynamic=keywords or not _plainly_decorated(node, source) or any(word in text for word in _DYNAMIC),
    )


def _bases(arguments: Node | None, source: Source) -> tuple[tuple[str, ...], bool]:
    """Return the bases, and whether keywords (a metaclass) stand beside them."""
    bases: list[str] = []
    keywords = False
    for argument in arguments.named_children if arguments is not None else ():
        base: Node | None = argument
        if argument.type == "subscript":
            base = argument.child_by_field_name("value")
        if argument.type == "keyword_argument":
            keywords = True
        elif argument.type != "comment":
            plain = base is not None and base.type in ("identifier", "attribute")
            bases.append("".join(source.text(base).split()) if plain and base is not None else "")
    return tuple(bases), keywords


def _plainly_decorated(node: Node, source: Source) -> bool:
    around = node.parent
    if around is None or around.type != "decorated_definition":
        return True
    decorators = [source.text(child) for child in around.named_children if child.type == "decorator"]
    return all(text[1:].partition("(")[0].strip().rpartition(".")[2] in _PLAIN_DECORATORS for text in decorators)


def _members(body: Node, source: Source) -> Iterator[str]:
    """Yield the names bound in a class body, then those that its methods assign to their object."""
    pending: list[tuple[Node, bool]] = [(child, False) for child in body.named_children]
    while pending:
        node, inside = pending.pop()
        if node.type in ("class_definition", "function_definition"):
            name = node.child_by_field_name("name")
            if not inside and name is not None:
                yield source.text(name)
            if node.type == "class_definition":
                continue
            inside = True
        target = node.child_by_field_name("left") if node.type in _TARGETS else None
        if node.type == "as_pattern_target":
            target = node
        if target is not None:
            yield from _assigned(target, inside, source)
            yield from _slots(node, target, source)
        if node.type in ("import_statement", "import_from_statement") and not inside:
            yield from _imported(node, source)
        pending += [(child, inside) for child in node.named_children]


def _assigned(target: Node, inside: bool, source: Source) -> Iterator[str]:
    pending = [target]
    while pending:
        node = pending.pop()
        if node.type == "identifier" and not inside:
            yield source.text(node)
        elif node.type == "attribute":
            owner, name = node.child_by_field_name("object"), node.child_by_field_name("attribute")
            if owner is not None and name is not None and source.text(owner) in SELF:
                yield source.text(name)
        elif node.type in _NAMES or node.type == "as_pattern_target":
            pending += node.named_children


def _slots(node: Node, target: Node, source: Source) -> Iterator[str]:
    right = node.child_by_field_name("right")
    if right is not None and source.text(target) == "__slots__":
        pending = [right]
        while pending:
            inner = pending.pop()
            if inner.type == "string_content":
                yield source.text(inner)
            pending += inner.named_children


def _imported(node: Node, source: Source) -> Iterator[str]:
    for child in node.children_by_field_name("name"):
        alias = child.child_by_field_name("alias")
        yield source.text(alias) if alias is not None else source.text(child).partition(".")[0]

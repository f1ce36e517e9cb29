"""Java methods in syntax trees: where they are, and where their declaration and their body begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import ANNOTATIONS, COMMENTS
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

TYPES = frozenset({"class_declaration", "interface_declaration", "enum_declaration", "record_declaration"})
HEAD, TAIL = "class X {\n", "\n}\n"
"""What stands before and behind members in `in_class`."""


@dataclass(frozen=True, slots=True)
class MethodParts:
    """Where a method stands in a syntax tree."""

    node: Node
    first: Node
    """Where its declaration begins: annotations and comments left out."""
    body: Node


def declared(node: Node) -> MethodParts | None:
    """Return a method's parts, None for one without a body."""
    body = node.child_by_field_name("body")
    if body is None:
        return None
    first = next(child for child in node.children if child.type not in COMMENTS)
    if first.type == "modifiers":
        words = [child for child in first.children if child.type not in (*ANNOTATIONS, *COMMENTS)]
        first = words[0] if words else _after(node, first)
    return MethodParts(node, first, body)


def _after(node: Node, modifiers: Node) -> Node:
    following = node.children[node.children.index(modifiers) + 1 :]
    return next(child for child in following if child.type not in COMMENTS)


def methods(source: Source, node: Node, owners: tuple[str, ...] = ()) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """Yield the methods of types below a node, in the order of the text, each with the names of the types around it.

    Those of anonymous and local classes are left out, and constructors.
    """
    for child in node.named_children:
        if child.type == "method_declaration":
            yield child, owners
        elif child.type in TYPES:
            body = child.child_by_field_name("body")
            if body is not None:
                yield from methods(source, body, (*owners, name_of(source, child)))
        elif child.type == "enum_body_declarations":
            yield from methods(source, child, owners)


def name_of(source: Source, node: Node) -> str:
    """Return the name that a node declares; empty if it has none."""
    name = node.child_by_field_name("name")
    return source.text(name) if name is not None else ""


def within(node: Node) -> Iterator[Node]:
    """Yield a node and all named nodes in it, in the order of the text."""
    stack = [node]
    while stack:
        inner = stack.pop()
        yield inner
        stack.extend(reversed(inner.named_children))


def body_start(source: Source, body: Node) -> Cursor:
    """Return where the body begins: the line after its brace, unless something stands behind that."""
    at = behind_brace(source, body)
    begin = body.start_byte + 1
    line_after = source.data[begin : source.data.find(b"\n", begin)]
    return at if line_after.strip() else Cursor(line=at.line + 1, column=0)


def body_end(source: Source, body: Node) -> Cursor:
    """Return where a body ends: before its closing brace and the blanks before that."""
    row, byte = body.end_point
    line = source.data.rfind(b"\n", 0, body.end_byte) + 1
    blank = not source.data[line : body.end_byte - 1].strip()
    return Cursor(line=row, column=0 if blank else source.column(row, byte) - 1)


def behind_brace(source: Source, block: Node) -> Cursor:
    """Return the place behind the opening brace of a block."""
    row, byte = block.start_point
    return Cursor(line=row, column=source.column(row, byte) + 1)


def shares_line(source: Source, parts: MethodParts) -> bool:
    """Say whether anything else stands on the method's first or last line: annotations too."""
    before = source.data[source.data.rfind(b"\n", 0, parts.first.start_byte) + 1 : parts.first.start_byte]
    stop = source.data.find(b"\n", parts.node.end_byte)
    after = source.data[parts.node.end_byte : stop if stop >= 0 else len(source.data)]
    inside = any(
        child.type in ANNOTATIONS and child.start_byte > parts.first.start_byte
        for modifiers in parts.node.children
        if modifiers.type == "modifiers"
        for child in modifiers.children
    )
    return bool(before.strip() or after.strip() or inside)


def in_class(members: str) -> Source:
    """Return the syntax tree of members of a class, between `HEAD` and `TAIL`."""
    return Source(HEAD + members + TAIL, JAVA)

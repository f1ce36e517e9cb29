"""Outlines a Java file, which may end at the cursor, and finds methods in syntax trees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.java import COMMENT_OR_LITERAL, JAVA
from ctxbench.bench.languages.outline import Function, FunctionParameter, Outline, Span, Type
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_TOKEN = re.compile(
    rf"{COMMENT_OR_LITERAL}|(?P<values>[=\]]\s*\{{)|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<end>;)",
    re.DOTALL,
)
KINDS = {
    "class_declaration": "class",
    "interface_declaration": "interface",
    "enum_declaration": "enum",
    "record_declaration": "record",
    "annotation_type_declaration": "annotation",
}
COMMENTS = ("line_comment", "block_comment")
_FLAT = frozenset(
    {"import_declaration", "package_declaration", "field_access", "type_arguments", "modifiers", "formal_parameters"}
)
"""Frequent types of nodes that contain no declarations."""
ANNOTATIONS = ("annotation", "marker_annotation")
_MARGIN = re.compile(r"^[ \t]*\*? ?", re.MULTILINE)


def outline(text: str) -> Outline:
    """Return a file's outline. An incomplete statement at the end of the file is ignored."""
    source = Source(text, JAVA)
    reader = _Reader(source)
    if source.root.has_error:
        mended = _Reader(Source(_mended(text), JAVA))
        if not mended.source.root.has_error or len(mended.functions) > len(reader.functions):
            reader = mended
    return Outline(functions=tuple(reader.functions), types=tuple(reader.types), broken=source.root.has_error)


def _mended(text: str) -> str:
    start, opened = 0, [""]
    for token in _TOKEN.finditer(text):
        if token["values"]:
            # Array values in braces are like arguments: no statement ends there.
            opened[len(opened) - (token[0][0] == "]") :] = ["["]
        elif token["open"]:
            opened.append(token[0])
        elif token["close"] and len(opened) > 1:
            opened.pop()
        # In parentheses, statements end only in anonymous classes and lambda blocks, which are blanked too.
        if token[0] in ("{", "}", ";") and "(" not in opened and "[" not in opened:
            start = token.end()
    first = next((place for place, bracket in enumerate(opened) if bracket in ("(", "[")), len(opened))
    blank = "".join(char if char == "\n" else " " for char in text[start:].rstrip())
    # The body of an anonymous class that is assigned needs its semicolon; elsewhere the semicolon is harmless.
    return f"{text[:start]}{blank}{'};' * (first - 1)}\n"


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: list[Function] = []
        self.types: list[Type] = []
        stack: list[tuple[Node, tuple[Type, ...], str]] = [(source.root, (), "")]
        while stack:
            node, types, inside = stack.pop()
            kind_of = node.type
            if kind_of in JAVA.function_nodes and node.child_by_field_name("name") is not None:
                function = self._function(node, types, inside)
                self.functions.append(function)
                inside = function.name
            elif kind_of in KINDS and node.child_by_field_name("name") is not None:
                kind = self._type(node)
                self.types.append(kind)
                types = (*types, kind)
            if kind_of not in _FLAT:
                stack.extend((child, types, inside) for child in reversed(_inner(node)))

    def _header(self, node: Node) -> str:
        body = node.child_by_field_name("body")
        stop = body.start_byte if body is not None else node.end_byte
        return self.source.data[node.start_byte : stop].decode("utf-8", "replace").rstrip().removesuffix(";").rstrip()

    def _type(self, node: Node) -> Type:
        return Type(
            name=self.source.field(node, "name"),
            header=self._header(node),
            kind=KINDS[node.type],
            lines=(self._attached(node)[0], node.end_point[0] + 1),
            head=node.start_point[0],
        )

    def _attached(self, node: Node) -> tuple[int, str]:
        row, doc, above = node.start_point[0], "", node.prev_sibling
        while above is not None and above.type in COMMENTS and self._alone(above):
            javadoc = self.source.text(above).startswith("/**") and not doc
            # The node of a line comment may include its newline.
            if above.end_point[0] + (above.end_point[1] > 0) < row and not javadoc:
                break
            doc = self.source.text(above) if javadoc else doc
            row, above = above.start_point[0], above.prev_sibling
        return row, doc

    def _alone(self, comment: Node) -> bool:
        line = self.source.data.rfind(b"\n", 0, comment.start_byte) + 1
        return not self.source.data[line : comment.start_byte].strip()

    def _function(self, node: Node, types: tuple[Type, ...], inside: str) -> Function:
        (start, doc), end = self._attached(node), node.end_point[0] + 1
        modifiers = next((child.children for child in node.children if child.type == "modifiers"), [])
        parameters = node.child_by_field_name("parameters")
        if (
            node.type == "compact_constructor_declaration"
            and node.parent is not None
            and node.parent.parent is not None
        ):
            parameters = node.parent.parent.child_by_field_name("parameters")
        throws = next((child for child in node.children if child.type == "throws"), None)
        body = node.child_by_field_name("body")
        return Function(
            name=self.source.field(node, "name"),
            types=types,
            inside=inside,
            lines=(start, end),
            head=node.start_point[0],
            body=_body(node, body),
            decorators=tuple(self.source.text(child) for child in modifiers if child.type in ANNOTATIONS),
            modifiers=tuple(
                self.source.text(child) for child in modifiers if child.type not in (*ANNOTATIONS, *COMMENTS)
            ),
            parameters=tuple(self._parameters(parameters)),
            parameters_text=self.source.text(parameters).strip()[1:-1],
            returns=self.source.field(node, "type"),
            throws=self.source.text(throws),
            docstring=_MARGIN.sub("", doc[3:].removesuffix("/").rstrip("*")).strip(),
            constructor=node.type != "method_declaration",
            has_body=body is not None,
            header=self._header(node),
            code=self.source.text(node),
        )

    def _parameters(self, node: Node | None) -> Iterator[FunctionParameter]:
        for child in node.named_children if node is not None else ():
            name = child.child_by_field_name("name")
            if child.type == "spread_parameter":
                declarator = next((part for part in child.named_children if part.type == "variable_declarator"), None)
                name = declarator.child_by_field_name("name") if declarator is not None else None
            if name is not None and child.type in ("formal_parameter", "spread_parameter"):
                starred = child.type == "spread_parameter"
                yield FunctionParameter(name=self.source.text(name), text=self.source.text(child), starred=starred)


def _inner(node: Node) -> list[Node]:
    if node.type in ("object_creation_expression", "enum_constant"):
        return [child for child in node.named_children if child.type != "class_body"]
    return node.named_children


def _body(node: Node, body: Node | None) -> Span:
    end = node.end_point[0] + 1
    if body is None:
        return end, end
    opening = body.start_point[0]
    first = next((child for child in body.named_children if child.type not in COMMENTS), None)
    one_line = opening + 1 == end or (first is not None and first.start_point[0] == opening)
    return (opening if one_line else opening + 1), end


TYPES = frozenset({"class_declaration", "interface_declaration", "enum_declaration", "record_declaration"})
HEAD, TAIL = "class X {\n", "\n}\n"


@dataclass(frozen=True, slots=True)
class MethodParts:
    """A method's nodes in a syntax tree."""

    node: Node
    first: Node
    """First node of the declaration, after annotations and comments."""
    body: Node


def declared(node: Node) -> MethodParts | None:
    """Return the nodes of a method's declaration and body; None for a method without a body."""
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
    """Yield methods, not constructors, in a node and its nested types, each with its types' names, outermost first."""
    for child in node.named_children:
        if child.type == "method_declaration":
            yield child, owners
        elif child.type in TYPES:
            body = child.child_by_field_name("body")
            if body is not None:
                yield from methods(source, body, (*owners, source.field(child, "name")))
        elif child.type == "enum_body_declarations":
            yield from methods(source, child, owners)


def body_start(source: Source, body: Node) -> Cursor:
    """Return where the body begins: on the line after its brace, or after the brace if text follows on its line."""
    at = after_brace(source, body)
    begin = body.start_byte + 1
    line_after = source.data[begin : source.data.find(b"\n", begin)]
    return at if line_after.strip() else Cursor(line=at.line + 1, column=0)


def body_end(source: Source, body: Node) -> Cursor:
    """Return where the body ends: before its closing brace, or at the start of a line that begins with the brace."""
    row, byte = body.end_point
    line = source.data.rfind(b"\n", 0, body.end_byte) + 1
    blank = not source.data[line : body.end_byte - 1].strip()
    return Cursor(line=row, column=0 if blank else source.column(row, byte) - 1)


def after_brace(source: Source, block: Node) -> Cursor:
    """Return the place after a block's opening brace."""
    row, byte = block.start_point
    return Cursor(line=row, column=source.column(row, byte) + 1)


def shares_line(source: Source, parts: MethodParts) -> bool:
    """Return whether other text shares the method's first or last line, or an annotation follows a modifier."""
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
    """Parse a text that contains members of a class."""
    return Source(HEAD + members + TAIL, JAVA)

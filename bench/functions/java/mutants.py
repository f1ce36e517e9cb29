"""Creates faulty versions of a Java method, without type information, to evaluate the method's tests."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from ctxbench.bench.functions.choose import faulty_versions
from ctxbench.bench.judging.java.text import zero
from ctxbench.bench.languages.java.outline import HEAD, TAIL, in_class
from ctxbench.bench.languages.syntax import Source, named_descendants

_COMPARISONS = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_OPERATORS = {"-": "+", "*": "+", "/": "*", "%": "+", "&": "|", "|": "&", "<<": ">>", ">>": "<<", ">>>": "<<"}
"""Operators and their replacements. `+` is missing, because its operands may be strings."""
_BOOLS = {"&&": "||", "||": "&&"}
_LITERALS = {"true": "false", "false": "true"}
_LOOPS = frozenset({"while_statement", "do_statement", "for_statement", "enhanced_for_statement"})
_OTHER_BODIES = frozenset({"lambda_expression", "class_body"})
"""Nodes whose return statements do not end the method."""
_CHANGES = frozenset({"method_invocation", "assignment_expression", "update_expression"})
_WRAPPED = frozenset({"min", "max", "abs"})
_NO_CONSTANTS = frozenset({"switch_label", "annotation", "marker_annotation"})


def mutants(text: str, most: int) -> tuple[str, ...]:
    """Create up to `most` distinct faulty versions of a method. The order depends only on `text`."""
    source = in_class(text)
    holder = source.root.named_children[0].child_by_field_name("body") if source.root.named_children else None
    methods = [node for node in holder.named_children if node.type == "method_declaration"] if holder else []
    if source.root.has_error or len(methods) != 1 or methods[0].child_by_field_name("body") is None:
        return ()

    def changed(edit: _Edit) -> str:
        start, end, put = edit
        whole = source.data[:start] + put.encode() + source.data[end:]
        return whole[len(HEAD) : -len(TAIL)].decode("utf-8", "replace")

    return faulty_versions(text, _Method(source, methods[0]).places(), text, changed, most)


_Edit = tuple[int, int, str]
"""A replacement in the text: first byte, end byte (exclusive), new text."""


class _Method:
    def __init__(self, source: Source, node: Node) -> None:
        self._source, self._node = source, node
        self._name = self._source.field(node, "name")
        dimensions = self._source.field(node, "dimensions")
        self._returned = self._source.field(node, "type") + dimensions
        self._unset = {
            self._source.field(part, "name")
            for part in named_descendants(node)
            if part.type == "variable_declarator" and part.child_by_field_name("value") is None
        }

    def places(self) -> Iterator[tuple[str, _Edit]]:
        body = self._node.child_by_field_name("body")
        for node in named_descendants(body) if body is not None else ():
            for kind, place, put in self._changes(node):
                yield kind, (place.start_byte, place.end_byte, put)

    def _changes(self, node: Node) -> Iterator[tuple[str, Node, str]]:
        above = list(_above(node, self._node))
        types = {around.type for around in above}
        if node.type == "return_statement" and types.isdisjoint(_OTHER_BODIES):
            yield from self._return(node, above)
        if node.type == "method_invocation":
            yield from self._call(node, above)
        if types.isdisjoint(_NO_CONSTANTS) and not _counts(node, above):
            yield from self._constant(node)
        if node.type == "binary_expression" and not _heads_loop(node, above):
            yield from self._operation(node, _BOOLS, "bool")
        if _ends_by_its_body(above) or _heads_loop(node, above):
            return
        if not _caught(node, above):
            yield from self._statement(node, above)
        if node.type in ("if_statement", "ternary_expression"):
            condition = node.child_by_field_name("condition")
            if condition is not None and not _binds(condition):
                yield "condition", condition, f"(!({self._source.text(condition)}))"
        if node.type == "binary_expression":
            yield from self._operation(node, _COMPARISONS, "comparison")
            yield from self._operation(node, _OPERATORS, "operator")

    def _return(self, node: Node, above: list[Node]) -> Iterator[tuple[str, Node, str]]:
        value = next(iter(node.named_children), None)
        nothing = zero(self._returned)
        if value is not None and self._source.text(value) != nothing and not _caught(node, above):
            yield "return", node, f"return {nothing};"

    def _call(self, node: Node, above: list[Node]) -> Iterator[tuple[str, Node, str]]:
        receiver = node.child_by_field_name("object")
        arguments = node.child_by_field_name("arguments")
        first = arguments.named_children[0] if arguments is not None and arguments.named_children else None
        name, owner = self._source.field(node, "name"), self._source.text(receiver)
        if above[0].type == "expression_statement":
            return
        if owner == "Math" and name in _WRAPPED and first is not None:
            yield "call", node, f"({self._source.text(first)})"
        elif (
            receiver is not None
            and receiver.type == "method_invocation"
            and self._source.field(receiver, "name") == name
        ):
            yield "call", node, owner
        elif name == self._name and owner in ("", "this", "super") and self._returned != "void":
            if above[0].type == "return_statement" or _caught(node, above):
                return
            nothing = zero(self._returned)
            yield "call", node, f"(({self._returned}) null)" if nothing == "null" else nothing

    def _constant(self, node: Node) -> Iterator[tuple[str, Node, str]]:
        text = self._source.text(node)
        if text in _LITERALS:
            yield "constant", node, _LITERALS[text]
        elif node.type.endswith(("_integer_literal", "_floating_point_literal")):
            yield "constant", node, f"({text} + 1)"
        elif node.type == "string_literal":
            yield "constant", node, '""' if text != '""' else '"x"'
        elif node.type == "character_literal":
            yield "constant", node, "'~'" if text != "'~'" else "'!'"

    def _operation(self, node: Node, others: dict[str, str], kind: str) -> Iterator[tuple[str, Node, str]]:
        first, sign, second = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        if first is None or sign is None or second is None or _binds(node):
            return
        other = others.get(self._source.text(sign))
        if other is not None:
            yield kind, node, f"({self._source.text(first)} {other} {self._source.text(second)})"

    def _statement(self, node: Node, above: list[Node]) -> Iterator[tuple[str, Node, str]]:
        if node.type == "expression_statement":
            change = node.named_children[0]
            set_here = self._source.field(change, "left") if change.type == "assignment_expression" else ""
            if change.type in _CHANGES and set_here not in self._unset:
                yield "statement", node, "{ }"
        elif node.type == "throw_statement" and _may_go_on(node, above):
            yield "statement", node, "{ }"
        elif node.type == "variable_declarator" and above[0].type == "local_variable_declaration":
            value, kind = node.child_by_field_name("value"), self._source.field(above[0], "type")
            nothing = zero(kind + self._source.field(node, "dimensions"))
            if value is not None and kind != "var" and self._source.text(value) != nothing:
                yield "statement", value, nothing
        elif node.type == "enhanced_for_statement" or (
            node.type in ("for_statement", "while_statement")
            and self._source.field(node, "condition") not in ("", "(true)")
        ):
            yield "loop", node, "{ }"


def _above(node: Node, method: Node) -> Iterator[Node]:
    around = node.parent
    while around is not None and around.id != method.id:
        yield around
        around = around.parent


def _part(node: Node, around: Node, *fields: str) -> bool:
    parts = [part for name in fields for part in around.children_by_field_name(name)]
    return any(part.start_byte <= node.start_byte and node.end_byte <= part.end_byte for part in parts)


def _heads_loop(node: Node, above: list[Node]) -> bool:
    return any(_part(node, around, "condition", "init", "update") for around in above if around.type in _LOOPS)


def _counts(node: Node, above: list[Node]) -> bool:
    return any(
        _part(node, around, "update") or (node.type in _LITERALS and _part(node, around, "condition"))
        for around in above
        if around.type in _LOOPS
    )


def _ends_by_its_body(above: list[Node]) -> bool:
    return any(
        around.type in ("while_statement", "do_statement")
        or (around.type == "for_statement" and not (_has(around, "condition") and _has(around, "update")))
        for around in above
    )


def _has(node: Node, name: str) -> bool:
    return node.child_by_field_name(name) is not None


def _caught(node: Node, above: list[Node]) -> bool:
    """Return whether a node is in a try block with catch clauses, where javac requires that exceptions can occur."""
    return any(
        _part(node, around, "body", "resources") and any(part.type == "catch_clause" for part in around.named_children)
        for around in above
        if around.type.startswith("try_")
    )


def _may_go_on(node: Node, above: list[Node]) -> bool:
    inner = above[0] if above[0].type != "block" else above[1] if len(above) > 1 else above[0]
    last = above[0].type != "block" or above[0].named_children[-1].id == node.id
    return inner.type == "if_statement" and last and not _has(inner, "alternative")


def _binds(node: Node) -> bool:
    return any(
        part.type == "instanceof_expression" and (_has(part, "name") or _has(part, "pattern"))
        for part in named_descendants(node)
    )

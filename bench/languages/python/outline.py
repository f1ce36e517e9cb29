"""Outlines the functions and classes of a Python file, which may end at the cursor."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from tree_sitter import Node

from ctxbench.bench.languages.outline import Function, FunctionParameter, Outline, Span, Type
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import cleaned, parse
from ctxbench.bench.languages.syntax import Source

_TOKEN = re.compile(
    r"(?P<string>\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''(?:\\.|[^\\])*?(?:'''|\Z)"
    r"|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?)|#[^\n]*|\\\n|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<line>\n)",
    re.DOTALL,
)
_DEFINITIONS = ("module", "block", "class_definition", "decorated_definition")
_SPLATS = ("list_splat_pattern", "dictionary_splat_pattern")
_SEPARATORS = ("keyword_separator", "positional_separator", "comment", "ERROR")


def outline(text: str) -> Outline:
    """Return a file's outline. An incomplete statement at the end of the file is ignored."""
    source = Source(text, PYTHON)
    reader = _Reader(source)
    if source.root.has_error:
        mended = _Reader(Source(_mended(text), PYTHON))
        if not mended.source.root.has_error or len(mended.functions) > len(reader.functions):
            reader = mended
    return Outline(functions=tuple(reader.functions), types=tuple(reader.types), broken=source.root.has_error)


def _mended(text: str) -> str:
    start = line = depth = 0
    decorated = False
    for token in _TOKEN.finditer(text.rstrip()):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth = max(depth - 1, 0)
        elif token["line"] and not depth:
            words = text[line : token.start()].strip()
            line = token.end()
            decorated = words.startswith("@") or (decorated and words[:1] in ("", "#"))
            start = start if decorated else line
    last = text[line:]
    indent = last[: len(last) - len(last.lstrip())].rpartition("\n")[2]
    return f"{text[:start]}{indent}({chr(10) * text[start:].rstrip().count(chr(10))})\n"


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: list[Function] = []
        self.types: list[Type] = []
        self._comments = _comments(source)
        self._walk(source.root, (), "")

    def _walk(self, root: Node, types: tuple[Type, ...], inside: str) -> None:
        stack: list[tuple[Node, tuple[Type, ...], str]] = [(root, types, inside)]
        while stack:
            node, types, inside = stack.pop()
            if node.type == "function_definition" and node.child_by_field_name("name") is not None:
                function = self._function(node, types, inside)
                self.functions.append(function)
                inside = function.name
            elif node.type == "class_definition" and node.child_by_field_name("name") is not None:
                kind = self._type(node)
                self.types.append(kind)
                # Functions of a class inside a function are methods, but still inside that function.
                types = (*types, kind)
            # A one-line statement contains no definition, but a definition may have one line.
            if node.end_point[0] > node.start_point[0] or node.type in _DEFINITIONS:
                stack.extend((child, types, inside) for child in reversed(node.named_children))

    def _lines(self, node: Node) -> Span:
        outer = node.parent if node.parent is not None and node.parent.type == "decorated_definition" else node
        start, column = outer.start_point
        while self._comments.get(start - 1) == column:
            start -= 1
        return start, self._end(node, column)

    def _end(self, node: Node, column: int) -> int:
        # The parser assigns comments after the last statement to the code around the definition.
        end = row = node.end_point[0] + 1
        while row in self._comments:
            if self._comments[row] > column:
                end = row + 1
            elif self._comments[row] >= 0:
                break
            row += 1
        return end

    def _header(self, node: Node) -> str:
        colon = next((child for child in node.children if child.type == ":"), None)
        stop = colon.start_byte if colon is not None else node.end_byte
        return self.source.data[node.start_byte : stop].decode("utf-8", "replace").rstrip()

    def _type(self, node: Node) -> Type:
        name, header = self.source.field(node, "name"), self._header(node)
        return Type(name=name, header=header, kind="class", lines=self._lines(node), head=node.start_point[0])

    def _function(self, node: Node, types: tuple[Type, ...], inside: str) -> Function:
        lines, name = self._lines(node), self.source.field(node, "name")
        parent = node.parent
        decorated = parent.children if parent is not None and parent.type == "decorated_definition" else []
        parameters = node.child_by_field_name("parameters")
        body, block = _body(node, lines[1]), node.child_by_field_name("body")
        return Function(
            name=name,
            types=types,
            inside=inside,
            lines=lines,
            head=node.start_point[0],
            body=body,
            decorators=tuple(self.source.text(child) for child in decorated if child.type == "decorator"),
            modifiers=("async",) if node.children[0].type == "async" else (),
            parameters=self._parameters(parameters),
            parameters_text=self.source.field(node, "parameters").strip()[1:-1],
            returns=self.source.field(node, "return_type"),
            throws="",
            docstring=_docstring(self.source, block),
            constructor=name == "__init__" and bool(types),
            has_body=body[0] < body[1],
            header=self._header(node),
            code=self.source.text(node),
        )

    def _parameters(self, node: Node | None) -> tuple[FunctionParameter, ...]:
        children = node.named_children if node is not None else ()
        return tuple(self._parameter(child) for child in children if child.type not in _SEPARATORS)

    def _parameter(self, node: Node) -> FunctionParameter:
        name: Node = node.child_by_field_name("name") or (
            node.named_children[0] if node.type == "typed_parameter" and node.named_children else node
        )
        value = node.child_by_field_name("value")
        return FunctionParameter(
            name=self.source.text(name).lstrip("* "),
            text=self.source.text(node),
            default_name=self.source.text(value) if value is not None and value.type == "identifier" else "",
            starred=name.type in _SPLATS,
            annotated=node.child_by_field_name("type") is not None,
        )


def _comments(source: Source) -> Mapping[int, int]:
    columns: dict[int, int] = {}
    lines = source.data.split(b"\n")
    for row, line in enumerate(lines):
        bare = line.lstrip()
        if not bare:
            columns[row] = -1
        elif bare.startswith(b"#"):
            columns[row] = len(line) - len(bare)
    # Such a line inside a string is not a comment.
    stack = [source.root]
    while stack:
        node = stack.pop()
        if node.type == "string":
            for row in range(node.start_point[0] + 1, node.end_point[0] + 1):
                columns.pop(row, None)
        elif node.end_point[0] > node.start_point[0]:
            stack.extend(node.children)
    return columns


def _body(node: Node, end: int) -> Span:
    colon = next((child for child in node.children if child.type == ":"), None)
    if colon is None:
        return end, end
    after = [
        child for child in node.children if child.start_byte >= colon.end_byte and child.end_byte > child.start_byte
    ]
    row = colon.start_point[0]
    if not [child for child in after if child.type != "comment"]:
        return end, end
    first = next(child for child in after if child.type != "comment")
    return (row if first.start_point[0] == row else row + 1), end


def _docstring(source: Source, block: Node | None) -> str:
    first = next((child for child in block.named_children if child.type != "comment"), None) if block else None
    if first is None or first.type != "expression_statement" or len(first.named_children) != 1:
        return ""
    node = first.named_children[0]
    parts = node.named_children if node.type == "concatenated_string" else [node]
    values = [_value(source.text(part)) for part in parts if part.type == "string"]
    if len(values) != len(parts):
        return ""
    return cleaned("".join(value for value in values if value is not None)) if None not in values else ""


def _value(literal: str) -> str | None:
    """Return the value of a plain string literal; None for bytes, f-strings and incomplete literals."""
    tree = parse(literal)
    expression = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    value = expression.value if isinstance(expression, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None

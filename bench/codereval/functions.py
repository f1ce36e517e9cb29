"""Every function of a source file with the spans that a sample needs, documented or not. Pure."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.methods import MethodParts, body_end, body_start, declared, shares_line
from ctxbench.bench.languages.java.outline import COMMENTS
from ctxbench.bench.languages.outline import Function, FunctionParameter
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import FunctionNode, all_functions, docstring, documented, parse, statements
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_ANNOTATION = re.compile(r"@\w+(?:\.\w+)*(?:\([^()]*\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFunction:
    """One function of a file. Lines are 0-based, ends exclusive."""

    name: str
    """``Class.function``; overloads of Java have their parameter types added."""
    leaf: str
    owners: tuple[str, ...]
    """The classes around it, outermost first."""
    first: int
    """Line of its first decorator, annotation or comment."""
    start: int
    """Line of its declaration."""
    cursor: Cursor
    end: int
    tail: Cursor | None
    signature: str
    docstring: str
    doc: tuple[Cursor, Cursor] | None
    """Where the docstring stands, marks included."""
    parameters: tuple[str, ...]
    """Names (Python), types and names (Java), written as `parameters_of` does."""
    alone: bool
    """Whether declaration and body stand on lines of their own."""


@functools.lru_cache(maxsize=1024)
def functions(text: str, language: Language) -> tuple[SourceFunction, ...]:
    """Return the functions of a file in the order of their lines, those inside functions left out.

    The last few files are remembered: a repository's tasks ask for the same ones.
    """
    located = _python(text) if language == PYTHON else _java(text)
    return tuple(sorted(located, key=lambda function: function.start))


def parameters_of(signature: str, language: Language) -> tuple[str, ...] | None:
    """Return a signature's parameters: names (Python), types and names without blanks (Java); None if it is none.

    Args:
        signature: with or without its colon or opening brace; annotations are passed over.
        language: of the signature.
    """
    bare = signature.strip().rstrip(":{").rstrip()
    whole = f"{bare}:\n    pass\n" if language == PYTHON else f"class X {{\n{bare} {{ }}\n}}\n"
    parsed = language.outline(whole).functions
    return _parameters(parsed[0].parameters, language) if len(parsed) == 1 else None


def _parameters(parameters: Sequence[FunctionParameter], language: Language) -> tuple[str, ...]:
    if language == PYTHON:
        return tuple(parameter.name for parameter in parameters)
    return tuple(f"{_type(parameter)} {parameter.name}" for parameter in parameters)


def _type(parameter: FunctionParameter) -> str:
    """Return a Java parameter's type without modifiers and blanks; brackets after the name are its too."""
    words = re.sub(r"\bfinal\b", " ", _ANNOTATION.sub(" ", parameter.text))
    before, _, after = words.rpartition(parameter.name)
    return "".join((before + after).split())


# Python


def _python(text: str) -> Iterator[SourceFunction]:
    tree, lines = parse(text), text.split("\n")
    nodes = {node.lineno - 1: node for node in all_functions(tree)} if tree else {}
    for function in PYTHON.outline(text).functions:
        node = nodes.get(function.head)
        if node is not None and not function.inside:
            yield _of_python(function, node, lines)


def _of_python(function: Function, node: FunctionNode, lines: Sequence[str]) -> SourceFunction:
    head = function.header.split("\n")
    own = statements(node)
    at = (node.body[0].end_lineno or node.lineno) if documented(node) else function.head + len(head)
    margin = " " * node.col_offset
    return SourceFunction(
        name=function.qualified,
        leaf=function.name,
        owners=tuple(owner.name for owner in function.types),
        first=function.lines[0],
        start=function.head,
        cursor=Cursor(line=at, column=0),
        end=function.lines[1],
        tail=None,
        signature="\n".join([head[0], *(line.removeprefix(margin) for line in head[1:])]) + ":",
        docstring=docstring(node) or "",
        doc=_span(node.body[0], lines) if documented(node) else None,
        parameters=_parameters(function.parameters, PYTHON),
        alone=not own or own[0].lineno > at,
    )


def _span(node: ast.stmt, lines: Sequence[str]) -> tuple[Cursor, Cursor]:
    def cursor(row: int, byte: int) -> Cursor:
        return Cursor(line=row - 1, column=len(lines[row - 1].encode()[:byte].decode()))

    end = node.end_lineno or node.lineno
    return cursor(node.lineno, node.col_offset), cursor(end, node.end_col_offset or 0)


# Java


def _java(text: str) -> Iterator[SourceFunction]:
    source = Source(text, JAVA)
    nodes = {node.start_point[0]: node for node in _methods(source.root)}
    methods = [method for method in JAVA.outline(text).functions if method.has_body and not method.constructor]
    name_counts = Counter(method.qualified for method in methods)
    for function in methods:
        node = nodes.get(function.head)
        parts = declared(node) if node is not None else None
        if parts is not None and not function.inside:
            yield _of_java(source, function, parts, overloaded=name_counts[function.qualified] > 1)


def _methods(root: Node) -> Iterator[Node]:
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "method_declaration":
            yield node
        # Methods of anonymous classes are no members of the file's own types.
        elif node.type != "object_creation_expression":
            stack.extend(reversed(node.named_children))


def _of_java(source: Source, function: Function, parts: MethodParts, *, overloaded: bool) -> SourceFunction:
    first, body = parts.first, parts.body
    parameter_types = ",".join(_type(parameter) for parameter in function.parameters)
    head = source.data[first.start_byte : body.start_byte].decode("utf-8", "replace")
    return SourceFunction(
        name=function.qualified + (f"({parameter_types})" if overloaded else ""),
        leaf=function.name,
        owners=tuple(owner.name for owner in function.types),
        first=function.lines[0],
        start=first.start_point[0],
        cursor=body_start(source, body),
        end=parts.node.end_point[0] + 1,
        tail=body_end(source, body),
        signature=" ".join(head.split()),
        docstring=function.docstring,
        doc=_javadoc(source, parts.node) if function.docstring else None,
        parameters=_parameters(function.parameters, JAVA),
        alone=not shares_line(source, parts),
    )


def _javadoc(source: Source, node: Node) -> tuple[Cursor, Cursor] | None:
    above = node.prev_sibling
    while above is not None and above.type in COMMENTS:
        if source.text(above).startswith("/**"):
            (row, byte), (last, stop) = above.start_point, above.end_point
            return Cursor(line=row, column=source.column(row, byte)), Cursor(
                line=last, column=source.column(last, stop)
            )
        above = above.prev_sibling
    return None

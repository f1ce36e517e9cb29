"""Every function of a source file with the spans that a sample needs, documented or not. Pure."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from ctxbench.bench.functions.candidates import Declaration
from ctxbench.bench.functions.java import static as java
from ctxbench.bench.functions.python import static as python
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import COMMENTS, declared, methods, name_of, shares_line
from ctxbench.bench.languages.outline import FunctionParameter
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import documented, parse, statements
from ctxbench.bench.languages.python.asts import functions as declared_functions
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_ANNOTATION = re.compile(r"@\w+(?:\.\w+)*(?:\([^()]*\))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFunction:
    """One function of a file. Lines are 0-based, ends exclusive."""

    declaration: Declaration
    first: int
    """Line of its first decorator, annotation or comment."""
    doc: tuple[Cursor, Cursor] | None
    """Where the docstring stands, marks included."""
    parameters: tuple[str, ...]
    """Names (Python), types and names (Java), written as `parameters_of` does."""
    alone: bool
    """Whether declaration and body stand on lines of their own."""

    @property
    def leaf(self) -> str:
        """Its bare name."""
        return self.declaration.name.partition("(")[0].rpartition(".")[2]


@functools.lru_cache(maxsize=1024)
def functions(text: str, language: Language) -> tuple[SourceFunction, ...]:
    """Return the functions of a file in the order of their lines, those inside functions left out.

    The last few files are remembered: a repository's tasks ask for the same ones.
    """
    located = _python(text) if language == PYTHON else _java(text)
    return tuple(sorted(located, key=lambda function: function.declaration.start))


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
    outlined = {function.head: function for function in PYTHON.outline(text).functions}
    for node, owners in declared_functions(tree) if tree else ():
        function = outlined.get(node.lineno - 1)
        if function is None:
            continue
        own, definition = statements(node), python.described(node, owners, lines)
        yield SourceFunction(
            declaration=definition,
            first=function.lines[0],
            doc=_span(node.body[0], lines) if documented(node) else None,
            parameters=_parameters(function.parameters, PYTHON),
            alone=not own or own[0].lineno > definition.cursor.line,
        )


def _span(node: ast.stmt, lines: Sequence[str]) -> tuple[Cursor, Cursor]:
    def cursor(row: int, byte: int) -> Cursor:
        return Cursor(line=row - 1, column=len(lines[row - 1].encode()[:byte].decode()))

    end = node.end_lineno or node.lineno
    return cursor(node.lineno, node.col_offset), cursor(end, node.end_col_offset or 0)


# Java


def _java(text: str) -> Iterator[SourceFunction]:
    source = Source(text, JAVA)
    outlined = {method.head: method for method in JAVA.outline(text).functions}
    met = [(parts, owners) for node, owners in methods(source, source.root) if (parts := declared(node)) is not None]
    names = [".".join([*owners, name_of(source, parts.node)]) for parts, owners in met]
    for (parts, owners), name in zip(met, names, strict=True):
        function = outlined.get(parts.node.start_point[0])
        if function is None:
            continue
        overload = java.parameter_types(source, parts.node) if names.count(name) > 1 else ""
        yield SourceFunction(
            declaration=java.described(source, parts, owners, name + overload, function.docstring),
            first=function.lines[0],
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

"""The documented functions of a Python file: where each begins and ends, and why others are none.

Pure: text in, data out. Functions inside functions are no candidates; methods of nested classes are.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxbench.bench.functions.candidates import Declaration, Definitions
from ctxbench.bench.languages.python.asts import FunctionNode, all_functions, docstring, functions, statements
from ctxbench.bench.types import Cursor

_ACCESSORS = frozenset({"setter", "deleter", "getter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition(Declaration):
    """One function of a file."""

    first: tuple[int, int]
    """Line and byte column of the first statement after the docstring."""
    parameter: str
    """What a method calls its own object or class; empty for functions and static methods."""
    statements: int


def definitions(text: str, tree: ast.Module) -> Definitions[Definition]:
    """Return the documented functions of a file, in the order of their lines."""
    lines = text.split("\n")
    met = list(functions(tree))
    names = Counter(_qualified(node, owners) for node, owners in met if not _is_accessor(node))
    drops: Counter[str] = Counter()
    usable: list[Definition] = []
    documented = 0
    for node, owners in met:
        if not docstring(node):
            continue
        documented += 1
        reason = _reason(node) or ("shares_name" if names[_qualified(node, owners)] > 1 else "")
        if reason:
            drops[reason] += 1
        else:
            usable.append(described(node, owners, lines))
    bodies = Counter(_code(node) for node in all_functions(tree) if statements(node))
    return Definitions(len(met), documented, tuple(usable), drops, bodies)


def definition_at(text: str, tree: ast.Module, line: int) -> Definition | None:
    """Return the function that is declared on a line, documented or not; None if none is, or it has no body to ask for.

    Args:
        text: the file.
        tree: its syntax tree.
        line: from 0.
    """
    for node, owners in functions(tree):
        if node.lineno - 1 == line and statements(node):
            return described(node, owners, text.split("\n"))
    return None


def _qualified(node: FunctionNode, owners: Sequence[str]) -> str:
    return ".".join([*owners, node.name])


def _decorators(node: FunctionNode) -> Iterator[str]:
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute):
            yield target.attr
        elif isinstance(target, ast.Name):
            yield target.id


def _is_accessor(node: FunctionNode) -> bool:
    """Say whether it is a property's setter or deleter, which has its getter's name."""
    return any(
        isinstance(decorator, ast.Attribute) and decorator.attr in _ACCESSORS for decorator in node.decorator_list
    )


def _reason(node: FunctionNode) -> str:
    marks = set(_decorators(node))
    if "overload" in marks:
        return "overload"
    if any(mark.startswith("abstract") for mark in marks):
        return "abstract"
    if _is_accessor(node):
        return "accessor"
    own = statements(node)
    if not own or all(map(_says_nothing, own)):
        return "empty_body"
    if own[0].lineno <= (node.body[0].end_lineno or 0):
        return "shares_line"
    return ""


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Raise) or statement.exc is None:
        return False
    raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _code(node: FunctionNode) -> str:
    return "\n".join(ast.dump(statement) for statement in statements(node))


def described(node: FunctionNode, owners: tuple[str, ...], lines: Sequence[str]) -> Definition:
    """Return what there is to a function, documented or not, in the lines of its file."""
    own = statements(node)
    start, end = node.lineno - 1, _end(lines, node)
    signature = _signature("\n".join(lines[start : node.body[0].end_lineno]), lines[start])
    # Without a docstring the body begins behind the declaration.
    body = (node.body[0].end_lineno or node.lineno) if own != node.body else start + signature.count("\n") + 1
    first = own[0] if own else None
    if isinstance(first, FunctionNode | ast.ClassDef) and first.decorator_list:
        first_at = first.decorator_list[0].lineno - 1, first.decorator_list[0].col_offset
    else:
        first_at = (first.lineno - 1, first.col_offset) if first is not None else (end, 0)
    arguments = [*node.args.posonlyargs, *node.args.args]
    bound = bool(owners) and "staticmethod" not in set(_decorators(node)) and bool(arguments)
    return Definition(
        name=_qualified(node, owners),
        signature=signature,
        docstring=docstring(node) or "",
        start=start,
        cursor=Cursor(line=body, column=0),
        end=end,
        first=first_at,
        parameter=arguments[0].arg if bound else "",
        owners=owners,
        code=_code(node),
        statements=sum(isinstance(inner, ast.stmt) for statement in own for inner in ast.walk(statement)),
    )


def _end(lines: Sequence[str], node: FunctionNode) -> int:
    """Return the line after the function, comments that are indented into it included."""
    end = node.end_lineno or node.lineno
    last = end
    while end < len(lines):
        text = lines[end].strip()
        if text and not (text.startswith("#") and _indentation(lines[end]) > _indentation(lines[node.lineno - 1])):
            break
        end += 1
        last = end if text else last
    return last


def _indentation(line: str) -> int:
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _signature(text: str, header: str) -> str:
    """Return ``def name(…) -> …:`` of a text that starts with it."""
    margin = header[: len(header) - len(header.lstrip())]
    lines = [line.removeprefix(margin) for line in text.split("\n")]
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string == ":" and not depth:
            row, column = token.end
            return "\n".join([*lines[: row - 1], lines[row - 1][:column]])
    return lines[0]

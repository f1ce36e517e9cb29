"""Parses Python with the interpreter's own parser (thread-safe), and finds functions in syntax trees."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from ctxbench.bench.concurrency import TREE_LOCK

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def parse(text: str | bytes) -> ast.Module | None:
    """Return a text's syntax tree; None if the running Python cannot parse the text."""
    with TREE_LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these warnings, for example about invalid escapes, concern only the text
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def functions(node: ast.AST, owners: tuple[str, ...] = ()) -> Iterator[tuple[FunctionNode, tuple[str, ...]]]:
    """Yield functions and methods, each with its classes' names, outermost first. Nested functions are left out."""
    for field in _BLOCKS:
        for child in getattr(node, field, ()):
            if isinstance(child, FunctionNode):
                yield child, owners
            else:
                yield from functions(child, (*owners, child.name) if isinstance(child, ast.ClassDef) else owners)


def all_functions(tree: ast.AST) -> Iterator[FunctionNode]:
    """Yield all functions, including nested functions, in no particular order."""
    return (node for node in ast.walk(tree) if isinstance(node, FunctionNode))


def called(call: ast.Call) -> str:
    """Return the last part of the called name (``b`` for ``a.b()``); "" if the called expression has no name."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def only_function(text: str) -> FunctionNode | None:
    """Return the function that is a text's only code, or None. In an indented text, line numbers start at 2."""
    tree = parse(f"if True:\n{text}" if text[:1] in (" ", "\t") else text)
    body = tree.body if tree is not None else []
    if len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], FunctionNode) else None


def documented(function: FunctionNode) -> bool:
    """Return whether a function begins with a docstring, even an empty one."""
    return ast.get_docstring(function, clean=False) is not None


def docstring(function: FunctionNode) -> str | None:
    """Return a function's cleaned docstring, or None."""
    text = ast.get_docstring(function, clean=False)
    return text if text is None else cleaned(text)


def cleaned(text: str) -> str:
    """Clean up a docstring like `inspect.cleandoc` in Python 3.11. Later versions treat some blanks differently."""
    first, *others = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in others if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in others)]).strip("\n")


def statements(function: FunctionNode) -> list[ast.stmt]:
    """Return a function's body without its docstring."""
    return function.body[1:] if documented(function) else function.body

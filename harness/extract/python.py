"""Extract one Python function from a model's answer."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator

from ctxbench.bench import asts
from ctxbench.harness.extract.cuts import cuts, leaves
from ctxbench.harness.extract.given import Given
from ctxbench.harness.extract.unwrap import fenced

Function = ast.FunctionDef | ast.AsyncFunctionDef
_ANY = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(", re.M)
"""The declaration of any function."""


def function(given: Given, answer: str, wrapped: bool) -> tuple[str, bool]:
    """Return the function in the indentation of the file, and whether it parses.

    Args:
        given: the head of the function.
        answer: what the model wrote.
        wrapped: whether it stood between tags, so that it is code and nothing else.
    """
    if not wrapped:
        readers = (_continuation, _moved) if _is_deeper(given, answer) else (_moved, _continuation)
        for reader in readers:
            continued = reader(given, answer)
            if continued is not None:
                return continued, True
    blocks = [answer] if wrapped else fenced(answer)
    # An example of its use often comes after the function.
    named = [block for block in blocks if _declares(given.name).search(block)]
    code = (named or blocks or [answer])[-1]
    found = _whole(given.name, code, first=bool(blocks))
    if found is not None:
        return found, True
    body = _body(given, code)
    if body is not None:
        return body, True
    return _unparsed(given, code, first=bool(blocks)), False


def body(text: str) -> str | None:
    """Return the statements of a function, its docstring left out; None if the text is not one function."""
    made = only_function(text)
    if made is None:
        return None
    documented = ast.get_docstring(made, clean=False) is not None
    statements = made.body[1:] if documented else made.body
    if not statements:
        return ""
    first = statements[0]
    # Where the text is indented, a line stands before it in what was parsed.
    shift = 1 if text[:1] in (" ", "\t") else 0
    decorators = [one.lineno for one in getattr(first, "decorator_list", [])]
    lines = text.split("\n")[min([first.lineno, *decorators]) - 1 - shift :]
    before = lines[0].encode()[: first.col_offset].decode()
    return "\n".join([lines[0][len(before) :] if before.strip() else lines[0], *lines[1:]])


def parse(text: str) -> ast.Module | None:
    """Return the syntax tree of a text; None if it is no Python."""
    return asts.parse(text)


def only_function(text: str) -> Function | None:
    """Return the function that a text is, whatever its indentation; None if it is not one function."""
    tree = parse(f"if True:\n{text}" if text[:1] in (" ", "\t") else text)
    body = tree.body if tree is not None else []
    if len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Function) else None


def _is_deeper(given: Given, answer: str) -> bool:
    """Return whether an answer begins deeper than the function stands, so that it can be a body as it is."""
    indent = _indentation(answer)
    return indent.startswith(given.indent) and indent != given.indent


def _indentation(answer: str) -> str:
    line = answer.strip("\n").partition("\n")[0]
    return line[: len(line) - len(line.lstrip())]


def _moved(given: Given, answer: str) -> str | None:
    """Return the head and the answer as its body, where that is a body at another indentation; None if it is not.

    At the margin it must return, or it may as well be what follows the function.
    """
    lines = answer.strip("\n").split("\n")
    indent = _indentation(answer)
    if not indent:
        tree = parse(answer)
        return _body(given, answer) if tree is not None and _returns(tree) else None
    end = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(indent)), len(lines))
    if end < len(lines) and not leaves(lines[end], given.indent):
        return None
    return _body(given, "\n".join(lines[:end]))


def _returns(tree: ast.Module) -> bool:
    """Return whether a text returns outside of the functions in it."""
    nodes: list[ast.AST] = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def _continuation(given: Given, answer: str) -> str | None:
    """Return the head and what of the answer goes on with it; None if that is no body."""
    stripped = answer.lstrip(" \t")
    starts = [given.head + answer, given.head + stripped, f"{given.lines}{given.body_indent}{stripped}"]
    for text in dict.fromkeys(starts):
        for cut in cuts(given, text):
            made = only_function(cut)
            if made is not None:
                if _says_something(given, made):
                    return cut
                break
    return None


def _says_something(given: Given, made: Function) -> bool:
    """Return whether there is a body: not the docstring alone, and no lone word of an answer in prose."""
    head = only_function(f"{given.lines}{given.body_indent}pass")
    documented = head is not None and len(head.body) > 1
    body = made.body[1:] if documented else made.body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return bool(body)
    return not isinstance(body[0].value, ast.Name | ast.Tuple)


def _whole(name: str, code: str, *, first: bool) -> str | None:
    """Return the last function of that name in the code; with `first`, else the first function there is."""
    parsed = False
    dedented = textwrap.dedent(code).strip("\n")
    # Tabs are made spaces only where their mixture is no Python.
    for text in dict.fromkeys((code, dedented, code.expandtabs(4), dedented.expandtabs(4))):
        tree = parse(text)
        if tree is None:
            continue
        parsed = True
        functions = list(_functions(tree.body))
        named = [one for one in functions if one.name in _spellings(name)]
        exact = [one for one in named if one.name == name]
        # Code that returns is a body, and its functions are helpers of it.
        other = first and not _returns(tree)
        chosen = exact[-1:] or named[-1:] or (functions[:1] if other else [])
        if chosen:
            return "\n".join(text.split("\n")[chosen[0].lineno - 1 : chosen[0].end_lineno])
    return _by_lines(_declares(name), code) or (_by_lines(_ANY, code) if first and not parsed else None)


def _functions(body: list[ast.stmt]) -> Iterator[Function]:
    """Give the functions of a module and its classes; those inside functions are not answers."""
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _by_lines(declares: re.Pattern[str], code: str) -> str | None:
    """Return the last function so declared that parses, in a text that as a whole does not."""
    for start in reversed([found.start() for found in declares.finditer(code)]):
        text = code[start:]
        head = Given(name="", signature="", head=text.partition("\n")[0])
        for cut in cuts(head, text):
            if only_function(cut) is not None:
                return cut
    return None


def _spellings(name: str) -> tuple[str, ...]:
    """Return the names that count as the function's: one underscore before it more or less is forgiven."""
    return (name, f"_{name}", name[1:]) if name.startswith("_") else (name, f"_{name}")


def _declares(name: str) -> re.Pattern[str]:
    names = "|".join(re.escape(one) for one in _spellings(name))
    return re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+(?:{names})[ \t]*\(", re.M)


def _body(given: Given, code: str) -> str | None:
    """Return the head and the code as its body, indented as needed."""
    indented = textwrap.indent(textwrap.dedent(code).strip("\n"), given.body_indent)
    text = f"{given.lines}{indented}".rstrip()
    made = only_function(text)
    return text if made is not None and _says_something(given, made) else None


def _unparsed(given: Given, code: str, *, first: bool) -> str:
    """Return the function by its lines alone; with `first`, any function before none."""
    starts = list(_declares(given.name).finditer(code)) or (list(_ANY.finditer(code))[:1] if first else [])
    if starts:
        text = code[starts[-1].start() :]
        given = Given(name=given.name, signature="", head=text.partition("\n")[0])
    else:
        text = given.head + code
    return next(cuts(given, text))

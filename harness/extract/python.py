"""One Python function out of a model's answer."""

from __future__ import annotations

import ast
import re
import textwrap
import threading
import warnings
from collections.abc import Iterator

from harness.extract.given import Given
from harness.extract.unwrap import fenced

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MOST_CUTS = 50
"""Lines at which an answer is tried to be cut, the first ones."""
_CLOSERS = (")", "]", "}")
# Filters of warnings belong to the whole process.
_PARSING = threading.Lock()


def function(given: Given, answer: str, wrapped: bool) -> tuple[str, bool]:
    """Return the function in the indentation of the file, and whether it parses.

    Args:
        given: the head of the function.
        answer: what the model wrote.
        wrapped: whether it stood between tags, so that it is code and nothing else.
    """
    if not wrapped:
        continued = _continuation(given, answer)
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
    return _unparsed(given, code), False


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
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def only_function(text: str) -> Function | None:
    """Return the function that a text is, whatever its indentation; None if it is not one function."""
    tree = parse(f"if True:\n{text}" if text[:1] in (" ", "\t") else text)
    body = tree.body if tree is not None else []
    if len(body) == 1 and isinstance(body[0], ast.If):
        body = body[0].body
    return body[0] if len(body) == 1 and isinstance(body[0], Function) else None


def _continuation(given: Given, answer: str) -> str | None:
    """Return the head and what of the answer goes on with it; None if that is no body."""
    stripped = answer.lstrip(" \t")
    starts = [given.head + answer, given.head + stripped, f"{given.lines}{given.body_indent}{stripped}"]
    for text in dict.fromkeys(starts):
        for cut in _cuts(given, text):
            made = only_function(cut)
            if made is not None:
                if _says_something(given, made):
                    return cut
                break
    return None


def _cuts(given: Given, text: str) -> Iterator[str]:
    """Give the text up to each line that may be the first after the function, the nearest first, then all of it.

    A line that stands no deeper than the function ends it, unless it is inside a bracket or a string: what is
    cut there does not parse.
    """
    lines = text.split("\n")
    head = given.head.count("\n")
    given_up = 0
    for at in range(head + 1, len(lines)):
        if _leaves(lines[at], given.indent):
            yield _tail_off(lines[:at], given.indent)
            given_up += 1
            if given_up == _MOST_CUTS:
                return
    yield _tail_off(lines, given.indent)


def _leaves(line: str, indent: str) -> bool:
    """Return whether a line stands no deeper than the function; comments and blank lines tell nothing."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#") and len(line) - len(line.lstrip()) <= len(indent)


def _tail_off(lines: list[str], indent: str) -> str:
    """Join lines without the blank lines, and comments of what comes next, at their end."""
    end = len(lines)
    while end > 1 and (not (line := lines[end - 1]).strip() or _is_outer_comment(line, indent)):
        end -= 1
    return "\n".join(lines[:end]).rstrip()


def _is_outer_comment(line: str, indent: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("#") and len(line) - len(stripped) <= len(indent)


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
    for text in dict.fromkeys((code, textwrap.dedent(code).strip("\n"))):
        tree = parse(text)
        if tree is None:
            continue
        functions = list(_functions(tree.body))
        named = [one for one in functions if one.name.strip("_") == name.strip("_")]
        exact = [one for one in named if one.name == name]
        # Code that returns is a body, and its functions are helpers of it.
        other = first and not any(isinstance(node, ast.Return) for node in tree.body)
        chosen = exact[-1:] or named[-1:] or (functions[:1] if other else [])
        if chosen:
            return "\n".join(text.split("\n")[chosen[0].lineno - 1 : chosen[0].end_lineno])
    return _by_lines(name, code)


def _functions(body: list[ast.stmt]) -> Iterator[Function]:
    """Give the functions of a module and its classes; those inside functions are not answers."""
    for node in body:
        if isinstance(node, Function):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _by_lines(name: str, code: str) -> str | None:
    """Return the last function of that name that parses, in a text that as a whole does not."""
    for start in reversed([found.start() for found in _declares(name).finditer(code)]):
        text = code[start:]
        head = Given(name=name, signature="", head=text.partition("\n")[0])
        for cut in _cuts(head, text):
            if only_function(cut) is not None:
                return cut
    return None


def _declares(name: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+_*{re.escape(name.strip('_'))}_*[ \t]*\(", re.M)


def _body(given: Given, code: str) -> str | None:
    """Return the head and the code as its body, indented as needed."""
    indented = textwrap.indent(textwrap.dedent(code).strip("\n"), given.body_indent)
    text = f"{given.lines}{indented}".rstrip()
    made = only_function(text)
    return text if made is not None and _says_something(given, made) else None


def _unparsed(given: Given, code: str) -> str:
    """Return the function by its lines alone."""
    starts = list(_declares(given.name).finditer(code))
    if starts:
        text = code[starts[-1].start() :]
        given = Given(name=given.name, signature="", head=text.partition("\n")[0])
    else:
        text = given.head + code
    return next(_cuts(given, text))

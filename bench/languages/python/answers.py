"""Extracts a Python function from a model's answer."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from itertools import islice

from ctxbench.bench.languages.answers import FunctionHead, fenced
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.languages.python.asts import FunctionNode, only_function, parse, statements

_ANY = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.M)
_MOST = 50
_ACTS = ast.Call | ast.Await | ast.Yield | ast.YieldFrom


def function(head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
    """Return the whole function, and whether its syntax is valid (see `AnswerReader.function`)."""
    if not wrapped:
        readers = (_continuation, _moved) if _is_deeper(head, answer) else (_moved, _continuation)
        for reader in readers:
            continued = reader(head, answer)
            if continued is not None and not _is_whole(head, answer, continued):
                return continued, True
    blocks = [answer] if wrapped else fenced(answer)
    # Code that shows how to call the function often follows in its own fence.
    named = [block for block in blocks if _declares(head.name).search(block)]
    code = (named or blocks or [answer])[-1]
    # The fence may be in the docstring, with no fence around the function.
    whole = _by_lines(_declares(head.name), answer, head.name) if blocks and not named else None
    whole = whole or _whole(head.name, code, first=bool(blocks))
    if whole is not None:
        return whole, True
    body = _body(head, code)
    if body is not None:
        return body, True
    return _unparsed(head, code, first=bool(blocks)), False


def body(text: str) -> str | None:
    """Return a function's statements without its docstring; None if the text is not exactly one function."""
    parsed = only_function(text)
    if parsed is None:
        return None
    own = statements(parsed)
    if not own:
        return ""
    first = own[0]
    # An indented text was parsed with one line before it.
    shift = 1 if text[:1] in (" ", "\t") else 0
    decorators = [decorator.lineno for decorator in getattr(first, "decorator_list", [])]
    lines = text.split("\n")[min([first.lineno, *decorators]) - 1 - shift :]
    before = lines[0].encode()[: first.col_offset].decode()
    return "\n".join([lines[0][len(before) :] if before.strip() else lines[0], *lines[1:]])


def _is_deeper(head: FunctionHead, answer: str) -> bool:
    indent = _indentation(answer)
    return indent.startswith(head.indent) and indent != head.indent


def _indentation(answer: str) -> str:
    line = answer.strip("\n").partition("\n")[0]
    return line[: len(line) - len(line.lstrip())]


def _moved(head: FunctionHead, answer: str) -> str | None:
    """Return the head with the answer as its body, reindented; None if the answer is not a body.

    An answer without indentation must contain a return. Otherwise it could be code that follows the function.
    """
    lines = answer.strip("\n").split("\n")
    indent = _indentation(answer)
    if not indent:
        tree = parse(answer)
        return _body(head, answer) if tree is not None and _returns(tree) else None
    end = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(indent)), len(lines))
    if end < len(lines) and not leaves(lines[end], head.indent):
        return None
    return _body(head, "\n".join(lines[:end]))


def _returns(tree: ast.Module) -> bool:
    nodes: list[ast.AST] = list(tree.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return):
            return True
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def _is_whole(head: FunctionHead, answer: str, continued: str) -> bool:
    """Return whether an answer that parses as a body is really the whole function, possibly after other code.

    Such a body would have no effect: it contains only imports, constants and definitions.
    """
    parsed = only_function(continued)
    if parsed is None or not all(_is_idle(statement) for statement in statements(parsed)):
        return False
    inside = any(function.name in _spellings(head.name) for function in _functions(parsed.body))
    return inside or (not _is_deeper(head, answer) and _declares(head.name).search(answer) is not None)


def _is_idle(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name) for target in targets)
        case ast.AnnAssign(target=target):
            return isinstance(target, ast.Name)
        case ast.Expr(value=value):
            return not any(isinstance(node, _ACTS) for node in ast.walk(value))
    return False


def _continuation(head: FunctionHead, answer: str) -> str | None:
    stripped = answer.lstrip(" \t")
    starts = [head.head + answer, head.head + stripped, f"{head.lines}{head.body_indent}{stripped}"]
    for text in dict.fromkeys(starts):
        for cut in cuts(head, text):
            parsed = only_function(cut)
            if parsed is not None:
                if _has_body(head, parsed):
                    return cut
                break
    return None


def _has_body(head: FunctionHead, parsed: FunctionNode) -> bool:
    stub = only_function(f"{head.lines}{head.body_indent}pass")
    has_docstring = stub is not None and len(stub.body) > 1
    body = parsed.body[1:] if has_docstring else parsed.body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return bool(body)
    return not isinstance(body[0].value, ast.Name | ast.Tuple)


def _whole(name: str, code: str, *, first: bool) -> str | None:
    parsed = False
    moved = "\n".join(PYTHON.shift(code.split("\n"), ""))
    dedented = textwrap.dedent(code)
    # Tabs become spaces only if mixed indentation is invalid Python.
    for text in dict.fromkeys((code, moved, dedented, code.expandtabs(4), dedented.expandtabs(4))):
        tree = parse(text)
        if tree is None:
            continue
        parsed = True
        functions = list(_functions(tree.body))
        named = [function for function in functions if function.name in _spellings(name)]
        exact = [function for function in named if function.name == name]
        # Code that returns is a body; its functions are helpers.
        other = first and not _returns(tree)
        last = exact[-1:] or named[-1:] or (functions[:1] if other else [])
        if last:
            return "\n".join(text.split("\n")[last[0].lineno - 1 : last[0].end_lineno])
    return _by_lines(_declares(name), code, name) or (_by_lines(_ANY, code, name) if first and not parsed else None)


def _functions(body: list[ast.stmt]) -> Iterator[FunctionNode]:
    for node in body:
        if isinstance(node, FunctionNode):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body)


def _by_lines(declares: re.Pattern[str], code: str, name: str) -> str | None:
    functions = [(spelling, text) for spelling, text, parses in _outermost(declares, code) if parses]
    exact = [text for spelling, text in functions if spelling == name]
    every = exact or [text for _, text in functions]
    return every[-1] if every else None


def _outermost(declares: re.Pattern[str], code: str) -> Iterator[tuple[str, str, bool]]:
    end = 0
    for declaration in declares.finditer(code):
        if declaration.start() < end:
            continue
        text = code[declaration.start() :]
        head = FunctionHead(name="", signature="", head=text.partition("\n")[0])
        whole = next((cut for cut in cuts(head, text) if only_function(cut) is not None), None)
        lines = whole or next(cuts(head, text))
        end = declaration.start() + len(lines)
        yield declaration[1], lines, whole is not None


def _spellings(name: str) -> tuple[str, ...]:
    return (name, f"_{name}", name[1:]) if name.startswith("_") else (name, f"_{name}")


def _declares(name: str) -> re.Pattern[str]:
    names = "|".join(re.escape(spelling) for spelling in _spellings(name))
    return re.compile(rf"^[ \t]*(?:async[ \t]+)?def[ \t]+({names})[ \t]*\(", re.M)


def _body(head: FunctionHead, code: str) -> str | None:
    indented = textwrap.indent(textwrap.dedent(code).strip("\n"), head.body_indent)
    parsed = only_function(f"{head.lines}{indented}".rstrip())
    if parsed is None or not _has_body(head, parsed):
        return None
    moved = "\n".join(PYTHON.shift(code.strip("\n").split("\n"), head.body_indent))
    return f"{head.lines}{moved}".rstrip()


def _unparsed(head: FunctionHead, code: str, *, first: bool) -> str:
    functions = list(_outermost(_declares(head.name), code)) or list(islice(_outermost(_ANY, code), int(first)))
    return functions[-1][1] if functions else next(cuts(head, head.head + code))


def cuts(function_head: FunctionHead, text: str) -> Iterator[str]:
    """Yield the text up to each line that may follow the function, then the whole text; at most 50 texts."""
    lines = text.split("\n")
    head = function_head.head.count("\n")
    tried = 0
    for at in range(head + 1, len(lines)):
        if leaves(lines[at], function_head.indent):
            yield _tail_off(lines[:at], function_head.indent)
            tried += 1
            if tried == _MOST:
                return
    yield _tail_off(lines, function_head.indent)


def leaves(line: str, indent: str) -> bool:
    """Return whether a line contains code that is not indented deeper than the function."""
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#") and len(line) - len(line.lstrip()) <= len(indent)


def _tail_off(lines: list[str], indent: str) -> str:
    end = len(lines)
    while end > 1 and (not (line := lines[end - 1]).strip() or _is_outer_comment(line, indent)):
        end -= 1
    return "\n".join(lines[:end]).rstrip()


def _is_outer_comment(line: str, indent: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith("#") and len(line) - len(stripped) <= len(indent)

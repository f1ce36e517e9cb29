"""Extracts Java methods from completions, inserts them into files, and writes empty bodies."""

from __future__ import annotations

import os.path

from tree_sitter import Node

from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging import indentation, replace_lines, unindented
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.java.outline import COMMENTS, HEAD, TAIL, MethodParts, declared, in_class
from ctxbench.bench.languages.syntax import Source, named_descendants, rows

_ZEROS = {"boolean": "false", **dict.fromkeys(("byte", "short", "int", "long", "char", "float", "double"), "0")}
_BLANKS = " \t\f\r"
"""White space that Java strips from text blocks. Python's `strip` would remove more characters."""
_CURE = "return the whole method, from its first modifier to its closing brace"


def leaf(name: str) -> str:
    """Return a method's bare name: ``method`` for ``Outer.method(int)``."""
    return name.partition("(")[0].rpartition(".")[2]


def splice(source: bytes, encoding: str, span: tuple[int, int], name: str, text: str) -> bytes:
    r"""Replace a method's lines in a Java file. The text gets the file's indentation and line ends.

    The file keeps its Javadoc and annotations; those of the text are dropped.

    Args:
        span: 0-based lines ``[start, end)``. ``\r\n`` and ``\r`` also end lines.

    Raises:
        InputFault: if the text is not a method called `name`, or the file lacks the lines or cannot encode the text.
    """
    return replace_lines(source, encoding, span, lambda to: shift(method_text(text, leaf(name)).split("\n"), to), _CURE)


def method_text(text: str, name: str) -> str:
    """Remove Javadoc, annotations and outer blank lines from a completion.

    Raises:
        InputFault: if the text declares no method of this name, or its braces do not fit into one class body.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    source = in_class(text)
    types = [child for child in source.root.named_children if child.type not in COMMENTS]
    body = types[0].child_by_field_name("body") if types else None
    if len(types) != 1 or body is None or body.end_byte != len(source.data) - 1:
        raise InputFault("the text is not exactly one method", cure=_CURE)
    declarations = [node for node in body.named_children if node.type == "method_declaration"]
    methods = [
        method for node in declarations if source.field(node, "name") == name and (method := declared(node)) is not None
    ]
    if not methods:
        raise InputFault(f"the text declares no method {name!r}", cure=_CURE)
    first = methods[0]
    begin = _leading(first.node)
    text_of_method = source.data[len(HEAD) : begin] + source.data[first.first.start_byte : -len(TAIL)]
    return (
        text_of_method.decode("utf-8", "replace").strip("\n").rstrip() if begin > len(HEAD) else _flush(source, first)
    )


def _flush(source: Source, method: MethodParts) -> str:
    at = method.first.start_byte
    line = source.data.rfind(b"\n", 0, at) + 1
    blank = source.data[line:at] if not source.data[line:at].strip() else b""
    return (blank + source.data[at : -len(TAIL)]).decode("utf-8", "replace").rstrip()


def _leading(node: Node) -> int:
    begin, before = node.start_byte, node.prev_named_sibling
    while before is not None and before.type in COMMENTS:
        begin, before = before.start_byte, before.prev_named_sibling
    return begin


def shift(lines: list[str], to: str) -> list[str]:
    """Move lines so that the first nonblank line has the indentation `to`. Trailing spaces are removed.

    Text blocks keep their value. Lines that are indented less than the first line lose their own indentation.
    """
    return _moved(lines, indentation(next((line for line in lines if line.strip(_BLANKS)), "")), to)


def shift_code(lines: list[str], to: str) -> list[str]:
    """Move lines like `shift`, but so that the least indented line of code (not comments) gets the indentation `to`."""
    source = Source("\n".join(lines), JAVA)
    others = {row for string in source.find("string_literal") for row in rows(string)[1:]}
    for comment in (node for kind in COMMENTS for node in source.find(kind)):
        row, byte = comment.start_point
        code_before = lines[row].encode()[:byte].strip()
        others.update(rows(comment)[1 if code_before else 0 :])
    indents = [indentation(line) for row, line in enumerate(lines) if line.strip(_BLANKS) and row not in others]
    # Common prefix of characters, because tabs and spaces differ.
    return _moved(lines, os.path.commonprefix(indents), to)  # noqa: RUF071 - these strings are not paths


def _moved(lines: list[str], away: str, to: str) -> list[str]:
    lines = [line.rstrip(_BLANKS) for line in lines]
    if away == to:
        return lines
    fixed = _shallow_blocks(lines, away)
    return [line if number in fixed or not line else to + unindented(line, away) for number, line in enumerate(lines)]


def _shallow_blocks(lines: list[str], away: str) -> set[int]:
    deeper = tuple(away + blank for blank in " \t")
    numbers: set[int] = set()
    for string in Source("\n".join(lines), JAVA).find("string_literal"):
        inner = rows(string)[1:]
        if not all(lines[row].startswith(deeper) for row in inner if lines[row]):
            numbers.update(inner)
    return numbers


def blank(head: str) -> str:
    """Return a method that does nothing and compiles. `head` is the method's text through its opening brace.

    Raises:
        InputFault: if `head` is not a method's head.
    """
    source = in_class(f"{head}}}")
    for node in named_descendants(source.root):
        kind = node.child_by_field_name("type") if node.type == "method_declaration" else None
        if kind is not None:
            returned = source.text(kind) + ("[]" if node.child_by_field_name("dimensions") is not None else "")
            value = "" if returned == "void" else f" return {zero(returned)};"
            return f"{head.rstrip()}{value} }}\n"
    raise InputFault("the sample's prefix does not end in the head of a method", cure="build the sample set again")


def zero(kind: str) -> str:
    """Return a type's default value as Java code."""
    return _ZEROS.get(kind, "null")

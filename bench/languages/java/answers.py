"""Extracts a Java method from a model's answer, by braces outside strings and comments."""

from __future__ import annotations

import re

from ctxbench.bench.languages.answers import FunctionHead, before_fences, fenced
from ctxbench.bench.languages.java import blank, hide

_BETWEEN = re.compile(r"[\s\w.,<>?&\[\]@]*\{")
_START = re.compile(r"[;{}]")
_CALLS = re.compile(r"(?:\.|\bnew|\breturn|\bthrow|\belse|\bcase|=|\(|,)\s*\Z")
_BRACE = re.compile(r"\s*\{")
_NEW = re.compile(r"\bnew\s+[\w@][\w\s.<>,?@]{0,200}\(")
_MODIFIERS = re.compile(r"\s*(?:public|private|protected|static|final|synchronized|<)[^\n(){};=]*\n\Z")
_ARGUMENTS = re.compile(r"@(?!interface\b)[\w.]+\s*\(")
_ANNOTATION = re.compile(r"\s*@(?!interface\b)[\w.]+\s*")


def function(head: FunctionHead, answer: str, wrapped: bool) -> tuple[str, bool]:
    """Return the whole method, and whether it looks complete (see `AnswerReader.function`)."""
    if wrapped:
        blocks, before = [answer], ""
    else:
        # A fence in a comment or string does not count.
        blocks, before = fenced(answer), answer[: len(before_fences(hide(answer)))]
    if _continues(head, before):
        return _closed(head, before)
    for code in [*reversed(blocks), answer]:
        method = _method(head, code)
        if method is not None:
            return method, True
    # Statements before a fence are a body without its last brace; prose does not end like statements.
    is_body = not blocks or hide(before).rstrip().endswith((";", "}"))
    return _closed(head, before if is_body else blocks[-1].strip("\n"))


def body(text: str) -> str | None:
    """Return the text between a method's braces; None if the braces do not match, or code follows them."""
    hidden = _braces(text)
    end, start = _end(hidden, 0), hidden.find("{")
    return None if end is None or hidden[end:].strip() else text[start + 1 : end - 1]


def _braces(code: str) -> str:
    """Blank strings, comments and annotation arguments, because their braces do not enclose blocks."""
    hidden, at = hide(code), 0
    while opening := _ARGUMENTS.search(hidden, at):
        close = _parenthesis(hidden, opening.end() - 1) or len(hidden)
        at = close
        hidden = hidden[: opening.end()] + blank(hidden[opening.end() : close - 1]) + hidden[close - 1 :]
    return hidden


def _without_anonymous(hidden: str) -> str:
    at = 0
    while (opening := _NEW.search(hidden, at)) and (close := _parenthesis(hidden, opening.end() - 1)):
        at = opening.end()
        if _BRACE.match(hidden, close):
            end = _end(hidden, close) or len(hidden)
            hidden = hidden[:close] + blank(hidden[close:end]) + hidden[end:]
    return hidden


def _continues(head: FunctionHead, code: str) -> bool:
    text = _joined(head, code)
    end = _end(_braces(text), 0)
    # Java has no backtick, but prose may quote a brace.
    rest = text[len(text) - len(code) : end]
    return end is not None and "`" not in hide(rest) and _method(head, rest) is None


def _joined(head: FunctionHead, code: str) -> str:
    if "{" not in _braces(head.head) and not code.lstrip().startswith("{"):
        return f"{head.head.rstrip()} {{\n{code}"
    return head.head + (code if head.head[-1:].isspace() or code[:1].isspace() else f" {code}")


def _closed(head: FunctionHead, code: str) -> tuple[str, bool]:
    text = _joined(head, code)
    hidden = _braces(text)
    end = _end(hidden, 0)
    if end is not None:
        return text[:end], True
    # Models that see the code after the body often omit its last brace. Prose does not end like statements.
    missing = hidden.count("{") - hidden.count("}")
    is_body = hidden.rstrip().endswith((";", "}"))
    return (f"{text.rstrip()}\n{head.indent}}}", is_body) if missing == 1 else (text, False)


def _end(hidden: str, start: int) -> int | None:
    depth = 0
    for brace in re.compile(r"[{}]").finditer(hidden, start):
        depth += 1 if brace[0] == "{" else -1
        if depth <= 0:
            return brace.end()
    return None


def _method(head: FunctionHead, code: str) -> str | None:
    hidden = _without_anonymous(_braces(code))
    methods: list[tuple[int, str]] = []
    for name in re.finditer(rf"\b{re.escape(head.name)}\s*\(", hidden):
        close = _parenthesis(hidden, name.end() - 1)
        start = _declaration(hidden, name.start())
        if close is None or _CALLS.search(hidden[start : name.start()]) or not hidden[start : name.start()].strip():
            continue
        body = _BETWEEN.match(hidden, close)
        end = _end(hidden, body.end() - 1) if body else None
        if end is not None:
            methods.append((_parameters(hidden[name.end() : close - 1]), _dressed(code, start, end)))
    count_in_head = _head_parameters(head)
    fitting = [text for count, text in methods if count == count_in_head]
    every = fitting or [text for _, text in methods]
    return every[-1] if every else None


def _head_parameters(head: FunctionHead) -> int:
    hidden = hide(head.head)
    name = re.search(rf"\b{re.escape(head.name)}\s*\(", hidden)
    close = _parenthesis(hidden, name.end() - 1) if name else None
    return _parameters(hidden[name.end() : close - 1]) if name and close else 0


def _parenthesis(hidden: str, start: int) -> int | None:
    depth = 0
    for sign in re.compile(r"[()]").finditer(hidden, start):
        depth += 1 if sign[0] == "(" else -1
        if not depth:
            return sign.end()
    return None


def _parameters(text: str) -> int:
    depth, commas = 0, 0
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        commas += sign == "," and not depth
    return commas + 1 if text.strip() else 0


def _declaration(hidden: str, at: int) -> int:
    start = max(hidden.rfind("\n", 0, at) + 1, *(boundary.end() for boundary in _START.finditer(hidden, 0, at)), 0)
    while start and _MODIFIERS.match(hidden, before := hidden.rfind("\n", 0, start - 1) + 1, start):
        start = before
    # The file keeps its annotations; those of the answer would duplicate them.
    while annotation := _ANNOTATION.match(hidden, start, at):
        start = annotation.end()
        if hidden[start : start + 1] == "(":
            start = _parenthesis(hidden, start) or at
    return start


def _dressed(code: str, start: int, end: int) -> str:
    text = code[start:end].lstrip()
    before = code[code.rfind("\n", 0, end - len(text)) + 1 : end - len(text)]
    return (before if not before.strip() else "") + text

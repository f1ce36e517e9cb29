"""Extract one Java method from a model's answer, by braces outside strings and comments."""

from __future__ import annotations

import re

from ctxbench.harness.extract.given import Given
from ctxbench.harness.extract.unwrap import fenced

_HIDDEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?(?:\*/|\Z)",
    re.S,
)
_BETWEEN = re.compile(r"[\s\w.,<>?&\[\]@]*\{")
"""What stands between a method's parameters and its body: thrown types, annotations."""
_START = re.compile(r"[;{}]")
_CALLS = re.compile(r"(?:\.|\bnew|\breturn|\bthrow|\belse|\bcase|=|\(|,)\s*\Z")
_MODIFIERS = re.compile(r"\s*(?:public|private|protected|static|final|synchronized|<)[^\n(){};=]*\n\Z")
_ARGUMENTS = re.compile(r"@(?!interface\b)[\w.]+\s*\(")
_ANNOTATION = re.compile(r"\s*@(?!interface\b)[\w.]+\s*")


def function(given: Given, answer: str, wrapped: bool) -> tuple[str, bool]:
    """Return the method in the indentation of the file, and whether its braces are balanced.

    Args:
        given: the head of the method.
        answer: what the model wrote.
        wrapped: whether it stood between tags, so that it is code and nothing else.
    """
    blocks = [answer] if wrapped else fenced(answer)
    for code in [*reversed(blocks), answer]:
        found = _method(given, code)
        # A continuation may go on to other methods, even of that name: its own body comes first.
        if found is not None and (blocks or not _continues(given, answer, found)):
            return found, True
    return _closed(given, blocks[-1].strip("\n") if blocks else answer)


def body(text: str) -> str | None:
    """Return what stands between the braces of a method; None if they are not balanced."""
    hidden = hide(text)
    end, start = _end(hidden, 0), hidden.find("{")
    return None if end is None or hidden[end:].strip() else text[start + 1 : end - 1]


def hide(text: str) -> str:
    """Return the text with blanks for strings and comments, newlines kept; positions stay."""
    return _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def _continues(given: Given, answer: str, method: str) -> bool:
    """Return whether the answer has a balanced end of the body before that method begins."""
    text = given.head + answer
    end = _end(hide(text), 0)
    return end is not None and end <= len(given.head) + answer.find(method)


def _closed(given: Given, code: str) -> tuple[str, bool]:
    """Return the head with the code as its body, up to the brace that closes it; one that is missing is added."""
    indented = code if given.head[-1:].isspace() or code[:1].isspace() else f" {code}"
    text = given.head + indented
    if "{" not in hide(given.head) and not code.lstrip().startswith("{"):
        text = f"{given.head.rstrip()} {{\n{code}"
    hidden = hide(text)
    end = _end(hidden, 0)
    if end is not None:
        return text[:end], True
    # Models that see what follows the body often leave its last brace to it.
    missing = hidden.count("{") - hidden.count("}")
    return (f"{text.rstrip()}\n{given.indent}}}", True) if missing == 1 else (text, False)


def _end(hidden: str, start: int) -> int | None:
    """Return the position after the brace that closes the first one opened from `start` on."""
    depth = 0
    for found in re.compile(r"[{}]").finditer(hidden, start):
        depth += 1 if found[0] == "{" else -1
        if depth <= 0:
            return found.end()
    return None


def _method(given: Given, code: str) -> str | None:
    """Return the last method of that name and, of overloads, with as many parameters as the sample's."""
    hidden = _without_arguments(hide(code))
    found: list[tuple[int, str]] = []
    for name in re.finditer(rf"\b{re.escape(given.name)}\s*\(", hidden):
        close = _parenthesis(hidden, name.end() - 1)
        start = _declaration(hidden, name.start())
        if close is None or _CALLS.search(hidden[start : name.start()]) or not hidden[start : name.start()].strip():
            continue
        body = _BETWEEN.match(hidden, close)
        end = _end(hidden, body.end() - 1) if body else None
        if end is not None:
            found.append((_parameters(hidden[name.end() : close - 1]), _dressed(code, start, end)))
    wanted = _wanted(given)
    fitting = [text for count, text in found if count == wanted]
    every = fitting or [text for _, text in found]
    return every[-1] if every else None


def _wanted(given: Given) -> int:
    hidden = hide(given.head)
    name = re.search(rf"\b{re.escape(given.name)}\s*\(", hidden)
    close = _parenthesis(hidden, name.end() - 1) if name else None
    return _parameters(hidden[name.end() : close - 1]) if name and close else 0


def _parenthesis(hidden: str, start: int) -> int | None:
    """Return the position after the parenthesis that closes the one at `start`."""
    depth = 0
    for found in re.compile(r"[()]").finditer(hidden, start):
        depth += 1 if found[0] == "(" else -1
        if not depth:
            return found.end()
    return None


def _parameters(text: str) -> int:
    """Count the parameters between two parentheses; commas in type arguments and annotations are no separators."""
    depth, commas = 0, 0
    for sign in text:
        depth += (sign in "<([{") - (sign in ">)]}")
        commas += sign == "," and not depth
    return commas + 1 if text.strip() else 0


def _declaration(hidden: str, at: int) -> int:
    """Return where a declaration begins whose name stands at `at`: its line, or earlier lines of modifiers."""
    start = max(hidden.rfind("\n", 0, at) + 1, *(found.end() for found in _START.finditer(hidden, 0, at)), 0)
    while start and _MODIFIERS.match(hidden, before := hidden.rfind("\n", 0, start - 1) + 1, start):
        start = before
    # Annotations stay in the file; those of the answer would double them.
    while annotation := _ANNOTATION.match(hidden, start, at):
        start = annotation.end()
        if hidden[start : start + 1] == "(":
            start = _parenthesis(hidden, start) or at
    return start


def _without_arguments(hidden: str) -> str:
    """Return it with blanks for the arguments of annotations, whose braces bound nothing."""
    at = 0
    while opening := _ARGUMENTS.search(hidden, at):
        close = _parenthesis(hidden, opening.end() - 1) or len(hidden)
        at = close
        inner = re.sub(r"[^\n]", " ", hidden[opening.end() : close - 1])
        hidden = hidden[: opening.end()] + inner + hidden[close - 1 :]
    return hidden


def _dressed(code: str, start: int, end: int) -> str:
    """Return a method with the indentation of its first line."""
    text = code[start:end].lstrip()
    before = code[code.rfind("\n", 0, end - len(text)) + 1 : end - len(text)]
    return (before if not before.strip() else "") + text

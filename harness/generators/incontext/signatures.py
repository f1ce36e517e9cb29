"""Call forms: a signature ``def f(a, b)`` also says that ``f(a, b)`` may be written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import IDENTIFIERS, Token, TokenClass, lex

LONG = 60
"""Characters of a call beyond which it is also offered with one argument a line."""
_MAX_PARAMETERS = 30


def call_forms(tokens: Sequence[Token], language: Language) -> list[list[Token]]:
    """Return the calls that the signatures among `tokens` allow, each as tokens of whole lines."""
    forms = _python(tokens) if language.indented else _java(tokens)
    texts: list[str] = []
    for receiver, name, arguments in forms:
        head = f"{receiver}{name}"
        call = f"{head}({', '.join(arguments)})"
        end = "\n" if language.indented else ";\n"
        texts.append(call + end)
        if language.indented and arguments:
            keywords = [f"{argument}={argument}" for argument in arguments]
            if len(call) > LONG:
                texts.append(f"{head}(\n    " + ",\n    ".join(keywords) + ",\n)\n")
            else:
                texts.append(f"{head}({', '.join(keywords)})\n")
    return [lex(text, language, line_start=True)[0] for text in dict.fromkeys(texts)]


def _parameters(tokens: Sequence[Token], at: int) -> tuple[list[list[Token]], int] | None:
    """Return the parameters in the brackets that open at `at` and their end, None if they do not end."""
    depth, parts = 0, [[]]  # type: tuple[int, list[list[Token]]]
    for index in range(at, min(len(tokens), at + 400)):
        token = tokens[index]
        if token.kind in (TokenClass.NEWLINE, TokenClass.INDENT):
            continue
        if token.kind is TokenClass.OPEN or token.text == "<":
            depth += 1
            if depth == 1:
                continue
        elif token.kind is TokenClass.CLOSE or token.text == ">":
            depth -= 1
            if depth == 0:
                return [part for part in parts if part][:_MAX_PARAMETERS], index
        if depth == 1 and token.kind is TokenClass.COMMA:
            parts.append([])
        else:
            parts[-1].append(token)
    return None


def _python(tokens: Sequence[Token]) -> list[tuple[str, str, list[str]]]:
    forms: list[tuple[str, str, list[str]]] = []
    owner, owner_indent, indent = "", -1, 0
    for at, token in enumerate(tokens[:-2]):
        if token.kind is TokenClass.INDENT:
            indent = len(token.text)
            continue
        name = tokens[at + 1]
        if token.text == "class" and name.kind in IDENTIFIERS:
            owner, owner_indent = name.text, indent
        elif token.text == "def" and name.kind in IDENTIFIERS and tokens[at + 2].text == "(":
            found_parts = _parameters(tokens, at + 2)
            if found_parts is None:
                continue
            parts = found_parts[0]
            names = [next((t.text for t in part if t.kind in IDENTIFIERS), "") for part in parts]
            arguments = [n for n in names if n and n not in ("self", "cls")]
            method = (owner and indent > owner_indent) or bool(names and names[0] in ("self", "cls"))
            if name.text == "__init__":
                if owner:
                    forms.append(("", owner, arguments))
            elif not name.text.startswith("__"):
                receiver = f"{_snake(owner)}." if owner and method else "self." if method else ""
                forms.append((receiver, name.text, arguments))
    return forms


def _java(tokens: Sequence[Token]) -> list[tuple[str, str, list[str]]]:
    forms: list[tuple[str, str, list[str]]] = []
    owner = ""
    for at in range(1, len(tokens) - 2):
        before, token = tokens[at - 1], tokens[at]
        if before.text in ("class", "interface", "enum", "record") and token.kind in IDENTIFIERS:
            owner = token.text
        if tokens[at + 1].text != "(" or token.kind not in IDENTIFIERS:
            continue
        typed = before.kind in IDENTIFIERS or before.text in (">", "]")
        typed = typed or (before.kind is TokenClass.KEYWORD and before.text not in ("new", "return", "throw", "else"))
        found_parts = _parameters(tokens, at + 1)
        if not typed or found_parts is None:
            continue
        parts, end = found_parts
        if any(sum(t.kind in IDENTIFIERS or t.kind is TokenClass.KEYWORD for t in p) < 2 for p in parts):
            continue
        if end + 1 >= len(tokens) or tokens[end + 1].text not in ("{", ";", "throws"):
            continue
        names = [[t.text for t in part if t.kind in IDENTIFIERS] for part in parts]
        arguments = [group[-1] for group in names if group]
        if token.text == owner:
            forms.append(("new ", owner, arguments))
        else:
            forms.append((f"{owner[:1].lower()}{owner[1:]}." if owner else "", token.text, arguments))
    return forms


def _snake(name: str) -> str:
    spread = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", spread).lower()

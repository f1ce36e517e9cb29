"""Faults put into the text of a Java method, by tokens and lines, as a second check of how well its tests judge.

Independent of ctxbench, which changes syntax trees. Pure.
"""

import random
import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r'(?P<skip>//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<word>[A-Za-z_$][\w$]*)|(?P<number>\b\d[\w.]*)|(?P<sign>&&|\|\||[=!<>]=|<<|>>>?|->|\+\+|--|[-+*/%&|^]=|[-+*/%&|^!<>])",
    re.DOTALL,
)
_SWAPS = {
    "==": "!=",
    "!=": "==",
    "<=": ">",
    ">=": "<",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "%": "*",
    "&&": "||",
    "||": "&&",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
    "!": "",
    "true": "false",
    "false": "true",
    "min": "max",
    "max": "min",
    "continue": "break",
}
_SPACED = {"<": ">=", ">": "<="}
"""Operators that must have blanks around them; otherwise they enclose type arguments."""
_LOOP = re.compile(r"\b(?:for|while|do)\b")
_SIMPLE = re.compile(r"(?!(?:return|break|continue|case|default)\b)[A-Za-z_][^{}]*;")
"""A line that can be removed."""


def mutants(text: str, name: str, seed: int = 0) -> list[str]:
    """Return faulty versions of a method in random order. Some of them do not compile.

    Args:
        text: the method, from its first modifier.
        name: the method's name.
        seed: the seed of the draw.
    """
    every = [changed for changed in dict.fromkeys(_all(text, name)) if changed != text]
    random.Random(f"{seed} {text}").shuffle(every)
    return every


def _all(text: str, name: str) -> Iterator[str]:
    body = text.index("{") + 1
    tokens = [token for token in _TOKEN.finditer(text) if token.start() >= body]
    for token in tokens:
        line = text[text.rfind("\n", 0, token.start()) + 1 : token.end()]
        if token["skip"] or _LOOP.search(line):
            continue
        new = _SWAPS.get(token[0])
        if token["sign"] and text[token.start() - 1] + text[token.end()] == "  ":
            new = _SPACED.get(token[0], new)
        if token["number"] and token[0].isdigit():
            new = str(int(token[0]) + 1)
        if token[0] == name and text[token.end()] == "(":
            new = ""
        if new is not None:
            yield text[: token.start()] + new + text[token.end() :]
    for found in re.finditer(r"[^\n]+", text):
        line, bare = found[0], found[0].strip()
        margin = line[: len(line) - len(line.lstrip())]
        if found.start() < body:
            continue
        for put in _lines(bare, loops=bool(_LOOP.search(text))):
            yield text[: found.start()] + margin + put + text[found.end() :]


def _lines(bare: str, *, loops: bool) -> Iterator[str]:
    """Yield replacements for a line. Lines that a loop may need are not removed."""
    if re.fullmatch(r"return [^{}]+;", bare):
        yield from (f"return {nothing};" for nothing in ("null", "0", "false") if bare != f"return {nothing};")
    if condition := re.fullmatch(r"(\} else )?if \((.*)\) \{", bare):
        yield f"{condition[1] or ''}if (!({condition[2]})) {{"
    if _SIMPLE.fullmatch(bare) and not loops:
        yield ";"

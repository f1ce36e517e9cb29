"""Faults put into the text of a Python function, by tokens and lines, as a second check of how well its tests judge.

Independent of ctxbench, which changes syntax trees. Pure.
"""

import io
import random
import re
import tokenize
import xml.etree.ElementTree as ET
from collections.abc import Iterator

_SWAPS = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "and": "or",
    "or": "and",
    "True": "False",
    "False": "True",
    "not": "",
    "is": "is not",
    "in": "not in",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "continue": "break",
}
_SIMPLE = re.compile(r"(?!(?:return|pass|def|class|import|from|global|nonlocal|yield)\b)[A-Za-z_].*[^:,(\[{\\]")
"""A line that can be removed."""


def mutants(text: str, name: str, most: int, seed: int = 0) -> list[str]:
    """Return at most `most` faulty versions of a function, drawn at random. Each of them compiles.

    Args:
        text: the function, from its ``def`` at the left margin.
        name: the function's name.
        most: the maximum number of versions.
        seed: the seed of the draw.
    """
    found = [changed for changed in dict.fromkeys(_all(text, name)) if changed != text and _compiles(changed)]
    draw = random.Random(f"{seed} {text}")
    return draw.sample(found, min(most, len(found)))


def _all(text: str, name: str) -> Iterator[str]:
    lines = text.split("\n")
    tokens = list(tokenize.generate_tokens(io.StringIO(text + "\n").readline))
    body = _body(tokens)
    for place, token in enumerate(tokens):
        row, column = token.start
        if not body <= row <= len(lines) or lines[row - 1].lstrip().startswith("while"):
            continue
        new = _SWAPS.get(token.string) if token.type in (tokenize.OP, tokenize.NAME) else None
        if token.type == tokenize.NUMBER and token.string.isdigit():
            new = str(int(token.string) + 1)
        after = tokens[place + 1].string
        if token.string == name and after == "(" and tokens[place - 1].string != "def":
            new, column = "", _start_of_call(lines[row - 1], column)
        if new is not None:
            yield _with(lines, row, lines[row - 1][:column] + new + lines[row - 1][token.end[1] :])
    for row, line in enumerate(lines, 1):
        bare = line.strip()
        margin = line[: len(line) - len(line.lstrip())]
        if row < body or _inside(tokens, row):
            continue
        if bare.startswith("return ") and bare != "return None":
            yield _with(lines, row, f"{margin}return None")
        if bare.startswith("if ") and bare.endswith(":"):
            yield _with(lines, row, f"{margin}if not ({bare[3:-1]}):")
        if _SIMPLE.fullmatch(bare) and not any(each.lstrip().startswith("while") for each in lines):
            yield _with(lines, row, f"{margin}pass")


def _body(tokens: list[tokenize.TokenInfo]) -> int:
    """Return the first line after the docstring."""
    indent = next(place for place, token in enumerate(tokens) if token.type == tokenize.INDENT)
    first = tokens[indent + 1]
    return first.end[0] + 1 if first.type == tokenize.STRING else first.start[0]


def _start_of_call(line: str, column: int) -> int:
    """Return the column where a call written as ``self.name(`` or ``name(`` begins."""
    found = re.search(r"[A-Za-z_][\w.]*\.$", line[:column])
    return found.start() if found else column


def _inside(tokens: list[tokenize.TokenInfo], row: int) -> bool:
    """Return whether a line begins inside brackets, or inside a string of several lines."""
    depth = 0
    for token in tokens:
        if token.start[0] >= row:
            break
        if token.type == tokenize.OP:
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        if token.type == tokenize.STRING and token.end[0] >= row > token.start[0]:
            return True
    return depth > 0


def _with(lines: list[str], row: int, line: str) -> str:
    return "\n".join([*lines[: row - 1], line, *lines[row:]])


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def failed(junit: str) -> set[str]:
    """Return the tests and broken modules that did not pass in a JUnit report of pytest."""
    cases = ET.fromstring(junit).iter("testcase")
    bad = (case for case in cases if case.find("failure") is not None or case.find("error") is not None)
    return {f"{case.get('classname')}::{case.get('name')}" for case in bad}


def rate(verdicts: list[tuple[str, bool]]) -> tuple[int, int, int]:
    """Return the number of mutants that ctxbench failed, that ctxbench or the suite noticed, and in total.

    Args:
        verdicts: ctxbench's verdict on each mutant, and whether the whole suite notices it.
    """
    noticed = [verdict for verdict, suite in verdicts if suite or verdict != "PASSED"]
    return sum(verdict != "PASSED" for verdict in noticed), len(noticed), len(verdicts)

"""Moves Python text to another indentation without touching what lies inside its strings. Pure."""

from __future__ import annotations

import io
import tokenize
import warnings

# Newer Pythons give strings with fields as several tokens.
_OPEN = tuple(getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name))
_CLOSE = tuple(getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name))
_BEFORE_STATEMENT = (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE)


def indentation(line: str) -> str:
    """Return the spaces and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def shift(lines: list[str], to: str) -> list[str]:
    """Return lines moved so that the first one that is not blank begins at the indentation `to`.

    Lines inside strings stay, except in docstrings, where the words move with the code. Blank lines stay.
    A line that is indented less than the first one (inside brackets) loses what it has.

    Args:
        lines: without their ends.
        to: spaces or tabs.
    """
    first = next((line for line in lines if line.strip()), "")
    away = indentation(first)
    if away == to:
        return list(lines)
    fixed = _inside_strings(lines, away)
    stays = [number in fixed or not line.strip() for number, line in enumerate(lines)]
    return [line if stay else to + _without(line, away) for line, stay in zip(lines, stays, strict=True)]


def _without(line: str, away: str) -> str:
    common = 0
    while common < len(away) and line[common : common + 1] == away[common]:
        common += 1
    return line[common:]


def _inside_strings(lines: list[str], away: str) -> set[int]:
    """Return the lines that begin inside a string that is no docstring; none for text without tokens."""
    text = "\n".join(_without(line, away) for line in lines) + "\n"
    numbers: set[int] = set()
    opened: list[int] = []
    statement = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type in (tokenize.NL, tokenize.COMMENT):
                    continue
                if token.type in _OPEN:
                    opened.append(token.start[0])
                elif token.type in _CLOSE and opened:
                    numbers.update(range(opened.pop(), token.end[0]))
                elif token.type == tokenize.STRING and not statement:
                    numbers.update(range(token.start[0], token.end[0]))
                statement = token.type in _BEFORE_STATEMENT
    except (tokenize.TokenError, SyntaxError):
        return set()
    return numbers

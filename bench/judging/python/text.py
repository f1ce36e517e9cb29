"""Replaces a function in a Python file with a completion."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import tokenize
import warnings

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import UTF8
from ctxbench.bench.judging import indentation, replace_lines, unindented
from ctxbench.bench.languages.python import asts, declared_encoding

_CURE = "return the whole function, from its `def` line to its end"
# Newer Pythons split f-strings and t-strings into several tokens.
_OPEN = tuple(getattr(tokenize, name) for name in ("FSTRING_START", "TSTRING_START") if hasattr(tokenize, name))
_CLOSE = tuple(getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name))
_BEFORE_STATEMENT = (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE)


def splice(source: bytes, span: tuple[int, int], name: str, text: str) -> bytes:
    r"""Replace a function's lines in a Python file. The text gets the file's indentation and line ends.

    The file keeps its decorators; those of the text are dropped.

    Args:
        span: 0-based lines ``[start, end)``, without decorators. ``\r\n`` and ``\r`` also end lines.
        name: ``function`` or ``Class.method``.

    Raises:
        InputFault: if the text does not define the function, or the file lacks the lines or cannot encode the text.
    """
    mark = codecs.BOM_UTF8 if source.startswith(codecs.BOM_UTF8) else b""
    encoding = (declared_encoding(source) or UTF8).removesuffix("-sig")
    body = source[len(mark) :]
    return mark + replace_lines(body, encoding, span, lambda to: shift(without_decorators(text, name), to), _CURE)


def lift(lines: list[str]) -> str:
    """Dedent a function's lines so that `splice` can restore the indentation. The result ends with a newline."""
    return "\n".join(shift([line.rstrip("\r\n") for line in lines], "")).rstrip() + "\n"


def without_decorators(text: str, name: str) -> list[str]:
    """Return a function's lines without decorators and outer blank lines.

    Raises:
        InputFault: if the text does not define the function.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    leaf = name.rpartition(".")[2]
    begins = re.compile(rf"[ \t]*(async[ \t]+)?def[ \t]+{re.escape(leaf)}\b")
    starts = [number for number, line in enumerate(lines) if begins.match(line)]
    if not starts:
        raise InputFault(f"the text defines no function {leaf!r}", cure=_CURE)
    spans = _decorators(lines, leaf)
    if spans is None:
        # Invalid Python: drop lines before the definition if they look like a decorator.
        first = starts[0]
        return lines[first:] if lines[0].lstrip().startswith("@") else lines
    return [line for number, line in enumerate(lines) if number not in spans]


def _decorators(lines: list[str], leaf: str) -> set[int] | None:
    tree = asts.parse("\n".join(shift(lines, "")))
    if tree is None:
        return None
    for node in tree.body:
        if isinstance(node, asts.FunctionNode) and node.name == leaf and node.decorator_list:
            first = min(decorator.lineno for decorator in node.decorator_list) - 1
            return set(range(first, node.lineno - 1))
    return set()


def shift(lines: list[str], to: str) -> list[str]:
    """Move lines so that the first nonblank line has the indentation `to`.

    Lines in strings other than docstrings do not move. Lines indented less than the first lose their indentation.
    """
    first = next((line for line in lines if line.strip()), "")
    away = indentation(first)
    if away == to:
        return list(lines)
    fixed = _inside_strings(lines, away)
    stays = [number in fixed or not line.strip() for number, line in enumerate(lines)]
    return [line if stay else to + unindented(line, away) for line, stay in zip(lines, stays, strict=True)]


def _inside_strings(lines: list[str], away: str) -> set[int]:
    text = "\n".join(unindented(line, away) for line in lines) + "\n"
    numbers: set[int] = set()
    opened: list[int] = []
    statement = True
    # Tokens before an error count: a truncated text also contains strings.
    with contextlib.suppress(tokenize.TokenError, SyntaxError), warnings.catch_warnings():
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
    return numbers

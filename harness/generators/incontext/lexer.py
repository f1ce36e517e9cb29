"""Split any text into the tokens of Python or Java, and join them again.

A token carries the whitespace that stands before it on its line, so that the tokens' texts with
their spaces, plus the tail, joined are the text. Every line begins with an indentation token
(perhaps empty) and ends with a newline token. There are no multi-line tokens: a triple quote is a
token of its own, so that code cut at any place still gives tokens.
"""

from __future__ import annotations

import functools
import re
from enum import IntEnum
from typing import NamedTuple

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON


class TokenClass(IntEnum):
    """The class of a token, by which the model's features and its prior count."""

    EDGE = 0
    """Beyond the beginning of a stretch of code."""
    NEWLINE = 1
    INDENT = 2
    NAME = 3
    """An identifier that begins in lower case."""
    TYPE = 4
    """An identifier that begins with a capital and has lower case: a class, as a rule."""
    CONSTANT = 5
    """An identifier all in capitals."""
    KEYWORD = 6
    NUMBER = 7
    STRING = 8
    OPEN = 9
    CLOSE = 10
    COMMA = 11
    DOT = 12
    ASSIGN = 13
    OPERATOR = 14
    COMMENT = 15
    OTHER = 16
    """A character that no rule of the language knows."""


_PYTHON_WORDS = (
    "False None True and as assert async await break class continue def del elif else except finally for from "
    "global if import in is lambda nonlocal not or pass raise return try while with yield"
)
_JAVA_WORDS = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum extends "
    "final finally float for goto if implements import instanceof int interface long native new package private "
    "protected public return short static strictfp super switch synchronized this throw throws transient try void "
    "volatile while true false null var"
)
KEYWORDS = {
    PYTHON: frozenset(_PYTHON_WORDS.split()),
    JAVA: frozenset(_JAVA_WORDS.split()),
}
"""Reserved words; words that are reserved only in places (``match``, ``record``) are names."""

_STRING = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>[rbfuRBFU]{0,2}(?:\"\"\"(?:[^\"\\\n]|\\.|\"(?!\"\"))*\"\"\"|\"\"\"|'''|" + _STRING + r"))"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<number>\.?\d(?:[eE][+-]\d|[\w.])*)"
    r"|(?P<op>\*\*=|//=|>>=|<<=|\.\.\.|->|:=|==|!=|<=|>=|\*\*|//|<<|>>|[-+*/%@&|^]=|[-+*/%@&|^~<>=.,:;()\[\]{}])"
    r"|(?P<other>[^ \t\f\n])"
)
_JAVA = re.compile(
    r"(?P<comment>//[^\n]*|/\*(?:[^*\n]|\*(?!/))*\*/)"
    r"|(?P<string>\"\"\"|" + _STRING + r")"
    r"|(?P<name>[^\W\d][\w$]*|\$[\w$]*)"
    r"|(?P<number>\.?\d(?:[eE][+-]\d|[\w.])*)"
    r"|(?P<op>>>>=|>>=|<<=|\.\.\.|->|::|==|!=|<=|>=|&&|\|\||\+\+|--|<<|[-+*/%&|^]=|[-+*/%@&|^~!?<>=.,:;()\[\]{}])"
    r"|(?P<other>[^ \t\f\n])"
)
PATTERN = {PYTHON: _PYTHON, JAVA: _JAVA}
_ASSIGNMENTS = "= += -= *= /= //= %= **= |= &= ^= >>= <<= >>>= @= :="
OPERATOR_CLASS = {
    **dict.fromkeys("([{", TokenClass.OPEN),
    **dict.fromkeys(")]}", TokenClass.CLOSE),
    ",": TokenClass.COMMA,
    ".": TokenClass.DOT,
    **dict.fromkeys(_ASSIGNMENTS.split(), TokenClass.ASSIGN),
}
GROUP_CLASS = {
    "comment": TokenClass.COMMENT,
    "string": TokenClass.STRING,
    "number": TokenClass.NUMBER,
    "other": TokenClass.OTHER,
}


class Token(NamedTuple):
    """One token: the whitespace before it on its line, its text, its class."""

    space: str
    text: str
    kind: TokenClass

    @property
    def entry(self) -> str:
        """The text as the vocabulary lists it: indentations are marked, so that none is empty."""
        return INDENT_MARK + self.text if self.kind is TokenClass.INDENT else self.text


INDENT_MARK = "\n."
"""No token's text but an indentation's entry can begin so."""
IDENTIFIERS = frozenset({TokenClass.NAME, TokenClass.TYPE, TokenClass.CONSTANT})
_SPACED = {
    language: re.compile(rf"([ \t\f]*)(?:{pattern.pattern}|(?P<newline>\n))") for language, pattern in PATTERN.items()
}
"""A token with the blanks before it."""
_KINDS: dict[Language, dict[str, TokenClass]] = {
    language: {
        **dict.fromkeys(words, TokenClass.KEYWORD),
        **{text: OPERATOR_CLASS.get(text, TokenClass.OPERATOR) for text in ("-", "+", "*", "/", ":", "<", ">", ";")},
        **OPERATOR_CLASS,
        "\n": TokenClass.NEWLINE,
    }
    for language, words in KEYWORDS.items()
}
"""The classes of frequent tokens."""
_LINES = 1 << 14
"""Lines that are remembered: prompts of one repository have most of theirs in common."""


def lex(text: str, language: Language, *, line_start: bool) -> tuple[list[Token], str]:
    """Split a text into tokens.

    Args:
        text: any text at all.
        language: whose rules to use.
        line_start: whether the text begins at column 0, so that indentation comes first.

    Returns:
        The tokens and the whitespace after the last one.
    """
    *whole_lines, last = text.split("\n")  # no token goes over a line's end
    tokens: list[Token] = []
    for line in whole_lines:
        tokens += _lexed(f"{line}\n", language, line_start)[0]
        line_start = True
    # A text that ends with a newline ends there: the next line's indentation is not in it.
    if not last and (whole_lines or not line_start):
        return tokens, ""
    rest, tail = _lexed(last, language, line_start)
    return [*tokens, *rest], tail


@functools.lru_cache(_LINES)
def _lexed(line: str, language: Language, fresh: bool) -> tuple[tuple[Token, ...], str]:
    """Split one line, which nothing around it can change; `fresh` says whether its indentation is in it."""
    tokens: list[Token] = []
    if fresh:
        blank = line[: len(line) - len(line.lstrip(" \t\f"))]
        tokens.append(Token("", blank, TokenClass.INDENT))
        line = line[len(blank) :]
    kinds, end = _KINDS[language], 0
    for match in _SPACED[language].finditer(line):
        space = match[1]
        piece = match[0][len(space) :]
        kind = kinds.get(piece)
        if kind is None:
            kind = _classify(piece, match.lastgroup, language)
        tokens.append(Token(space, piece, kind))
        end = match.end()
    return tuple(tokens), line[end:]


class CodeLine:
    """The tokens of a line of code, or of what is left of it, that many prompts hold; equal only to itself."""

    __slots__ = ("bare", "ends", "filled", "tokens")

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        """Take the tokens, and note what decides whether they stay."""
        kinds = [kind for _, _, kind in tokens]
        self.tokens = tokens
        self.bare = TokenClass.STRING in kinds and any(map(is_bare, tokens))
        """Whether a triple quote stands alone, which begins or ends a text of several lines."""
        self.filled = kinds.count(TokenClass.INDENT) + kinds.count(TokenClass.NEWLINE) < len(kinds)
        self.ends = bool(kinds) and kinds[-1] is TokenClass.NEWLINE


def is_bare(token: Token) -> bool:
    """Return whether a token is a triple quote alone."""
    return token.kind is TokenClass.STRING and len(token.text) <= 5 and token.text[-3:] in ('"""', "'''")


def code_lines(text: str, language: Language) -> list[CodeLine]:
    """Return the lines of a text that begins at column 0, without their comments."""
    *whole_lines, last = text.split("\n")
    lines = [_code_line(f"{line}\n", language) for line in whole_lines]
    return [*lines, _code_line(last, language)] if last or not whole_lines else lines


@functools.lru_cache(_LINES)
def _code_line(line: str, language: Language) -> CodeLine:
    tokens, _ = _lexed(line, language, True)
    if any(kind is TokenClass.COMMENT for _, _, kind in tokens):
        tokens = tuple(token for token in tokens if token.kind is not TokenClass.COMMENT)
    return CodeLine(tokens)


@functools.lru_cache(_LINES)
def part_of_line(tokens: tuple[Token, ...]) -> CodeLine:
    """Return what is left of a line, the same for equal tokens."""
    return CodeLine(tokens)


def join(tokens: list[Token], tail: str = "") -> str:
    """Return the text that the tokens were split from."""
    return "".join(token.space + token.text for token in tokens) + tail


def classify(text: str, language: Language) -> TokenClass:
    """Return the class of a token that is given by its vocabulary entry alone."""
    if text.startswith(INDENT_MARK):
        return TokenClass.INDENT
    if text == "\n":
        return TokenClass.NEWLINE
    match = PATTERN[language].fullmatch(text)
    return _classify(text, match.lastgroup if match else "other", language)


def _classify(text: str, group: str | None, language: Language) -> TokenClass:
    if group == "name":
        if text in KEYWORDS[language]:
            return TokenClass.KEYWORD
        if text[0].isupper() or (text[0] == "_" and text.lstrip("_")[:1].isupper()):
            return TokenClass.CONSTANT if text.upper() == text and len(text) > 1 else TokenClass.TYPE
        return TokenClass.NAME
    if group == "op":
        return OPERATOR_CLASS.get(text, TokenClass.OPERATOR)
    return GROUP_CLASS.get(group or "other", TokenClass.OTHER)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\s\S]")


def words(text: str) -> list[str]:
    """Split a token into sub-words: runs of letters by case, runs of digits, single characters."""
    return _WORD.findall(text)

"""Split any text into the tokens of Python or Java, and join them again.

A token carries the whitespace that stands before it on its line, so that the tokens' texts with
their spaces, plus the tail, joined are the text. Every line begins with an indentation token
(perhaps empty) and ends with a newline token. There are no multi-line tokens: a triple quote is a
token of its own, so that code cut at any place still gives tokens.
"""

from __future__ import annotations

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
_BLANK = re.compile(r"[ \t\f]*")


def lex(text: str, language: Language, *, line_start: bool) -> tuple[list[Token], str]:
    """Split a text into tokens.

    Args:
        text: any text at all.
        language: whose rules to use.
        line_start: whether the text begins at column 0, so that indentation comes first.

    Returns:
        The tokens and the whitespace after the last one.
    """
    tokens: list[Token] = []
    at, end, fresh = 0, len(text), line_start
    pattern = PATTERN[language]
    while at < end or fresh:
        blank = _BLANK.match(text, at)
        space = blank.group() if blank else ""
        at += len(space)
        if fresh:
            tokens.append(Token("", space, TokenClass.INDENT))
            fresh, space = False, ""
        if at >= end:
            return tokens, space
        if text[at] == "\n":
            tokens.append(Token(space, "\n", TokenClass.NEWLINE))
            at += 1
            # A text that ends with a newline ends there: the next line's indentation is not in it.
            fresh = at < end
            continue
        match = pattern.match(text, at)
        piece = match.group() if match else text[at]
        tokens.append(Token(space, piece, _classify(piece, match.lastgroup if match else "other", language)))
        at += len(piece)
    return tokens, ""


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

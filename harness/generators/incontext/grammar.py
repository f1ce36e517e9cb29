"""The lexical rules of Python and Java: kinds of tokens, reserved words, patterns."""

from __future__ import annotations

import re
from enum import IntEnum

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

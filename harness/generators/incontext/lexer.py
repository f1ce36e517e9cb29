"""Splits Python or Java text into tokens, joins them, and tracks brackets, lines and indentation.

A token includes the whitespace before it on its line, so the tokens and the final whitespace, joined, equal the text.
No token spans lines: a triple quote can be a token by itself, so truncated code can be split too.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ctxbench.bench.elementary import log2, running_sum
from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON


class TokenClass(IntEnum):
    """The class of a token, used by the model's features and prior."""

    EDGE = 0
    NEWLINE = 1
    INDENT = 2
    NAME = 3
    """An identifier that does not begin with a capital after its leading underscores."""
    TYPE = 4
    """An identifier whose first letter is a capital, with lower-case letters, or a single capital; usually a class."""
    CONSTANT = 5
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
    """A character that no rule of the language matches."""


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
"""Reserved words. Soft keywords (``match``, ``record``) are names."""

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
        """The token's entry in the vocabulary. An indentation gets a prefix, so that its entry is never empty."""
        return INDENT_MARK + self.text if self.kind is TokenClass.INDENT else self.text


INDENT_MARK = "\n."
"""Prefix of an indentation's entry. No token's text begins with it."""
IDENTIFIERS = frozenset({TokenClass.NAME, TokenClass.TYPE, TokenClass.CONSTANT})
_SPACED = {
    language: re.compile(rf"([ \t\f]*)(?:{pattern.pattern}|(?P<newline>\n))") for language, pattern in PATTERN.items()
}
_KINDS: dict[Language, dict[str, TokenClass]] = {
    language: {
        **dict.fromkeys(words, TokenClass.KEYWORD),
        **{text: OPERATOR_CLASS.get(text, TokenClass.OPERATOR) for text in ("-", "+", "*", "/", ":", "<", ">", ";")},
        **OPERATOR_CLASS,
        "\n": TokenClass.NEWLINE,
    }
    for language, words in KEYWORDS.items()
}
_LINES = 1 << 14
"""Maximum number of lines in each cache. Prompts from one repository share most of their lines."""


def lex(text: str, language: Language, *, line_start: bool) -> tuple[list[Token], str]:
    """Split a text into tokens and the whitespace after them. With `line_start`, the text begins at column 0."""
    *whole_lines, last = text.split("\n")  # no token spans lines
    tokens: list[Token] = []
    for line in whole_lines:
        tokens += _lexed(f"{line}\n", language, line_start)[0]
        line_start = True
    # A text that ends with a newline does not contain the next line's indentation.
    if not last and (whole_lines or not line_start):
        return tokens, ""
    rest, tail = _lexed(last, language, line_start)
    return [*tokens, *rest], tail


@functools.lru_cache(_LINES)
def _lexed(line: str, language: Language, fresh: bool) -> tuple[tuple[Token, ...], str]:
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
    """The tokens of a line of code, or of a part of it. Prompts share these objects, which are compared by identity."""

    __slots__ = ("bare", "ends", "filled", "tokens")

    def __init__(self, tokens: tuple[Token, ...]) -> None:
        kinds = [kind for _, _, kind in tokens]
        self.tokens = tokens
        self.bare = TokenClass.STRING in kinds and any(map(is_bare, tokens))
        """Whether the line has a bare triple quote, which begins or ends a text of several lines."""
        self.filled = kinds.count(TokenClass.INDENT) + kinds.count(TokenClass.NEWLINE) < len(kinds)
        self.ends = bool(kinds) and kinds[-1] is TokenClass.NEWLINE


def is_bare(token: Token) -> bool:
    """Return whether a token is only a triple quote, with or without a prefix such as ``r``."""
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
    """Return a part of a line as a `CodeLine`. Calls with equal tokens usually return the same object."""
    return CodeLine(tokens)


def join(tokens: list[Token], tail: str = "") -> str:
    """Return the text of the tokens, followed by `tail`."""
    return "".join(token.space + token.text for token in tokens) + tail


def classify(text: str, language: Language) -> TokenClass:
    """Return the class of the token with this vocabulary entry."""
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


_LINE_KIND = {
    **dict.fromkeys(("import", "from", "package"), 1),
    **dict.fromkeys(("def", "async", "public", "private", "protected", "static", "abstract"), 2),
    **dict.fromkeys(("class", "interface", "enum"), 3),
    **dict.fromkeys(("return", "yield", "raise", "throw"), 4),
    **dict.fromkeys(("if", "elif", "else", "while", "for", "with", "try", "except", "}", "assert", "catch"), 5),
    **dict.fromkeys(("@",), 6),
}
LINE_KINDS = 9
OPENERS = {"(": 1, "[": 2, "{": 3}


class Bracket(NamedTuple):
    """An open bracket and the tokens after it."""

    opener: str
    callee: str
    """The token before the bracket; empty if that token cannot be called."""
    slot: int
    """Number of commas directly inside the bracket so far."""
    tokens: tuple[str, ...]
    indent: str


class Frame(NamedTuple):
    """The state before a token: open brackets, line and indentation. `advance` returns the state after the token."""

    stack: tuple[Bracket, ...] = ()
    line: tuple[str, ...] = ()
    """Texts of the tokens so far on this physical line, without the indentation; at most the last 61."""
    indent: str = ""
    ended: str = ""
    began: str = ""
    above: str = ""
    """Indentation of the previous line that is not blank."""
    last: str = ""
    function: int = 0
    """Number of ``def``, ``class`` and Java lines with an access modifier that begin before the token."""

    @property
    def opener(self) -> str:
        """The innermost open bracket, or an empty text."""
        return self.stack[-1].opener if self.stack else ""

    @property
    def callee(self) -> str:
        """The callee of the innermost open bracket, or an empty text."""
        return self.stack[-1].callee if self.stack else ""

    @property
    def line_kind(self) -> int:
        """The kind of the line, by its first token: 0 for a plain line, `LINE_KINDS` - 1 before the first token."""
        return _LINE_KIND.get(self.line[0], 0) if self.line else LINE_KINDS - 1


frame_of: Callable[[tuple[Any, ...]], Frame] = functools.partial(tuple.__new__, Frame)
"""Creates a frame from its fields, in order. The call is three times as fast as the class."""


def advance(frame: Frame, token: Token) -> Frame:
    """Return the state after a token, given the state before the token."""
    _, text, kind = token
    stack, line, indent, ended, began, above, last, function = frame
    if kind is TokenClass.NEWLINE:
        if not line:
            return frame_of((stack, line, indent, ended, began, above, text, function))
        return frame_of((stack, (), indent, last, line[0], indent, text, function))
    if kind is TokenClass.INDENT:
        return frame_of((stack, line, text, ended, began, above, text, function))
    if kind is TokenClass.OPEN:
        callable_before = last.isidentifier() or last in (")", "]")
        # Limit the depth for the same reason as the tokens below.
        stack = (*stack[-60:], Bracket(text, last if callable_before else "", 0, (), indent))
    elif kind is TokenClass.CLOSE:
        stack = stack[:-1]
    elif stack:
        opener, callee, slot, tokens, outer = stack[-1]
        # Limit the number of tokens. Otherwise a huge literal would take quadratic time.
        top = Bracket(opener, callee, slot + (kind is TokenClass.COMMA), (*tokens[-40:], text), outer)
        stack = (*stack[:-1], top)
    begins = text in ("def", "class") or (not line and text in ("public", "private", "protected"))
    return frame_of((stack, (*line[-60:], text), indent, ended, began, above, text, function + begins))


EXPECTED = 0.97
"""Probability of the expected whitespace. All other whitespace shares the rest."""
_EXPECTED_BITS = -log2(EXPECTED)

_TIGHT_BEFORE = frozenset([",", ";", ":", ")", "]", "}", "."])
_TIGHT_AFTER = frozenset(["(", "[", "{", ".", "@", "~", "!"])
_UNARY = frozenset(["-", "+", "*", "**", "&", "++", "--"])
_VALUE_WORDS = frozenset(["True", "False", "None", "this", "super", "true", "false", "null"])


def space_before(
    before: Token | None, earlier: Token | None, text: str, kind: TokenClass, frame: Frame, language: Language
) -> str:
    """Return the whitespace expected before a token, given the two previous tokens and the state before the token."""
    if before is None or kind in (TokenClass.NEWLINE, TokenClass.INDENT):
        return ""
    if before.kind in (TokenClass.INDENT, TokenClass.NEWLINE) or before.text in _TIGHT_AFTER:
        return " " if not language.indented and before.text == "{" else ""
    if kind is TokenClass.COMMENT:
        return "  " if language.indented else " "
    if not language.indented:
        return _java(before, earlier, text, kind)
    return _python(before, earlier, text, frame)


def _is_value(token: Token | None) -> bool:
    """Return whether a token can end an operand. An operator after such a token is binary."""
    if token is None:
        return False
    if token.kind is TokenClass.KEYWORD:
        return token.text in _VALUE_WORDS
    return token.kind in IDENTIFIERS or token.kind in (TokenClass.NUMBER, TokenClass.STRING, TokenClass.CLOSE)


def _python(before: Token, earlier: Token | None, text: str, frame: Frame) -> str:
    if text in _TIGHT_BEFORE:
        return ""
    if frame.opener == "(" and "=" in (text, before.text):
        return " " if _annotated(frame.stack[-1].tokens) else ""
    if text in "([":
        return "" if _is_value(before) else " "
    if before.text in _UNARY and not _is_value(earlier):
        return ""
    if before.text == ":" and frame.opener == "[":
        return ""
    return " "


def _annotated(tokens: Sequence[str]) -> bool:
    """Return whether the current parameter has an annotation. Its ``=`` is then surrounded by blanks."""
    for text in reversed(tokens):
        if text in (",", ":"):
            return text == ":"
    return False


def _java(before: Token, earlier: Token | None, text: str, kind: TokenClass) -> str:
    generic = earlier is not None and earlier.kind is TokenClass.TYPE
    if text in (",", ";", ")", "]", ".", "::", "...") or before.text == "::":
        return ""
    if (text == ">" and before.kind in (TokenClass.TYPE, TokenClass.CLOSE)) or text == ">" == before.text:
        return ""
    if text in "([":
        return "" if _is_value(before) or before.text == ">" else " "
    if text == "<" and before.kind is TokenClass.TYPE:
        return ""
    if before.text == "<" and (generic or kind is TokenClass.TYPE or text in ("?", ">")):
        return ""
    if text in ("++", "--") and _is_value(before):
        return ""
    if before.text in _UNARY and not _is_value(earlier):
        return ""
    return " "


def space_cost(space: str, expected: str) -> float:
    """Return the cost in bits of the whitespace `space` where `expected` is the expected whitespace."""
    if space == expected:
        return _EXPECTED_BITS
    # Other whitespace costs one bit per character for its length. Blanks get 90% of each character's probability.
    bits = -log2(1 - EXPECTED) + len(space) + 1
    return bits + running_sum(-log2(0.9 if char == " " else 0.05) for char in space)

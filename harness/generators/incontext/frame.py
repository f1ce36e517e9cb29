"""`Frame`: where a token stands: open brackets, line, indentation; and the whitespace to expect before it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ctxbench.bench.elementary import log2, running_sum
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.lexer import IDENTIFIERS, Token, TokenClass

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
    """One open bracket."""

    opener: str
    callee: str
    """The token before the bracket, empty if it is none that can be called."""
    slot: int
    """Commas since it was opened."""
    tokens: tuple[str, ...]
    """The tokens since it was opened that stand directly in it."""
    indent: str
    """Indentation of the line that opened it."""


class Frame(NamedTuple):
    """The state before a token; `advance` gives the state after it."""

    stack: tuple[Bracket, ...] = ()
    line: tuple[str, ...] = ()
    """Texts of the tokens of this physical line so far, indentation left out."""
    indent: str = ""
    """Indentation of this line."""
    ended: str = ""
    """Last token of the line before."""
    began: str = ""
    """First token of the line before."""
    above: str = ""
    """Indentation of the line before."""
    last: str = ""
    function: int = 0
    """The number of functions begun before."""

    @property
    def opener(self) -> str:
        """The innermost open bracket, empty if none."""
        return self.stack[-1].opener if self.stack else ""

    @property
    def callee(self) -> str:
        """The callee of the innermost open bracket, empty if none."""
        return self.stack[-1].callee if self.stack else ""

    @property
    def line_kind(self) -> int:
        """The kind of line by its first token: 0 a plain one, `LINE_KINDS` - 1 its beginning."""
        return _LINE_KIND.get(self.line[0], 0) if self.line else LINE_KINDS - 1


frame_of: Callable[[tuple[Any, ...]], Frame] = functools.partial(tuple.__new__, Frame)
"""Makes a frame of its fields, in order, in a third of the time that calling the class takes."""


def advance(frame: Frame, token: Token) -> Frame:
    """Return the state after `token`."""
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
        # Depth is bounded for the same reason as the tokens below.
        stack = (*stack[-60:], Bracket(text, last if callable_before else "", 0, (), indent))
    elif kind is TokenClass.CLOSE:
        stack = stack[:-1]
    elif stack:
        opener, callee, slot, tokens, outer = stack[-1]
        # The list of tokens is bounded: a huge literal must not cost quadratic time.
        top = Bracket(opener, callee, slot + (kind is TokenClass.COMMA), (*tokens[-40:], text), outer)
        stack = (*stack[:-1], top)
    begins = text in ("def", "class") or (not line and text in ("public", "private", "protected"))
    return frame_of((stack, (*line[-60:], text), indent, ended, began, above, text, function + begins))


EXPECTED = 0.97
"""Probability of the expected whitespace; the rest is spread over all other strings."""
_EXPECTED_BITS = -log2(EXPECTED)

_TIGHT_BEFORE = frozenset([",", ";", ":", ")", "]", "}", "."])
_TIGHT_AFTER = frozenset(["(", "[", "{", ".", "@", "~", "!"])
_UNARY = frozenset(["-", "+", "*", "**", "&", "++", "--"])
_VALUE_WORDS = frozenset(["True", "False", "None", "this", "super", "true", "false", "null"])


def space_before(
    before: Token | None, earlier: Token | None, text: str, kind: TokenClass, frame: Frame, language: Language
) -> str:
    """Return the whitespace to expect before a token.

    The rule looks at the tokens to the left only, never at the prompt, so whitespace costs the same after every one.

    Args:
        before: the token before it, None at the beginning.
        earlier: the one before that.
        text: the token's text.
        kind: its class.
        frame: where the token stands.
        language: whose habits to follow.
    """
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
    """Whether a token can end an operand, so that an operator after it is binary."""
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
    """Whether the argument being written has an annotation, so that its default is spaced out."""
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
    """Return the bits to code the whitespace `space` where another is expected."""
    if space == expected:
        return _EXPECTED_BITS
    # Any other string: its length by coin tosses, its characters almost surely blanks.
    bits = -log2(1 - EXPECTED) + len(space) + 1
    return bits + running_sum(-log2(0.9 if char == " " else 0.05) for char in space)

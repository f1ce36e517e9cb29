"""The expected whitespace before a token, and the cost of coding another.

The rule looks at the tokens to the left only, never at the prompt, so that whitespace costs the
same after every prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxbench.bench.elementary import log2
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.frame import Frame
from ctxbench.harness.generators.incontext.lexer import IDENTIFIERS, Token, TokenClass

EXPECTED = 0.97
"""Probability of the expected whitespace; the rest is spread over all other strings."""

_TIGHT_BEFORE = frozenset([",", ";", ":", ")", "]", "}", "."])
_TIGHT_AFTER = frozenset(["(", "[", "{", ".", "@", "~", "!"])
_UNARY = frozenset(["-", "+", "*", "**", "&", "++", "--"])
_VALUE_WORDS = frozenset(["True", "False", "None", "this", "super", "true", "false", "null"])


def expected(
    before: Token | None, earlier: Token | None, text: str, kind: TokenClass, frame: Frame, language: Language
) -> str:
    """Return the whitespace to expect before a token.

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


def cost(space: str, expected: str) -> float:
    """Return the bits to code the whitespace `space` where another is expected."""
    if space == expected:
        return -log2(EXPECTED)
    # Any other string: its length by coin tosses, its characters almost surely blanks.
    bits = -log2(1 - EXPECTED) + len(space) + 1
    return bits + sum(-log2(0.9 if char == " " else 0.05) for char in space)

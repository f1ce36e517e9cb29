"""Split any text into the tokens of Python or Java, and join them again.

A token carries the whitespace that stands before it on its line, so that the tokens' texts with
their spaces, plus the tail, joined are the text. Every line begins with an indentation token
(perhaps empty) and ends with a newline token. There are no multi-line tokens: a triple quote is a
token of its own, so that code cut at any place still gives tokens.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.grammar import GROUP_CLASS, KEYWORDS, OPERATOR_CLASS, PATTERN, TokenClass


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


__all__ = ["IDENTIFIERS", "INDENT_MARK", "Token", "TokenClass", "classify", "join", "lex", "words"]

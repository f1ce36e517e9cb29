"""Strings and comments of Java text, also of one that is cut off anywhere: whatever steps over them does it by this."""

from __future__ import annotations

import re

PIECE = (
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|"(?:\\.|[^"\\\n])*(?:"|\Z)'
    r"|'(?:\\[^\n]?[^'\n]*|[^'\\\n])(?:'|\Z)|//(?P<comment>[^\n]*)|(?P<remark>/\*.*?(?:\*/|\Z))"
)
"""A regular expression, in which the dot means newlines too; only the end of the text leaves one open.

An apostrophe in prose opens nothing. Group ``comment`` is what stands behind ``//``, ``remark`` a block comment."""
_PIECE = re.compile(PIECE, re.DOTALL)


def hide(text: str) -> str:
    """Return the text with blanks for strings and comments, newlines kept; positions stay."""
    return _PIECE.sub(lambda match: blank(match[0]), text)


def blank(text: str) -> str:
    """Return as many blanks, newlines kept."""
    return re.sub(r"[^\n]", " ", text)

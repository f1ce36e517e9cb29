"""Characters that cannot be seen, or that change how others are seen, written out. Pure.

A right-to-left override or a zero-width space makes code look other than it is; terminal codes and the like vanish.
Whoever reads a completion must see them.
"""

from __future__ import annotations

import re
import unicodedata

_PICTURES = 0x2400
"""Where Unicode's pictures of the control characters begin."""
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"})
"""Categories: control, format (bidirectional, zero-width), private, surrogate, unassigned, separators, spaces."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and signs by category that are drawn as nothing; with the variation selectors below."""


def visible(text: str) -> str:
    """Return a text with every hiding character written out: ``␛`` for ESC, ``⟨U+202E⟩`` for an override.

    Newlines, tabs and spaces stay. What was written out once stays as it is.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(one if "\x20" <= one <= "\x7e" or one in "\n\t" else _shown(one) for one in text)


def hidden(text: str) -> int:
    """Return how many characters `visible` writes out."""
    if _PLAIN.fullmatch(text):
        return 0
    return sum(one not in " \n\t" and _shown(one) != one for one in text)


def blanks(text: str) -> str:
    """Return a text with its spaces, tabs and line ends visible: ``·``, ``→`` and ``↵``."""
    return text.replace(" ", "·").replace("\t", "→").replace("\n", "↵\n")


def _shown(one: str) -> str:
    if one in " \n\t":
        return one
    number = ord(one)
    if number < 0x20:
        return chr(_PICTURES + number)
    if number == 0x7F:
        return "␡"
    variation = 0xFE00 <= number <= 0xFE0F or 0xE0100 <= number <= 0xE01EF
    if variation or one in _BLANK or unicodedata.category(one) in _HIDING:
        return f"⟨U+{number:04X}⟩"
    return one

"""Other people's texts, made safe to show: hiding characters written out, Markdown escaped. Pure.

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


_MARKUP = re.compile(
    r"[\\`*<>|~$#]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore within a word is only that
    r"|&(?=[#\w])"
    r"|\](?=[(\[:])|^\[(?=[ xX]\])"  # brackets are links only before these; intervals stay as they are
    r"|^[-+](?=\s)|^[-=](?=[-=]+$)"
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_ADDRESS = re.compile(r"://|\bwww\.|\S@\S+\.\S|^@\w", re.IGNORECASE)
"""What GitHub's Markdown makes a link or a mention of, though nothing marks it as one."""


def markdown(text: str) -> str:
    """Return a text on one line of Markdown that shows as it is: no markup, no link, no image, no mention.

    Words with an address become code, which can still be copied; everything else is escaped.
    """
    escaped = _NUMBERED.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", " ".join(visible(text).split())))
    words = zip(visible(text).split(), escaped.split(" "), strict=True) if escaped else ()
    return " ".join(_code(word) if _ADDRESS.search(word) else safe for word, safe in words)


def _code(word: str) -> str:
    """Return a word as code; a bar stays outside, for it ends a table's cell even there."""
    return "\\|".join(_fenced(part) if part else "" for part in word.split("|"))


def _fenced(text: str) -> str:
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return fence + space + text + space + fence


def visible(text: str) -> str:
    """Return a text with every hiding character written out: ``␛`` for ESC, ``⟨U+202E⟩`` for an override.

    Newlines, tabs and spaces stay. What was written out once stays as it is.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(char if "\x20" <= char <= "\x7e" or char in "\n\t" else _written_out(char) for char in text)


def hidden(text: str) -> int:
    """Return how many characters `visible` writes out."""
    if _PLAIN.fullmatch(text):
        return 0
    return sum(char not in " \n\t" and _written_out(char) != char for char in text)


def blanks(text: str) -> str:
    """Return a text with its spaces, tabs and line ends visible: ``·``, ``→`` and ``↵``."""
    return text.replace(" ", "·").replace("\t", "→").replace("\n", "↵\n")


def _written_out(char: str) -> str:
    if char in " \n\t":
        return char
    number = ord(char)
    if number < 0x20:
        return chr(_PICTURES + number)
    if number == 0x7F:
        return "␡"
    variation = 0xFE00 <= number <= 0xFE0F or 0xE0100 <= number <= 0xE01EF
    if variation or char in _BLANK or unicodedata.category(char) in _HIDING:
        return f"⟨U+{number:04X}⟩"
    return char

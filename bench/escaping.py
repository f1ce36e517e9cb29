"""Makes untrusted text safe to display: replaces invisible characters, escapes Markdown."""

from __future__ import annotations

import re
import unicodedata

_PICTURES = 0x2400
_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
_HIDING = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp", "Zs"})
"""Unicode categories: control, format, private, surrogate, unassigned, separators, spaces."""
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that look empty. `_written_out` adds the variation selectors."""


_MARKUP = re.compile(
    r"[\\`*<>|~$#]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore within a word is plain
    r"|&(?=[#\w])"
    r"|\](?=[(\[:])|^\[(?=[ xX]\])"  # brackets make links only before these; intervals stay as they are
    r"|^[-+](?=\s)|^[-=](?=[-=]+$)"
)
_NUMBERED = re.compile(r"^(\d{1,9})([.)])(?=\s|$)")
_ADDRESS = re.compile(r"://|\bwww\.|\S@\S+\.\S|^@\w", re.IGNORECASE)


def markdown(text: str) -> str:
    """Return a text as one line of Markdown without formatting, links, images or mentions.

    Words with a URL or address become code, which can be copied.
    """
    escaped = _NUMBERED.sub(r"\1\\\2", _MARKUP.sub(r"\\\g<0>", " ".join(visible(text).split())))
    words = zip(visible(text).split(), escaped.split(" "), strict=True) if escaped else ()
    return " ".join(_code(word) if _ADDRESS.search(word) else safe for word, safe in words)


def _code(word: str) -> str:
    """Return a word as Markdown code. Bars stay outside: they end a table cell even inside code."""
    return "\\|".join(_fenced(part) if part else "" for part in word.split("|"))


def _fenced(text: str) -> str:
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return fence + space + text + space + fence


def visible(text: str) -> str:
    """Replace invisible characters with visible names: ``␛`` for ESC, ``⟨U+202E⟩`` for a right-to-left override.

    Newlines, tabs and ASCII spaces stay. The function is idempotent.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(char if "\x20" <= char <= "\x7e" or char in "\n\t" else _written_out(char) for char in text)


def hidden(text: str) -> int:
    """Return the number of characters that `visible` replaces."""
    if _PLAIN.fullmatch(text):
        return 0
    return sum(char not in " \n\t" and _written_out(char) != char for char in text)


def blanks(text: str) -> str:
    """Make spaces, tabs and line ends visible: ``·``, ``→`` and ``↵``."""
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

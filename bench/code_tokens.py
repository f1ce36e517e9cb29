"""`ctxcode-1`: the code tokenizer that counts budgets, and whose token sets window retrieval compares.

The papers count with p50k_base, whose vocabulary cannot be shipped. This stands in for it, and the
run record names it. It is a fixed rule, not a vocabulary; a token is the longest match, from left
to right, of

* up to 8 lower-case ASCII letters, with one capital before them (``count``, ``Cart``);
* up to 4 capitals that no lower-case letter follows (``HTTP`` in ``HTTPServer``);
* a run of 4 to 32 equal ones of ``- = # * _ ~ . /`` (rules and banners);
* up to 3 digits; up to 3 other characters that are neither letters nor blanks (``):``, ``__``);
* up to 2 letters outside ASCII;

each with one space before it, if there is one, as in GPT-2; or

* a run of newlines, or a run of other blanks (without the space that belongs to the next token).

Joined, the tokens of a text are the text.
"""

from __future__ import annotations

import re

NAME = "ctxcode-1"
"""The tokenizer's name in run records; a change of the rule is a new name."""

P50K_BASE = "p50k_base"
"""The name of the other tokenizer that budgets can be counted with, `bench.p50k_base`."""

_TOKEN = re.compile(
    r" ?(?:[A-Z]?[a-z]{1,8}|-{4,32}|={4,32}|\#{4,32}|\*{4,32}|_{4,32}|~{4,32}|\.{4,32}|/{4,32}"
    r"|[!-/:-@\[-`{-~]{1,3}|[0-9]{1,3}|[A-Z]{1,4}(?![a-z])|[A-Z]|[^\s\x00-\x7f]{1,2})"
    r"|\n+|[^\S\n]+(?!\S)|[^\S\n]|[\x00-\x7f]"
)


def pieces(text: str) -> list[str]:
    """Return the tokens of a text, in order."""
    return _TOKEN.findall(text)


def count(text: str) -> int:
    """Return the number of tokens of a text."""
    return len(_TOKEN.findall(text))


def utf8(text: str) -> str:
    """Return a text that can be written as UTF-8: half characters, which tokenizers refuse, become ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")

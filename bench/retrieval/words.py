"""The words of a text, for rankers that compare words rather than meaning (BM25, hashed vectors)."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words(text: str) -> list[str]:
    """Return every word of a text and, behind it, the parts it has; all lower-case.

    A word is a run of ``[A-Za-z0-9_]``; it is split at underscores and where the case changes, as identifiers are read:
    ``loadCart`` gives ``loadcart``, ``load``, ``cart``; ``HTTPServer`` gives ``httpserver``, ``http``, ``server``.
    """
    all_words: list[str] = []
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PART.split(word) if part]
        all_words.append(word.lower())
        if parts != all_words[-1:]:
            all_words += parts
    return all_words

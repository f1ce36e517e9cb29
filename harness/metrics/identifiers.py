"""Extract identifiers as CrossCodeEval and InferCom do (by pattern, not by syntax), and compare two lists of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ctxbench.bench.languages.base import Language

# Fixed lists: the official Python list is the running interpreter's, which would make scores depend on it.
_PYTHON = (
    "None and as assert async await break class continue def del elif else except finally for from global "
    "if import in is lambda nonlocal not or pass raise return try while with yield"
)
_JAVA = (
    "abstract assert boolean break byte case catch char class const continue default do double else enum "
    "extends final finally float for goto if implements import instanceof int interface long native new "
    "package private protected public return short static strictfp super switch synchronized this throw "
    "throws transient try var void volatile while"
)
KEYWORDS = {"python": frozenset(_PYTHON.split()), "java": frozenset(_JAVA.split())}

# A backslash escapes any character but a newline. Possessive, because its alternatives cannot overlap.
_STRING = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'""")
_WORD = re.compile(r"\w+")
_FIRST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")


def extract(language: str, text: str) -> list[str]:
    """Return the identifiers of `text` in order, with repeats.

    String literals are deleted, then words that start with an ASCII letter or ``_`` are kept unless they
    are keywords. The prefix of ``f"…"`` stays behind as an identifier, as in the official code.
    """
    keywords = KEYWORDS[language] if language in KEYWORDS else Language(language).reserved
    return [word for word in _WORD.findall(_STRING.sub("", text)) if word[0] in _FIRST and word not in keywords]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How the identifiers of a prediction match the target's; precision, recall and F1 on sets."""

    em: float
    """1 if the lists are equal, in order and with repeats."""
    precision: float
    recall: float
    f1: float


def match(predicted: Sequence[str], target: Sequence[str]) -> Match:
    """Compare two identifier lists; a ratio with denominator 0 is 0."""
    predicted_names, target_names = set(predicted), set(target)
    hits = len(predicted_names & target_names)
    return Match(
        em=float(list(predicted) == list(target)),
        precision=hits / len(predicted_names) if predicted_names else 0.0,
        recall=hits / len(target_names) if target_names else 0.0,
        f1=2 * hits / (len(predicted_names) + len(target_names)) if hits else 0.0,
    )

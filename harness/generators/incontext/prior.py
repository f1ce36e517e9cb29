"""`Prior`: n-grams of common tokens and the spelling of unseen ones, the same for all code of a language.

Counted once by ``scripts/fit_incontext/count.py`` from public code; only counts, and the texts of
tokens common to many files, are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ctxbench.bench import elementary
from ctxbench.bench.doubles import exp2, total
from ctxbench.harness.generators.incontext.context import OPENERS
from ctxbench.harness.generators.incontext.lexer import Token, TokenClass, words

Floats = npt.NDArray[np.float64]

KEYED = 160
"""So many of the most frequent tokens are contexts by themselves; the others by class."""
_FIRST_CLASS = 1000
_KEYS = 1100
ALPHABET = 97
"""Printable ASCII, then the end of a word, then any other character."""
END, OTHER = 95, 96
STEPS = 8
"""Quantisation: a stored byte is `STEPS` times a base-2 logarithm."""
_OTHER_BITS = elementary.log2(0x110000)


def key(token: Token | None, static: Mapping[str, int]) -> int:
    """Return the context number of a token."""
    if token is None:
        return 0
    number = static.get(token.entry, 0)
    if 0 < number < KEYED and token.kind is not TokenClass.INDENT:
        return number
    return _FIRST_CLASS + token.kind


def context_keys(recent: tuple[Token, ...], opener: str, static: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the keys of the three contexts, from the widest to the closest."""
    number = OPENERS.get(opener, 0)
    last = key(recent[-1] if recent else None, static)
    earlier = key(recent[-2] if len(recent) > 1 else None, static)
    return number, 4 + last * 4 + number, 4 + 4 * _KEYS + earlier * _KEYS + last


def code(char: str) -> int:
    """Return a character's place in the alphabet."""
    number = ord(char) - 32
    return number if 0 <= number < END else OTHER


class Prior:
    """The static part of the model, read from the weights file."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Unpack the arrays ``tokens``, ``keys``, ``starts``, ``ids``, ``counts``, ``rest``, ``classes``, ``spell``."""
        texts = bytes(arrays["tokens"].astype(np.uint8)).decode("utf-8").split("\0")
        self.static = {text: number for number, text in enumerate(["", *texts])}
        self.size = len(self.static)
        starts = np.cumsum(np.concatenate([[0], arrays["lengths"].astype(np.int64)]))
        keys = np.cumsum(arrays["keys"].astype(np.int64))
        self._rows = {int(k): (int(a), int(b)) for k, a, b in zip(keys, starts[:-1], starts[1:], strict=True)}
        self._ids = arrays["ids"].astype(np.int64)
        self._counts = exp2(arrays["counts"].astype(np.float64) / STEPS)
        self._rest = dict(zip(self._rows, exp2(arrays["rest"].astype(np.float64) / STEPS).tolist(), strict=True))
        self._class_bits = _shares_in_bits(arrays["classes"].astype(np.float64) / STEPS)
        self._spell_bits = _shares_in_bits(arrays["spell"].astype(np.float64) / STEPS)
        common = bytes(arrays["words"].astype(np.uint8)).decode("utf-8").split("\0")
        shares = exp2(arrays["word_counts"].astype(np.float64) / STEPS)
        self._words = dict(zip(common, (shares / total(shares)).tolist(), strict=True))
        self._uniform = np.full(self.size, 1.0 / max(1, self.size - 1))
        self._uniform[0] = 0.0

    def distribution(self, recent: tuple[Token, ...], opener: str) -> Floats:
        """Return the probability of each static token (their sum is 1)."""
        chances = self._uniform
        for number in context_keys(recent, opener, self.static):
            row = self._rows.get(number)
            if row is not None:
                ids, counts = self._ids[row[0] : row[1]], self._counts[row[0] : row[1]]
                backoff = self._rest[number]
                whole = backoff + total(counts)
                chances = chances * (backoff / whole)
                chances[ids] += counts / whole
        return chances

    def spelling(self, token: Token, before: TokenClass, word_counts: Counter[str]) -> float:
        """Return the bits to spell out a token: its class, then word by word, then its end.

        Args:
            token: what to spell.
            before: the class of the token before it.
            word_counts: how often each word stands in the prompt.
        """
        bits = float(self._class_bits[before, token.kind])
        total = word_counts[""]
        for word in words(token.text):
            letters = self._word(word)
            common = self._words.get(word.lower(), 0.0) / 3
            cached = (0.3 * word_counts[word] + 0.1 * word_counts[_fold(word)]) / total if total else 0.0
            # A folded word stands for three, in lower, upper and title case; so the parts sum to 1.
            chance = 0.2 * elementary.exp2(-min(letters, 1000.0)) + 0.2 * common + cached
            # A word may be too long for its chance to be a float; its bits never are.
            bits += -elementary.log2(chance) if chance > 1e-280 else letters - elementary.log2(0.2)
            bits += _MORE
        return bits + _LAST

    def _word(self, word: str) -> float:
        bits, last = 0.0, END
        for char in word:
            place = code(char)
            bits += float(self._spell_bits[last, place])
            if place == OTHER:
                bits += _OTHER_BITS
            last = place
        return bits + float(self._spell_bits[last, END])


_MORE = -elementary.log2(0.6)
_LAST = -elementary.log2(0.4)


def _shares_in_bits(bits: Floats) -> Floats:
    """Return the bits of each row's shares, given up to a constant a row."""
    whole = np.array([elementary.log2(total(row)) for row in exp2(-bits)], dtype=np.float64)
    bits_of_shares: Floats = bits + whole[:, None]
    return bits_of_shares


def vocabulary(tokens: Iterable[Token]) -> Counter[str]:
    """Count the words of the prompt, each distinct token once; folded words by `_fold`, their sum at the empty word."""
    texts = dict.fromkeys(token.text for token in tokens if token.kind not in (TokenClass.INDENT, TokenClass.NEWLINE))
    exact = Counter(word for text in texts for word in words(text))
    total = sum(exact.values())
    for word, times in list(exact.items()):
        exact[_fold(word)] += times
    exact[""] = total
    return exact


def _fold(word: str) -> str:
    """Return the key of a word in any case, which no word can equal."""
    return "\n" + word.lower()

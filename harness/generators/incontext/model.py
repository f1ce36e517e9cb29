"""The copy model: next-token probabilities and costs of texts in bits, exactly equal on every processor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ctxbench.bench import elementary
from ctxbench.bench.float64 import exp2, total
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext.context import UNKNOWN, Ints, Lexicon, TokenContext, TokenPoint
from ctxbench.harness.generators.incontext.lexer import OPENERS, Token, TokenClass, lex, space_before, space_cost, words
from ctxbench.harness.generators.incontext.scores import ScoreTables
from ctxbench.harness.generators.incontext.source import read
from ctxbench.strategies.api import Prompt

Floats = npt.NDArray[np.float64]

KEYED = 160
"""Number of frequent tokens that each have their own context. Other tokens share a context per class."""
_FIRST_CLASS = 1000
_KEYS = 1100
ALPHABET = 97
"""Size of the alphabet: printable ASCII, then the end of a word, then any other character."""
END, OTHER = 95, 96
STEPS = 8
"""Steps of quantisation: a stored byte is `STEPS` times a base-2 logarithm."""
_OTHER_BITS = elementary.log2(0x110000)


def token_key(token: Token | None, static: Mapping[str, int]) -> int:
    """Return a token's number as context: its own if it is frequent, otherwise that of its class; 0 without a token."""
    if token is None:
        return 0
    number = static.get(token.entry, 0)
    if 0 < number < KEYED and token.kind is not TokenClass.INDENT:
        return number
    return _FIRST_CLASS + token.kind


def context_keys(recent: tuple[Token, ...], opener: str, static: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the keys of the next token's three contexts: bracket; bracket and last token; last two tokens."""
    number = OPENERS.get(opener, 0)
    last = token_key(recent[-1] if recent else None, static)
    earlier = token_key(recent[-2] if len(recent) > 1 else None, static)
    return number, 4 + last * 4 + number, 4 + 4 * _KEYS + earlier * _KEYS + last


def code(char: str) -> int:
    """Return a character's index in the alphabet; `OTHER` if it is not printable ASCII."""
    number = ord(char) - 32
    return number if 0 <= number < END else OTHER


class Prior:
    """The static part of the model: n-grams of common tokens and the spelling of unseen tokens.

    The prior was counted in public code, which the JSON file beside the weights names. It contains only counts, the
    texts of tokens that occur in many files, and common sub-words.
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[np.generic]]) -> None:
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
        self._spell_bits: list[list[float]] = _shares_in_bits(arrays["spell"].astype(np.float64) / STEPS).tolist()
        common = bytes(arrays["words"].astype(np.uint8)).decode("utf-8").split("\0")
        shares = exp2(arrays["word_counts"].astype(np.float64) / STEPS)
        self._words = dict(zip(common, (shares / total(shares)).tolist(), strict=True))
        self._uniform = np.full(self.size, 1.0 / max(1, self.size - 1))
        self._uniform[0] = 0.0
        self._levels: dict[int, tuple[float, Ints, dict[int, float]]] = {}
        self._letters: dict[str, float] = {}
        self._lexicon = Lexicon(self.static)

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon of this language's tokens that the process has seen; a full one is replaced by a new one."""
        if self._lexicon.full:
            self._lexicon = Lexicon(self.static)
        return self._lexicon

    def distribution(self, recent: tuple[Token, ...], opener: str) -> Floats:
        """Return the probability of each of the prior's tokens as the next token. The probabilities sum to 1."""
        chances = self._uniform
        for backoff, ids, shares in self._counted(recent, opener):
            chances = chances * backoff
            chances[ids] += list(shares.values())
        return chances

    def chance(self, number: int, recent: tuple[Token, ...], opener: str) -> float:
        """Return the probability of the prior's token `number` as the next token, as in `distribution`."""
        chance = float(self._uniform[number])
        for backoff, _, shares in self._counted(recent, opener):
            chance = chance * backoff + shares.get(number, 0.0)
        return chance

    def _counted(self, recent: tuple[Token, ...], opener: str) -> Iterator[tuple[float, Ints, dict[int, float]]]:
        for number in context_keys(recent, opener, self.static):
            if number in self._levels:
                yield self._levels[number]
            elif (row := self._rows.get(number)) is not None:
                ids, counts = self._ids[row[0] : row[1]], self._counts[row[0] : row[1]]
                backoff = self._rest[number]
                whole = backoff + total(counts)
                shares = dict(zip(ids.tolist(), (counts / whole).tolist(), strict=True))
                self._levels[number] = backoff / whole, ids, shares
                yield self._levels[number]

    def spelling(self, token: Token, before: TokenClass, word_counts: Counter[str]) -> float:
        """Return the bits to spell a token after a token of class `before`: its class, its words and its end."""
        bits = float(self._class_bits[before, token.kind])
        total = word_counts[""]
        for word in words(token.text):
            letters = self._letters[word] if word in self._letters else self._word(word)
            common = self._words.get(word.lower(), 0.0) / 3
            cached = (0.3 * word_counts[word] + 0.1 * word_counts[_fold(word)]) / total if total else 0.0
            # A folded word stands for three words (lower, upper and title case). So the parts sum to 1.
            chance = 0.2 * elementary.exp2(-min(letters, 1000.0)) + 0.2 * common + cached
            # The probability of a long word can be too small for a float, but its bits never overflow.
            bits += -elementary.log2(chance) if chance > 1e-280 else letters - elementary.log2(0.2)
            bits += _MORE
        return bits + _LAST

    def _word(self, word: str) -> float:
        bits, last = 0.0, END
        for char in word:
            place = code(char)
            bits += self._spell_bits[last][place]
            if place == OTHER:
                bits += _OTHER_BITS
            last = place
        bits += self._spell_bits[last][END]
        if len(self._letters) < _WORDS:
            self._letters[word] = bits
        return bits


_MORE = -elementary.log2(0.6)
_LAST = -elementary.log2(0.4)


def _shares_in_bits(bits: Floats) -> Floats:
    """Return the bits of each row's normalised shares. The input may be off by a constant per row."""
    whole = np.array([elementary.log2(total(row)) for row in exp2(-bits)], dtype=np.float64)
    bits_of_shares: Floats = bits + whole[:, None]
    return bits_of_shares


def vocabulary(subwords: Iterable[tuple[str, ...]]) -> Counter[str]:
    """Count distinct tokens' words, and lower-case forms prefixed with a newline. The empty word counts all words."""
    texts = [word for of_token in subwords for word in of_token]
    counts = Counter(texts)
    counts.update(map(_fold, texts))
    counts[""] = len(texts)
    return counts


def _fold(word: str) -> str:
    return "\n" + word.lower()


_WORDS = 1 << 16
DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Next:
    """The probability of each known token as the next token, and of all unseen tokens together."""

    chances: Floats
    unseen: float


PRIOR, SPELL, REPEAT = range(3)


class Shares(NamedTuple):
    """The probabilities of all ways to produce the next token, such as a copy from one position. They sum to 1."""

    copied: Floats
    gated: Floats
    """Probabilities of taking a token from the prior, of spelling a token, and of repeating a generated token."""


def _repeats(point: TokenPoint) -> dict[str, float]:
    repeats: dict[str, float] = {}
    for entry in point.written:
        repeats[entry] = repeats.get(entry, 0.0) + 0.5 / len(point.written)
    if point.written:
        repeats[point.written[-1]] += 0.5
    return repeats


class PromptReading:
    """A prompt that was read into arrays for the copy model."""

    def __init__(self, prompt: Prompt, language: Language, prior: Prior) -> None:
        source = read(prompt, language)
        lexicon = prior.lexicon
        with lexicon.lock:
            self.context = TokenContext(source, lexicon, prior.size, language)
        self.line_start, self.space = source.line_start, source.space
        self.words: Counter[str] = vocabulary(self.context.subwords)


class CopyModel:
    """The copy model of one language."""

    def __init__(self, weights: Ints, prior: Prior, language: Language) -> None:
        self.weights, self.prior, self.language = weights, prior, language
        self._tables = ScoreTables(weights)

    @classmethod
    def load(cls, path: Path, language: Language) -> CopyModel:
        """Load the copy model of a language from its weights file."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(arrays["weights"].astype(np.int64), Prior(arrays), language)

    def read(self, prompt: Prompt) -> PromptReading:
        """Read a prompt into the arrays that the copy model uses."""
        return PromptReading(prompt, self.language, self.prior)

    def weigh(self, context: TokenContext, point: TokenPoint) -> Shares:
        """Return the probability of each way to produce the next token at a point."""
        copied, gated, whole = self._weights_of(context, point)
        return Shares(copied / whole, gated / whole)

    def _weights_of(self, context: TokenContext, point: TokenPoint) -> tuple[Floats, Floats, float]:
        scores, gates = self._tables.positions(context, point), self._tables.gates(point)
        if not point.written:
            gates = gates[:REPEAT]
        top = max(int(scores.max()), *gates)
        powers = self._tables.powers
        copied = powers.take(top - scores, mode="clip")
        gated = np.zeros(3)
        gated[: len(gates)] = [powers[min(top - gate, len(powers) - 1)] for gate in gates]
        return copied, gated, total(copied) + total(gated)

    def chances(self, reading: PromptReading, point: TokenPoint, token: Token) -> Floats:
        """Return the probabilities of a token under the prior, under spelling and under repetition."""
        number = self.prior.static.get(token.entry, 0)
        prior_chance = self.prior.chance(number, point.recent, point.frame.opener) if number else 0.0
        before = point.recent[-1].kind if point.recent else TokenClass.EDGE
        # The probability of a long token can be too small for a float. The limit keeps the token's cost finite.
        spelled = elementary.exp2(-min(self.prior.spelling(token, before, reading.words), 1000.0))
        return np.array([prior_chance, spelled, _repeats(point).get(token.entry, 0.0)])

    def next(self, context: TokenContext, point: TokenPoint) -> Next:
        """Return the distribution of the next token. All its probabilities sum to 1, including that of unseen tokens.

        All tokens before the point must be known, as in generation.
        """
        shares = self.weigh(context, point)
        chances: Floats = np.bincount(context.id, weights=shares.copied, minlength=context.size).astype(np.float64)
        chances[: self.prior.size] += shares.gated[PRIOR] * self.prior.distribution(point.recent, point.frame.opener)
        lost = 0.0
        for entry, chance in _repeats(point).items():
            number = context.number(entry)
            if number == UNKNOWN:
                lost += chance
            else:
                chances[number] += shares.gated[REPEAT] * chance
        return Next(chances, float(shares.gated[SPELL] + lost * shares.gated[REPEAT]))

    def bits(self, prompt: Prompt, text: str) -> float:
        """Return minus log2 of the probability of `text` and a newline after a prompt, to `DECIMALS` decimals."""
        reading = self.read(prompt)
        context, point = reading.context, reading.context.point
        tokens, _ = lex(text + "\n", self.language, line_start=reading.line_start)
        wanted_space: str | None = "" if reading.space else None
        bits = 0.0
        for token in tokens:
            expected_space = self.space(point, token.text, token.kind) if wanted_space is None else wanted_space
            wanted_space = None
            bits += self.token_bits(reading, point, token)
            if token.kind is not TokenClass.INDENT:
                bits += space_cost(token.space, expected_space)
            point = context.extend(point, token)
        return round(bits, DECIMALS)

    def token_bits(self, reading: PromptReading, point: TokenPoint, token: Token) -> float:
        """Return minus log2 of a token's probability, which is the sum over all ways to produce the token."""
        copied, gates, whole = self._weights_of(reading.context, point)
        gated = gates / whole
        chance = total(copied[reading.context.positions(reading.context.number(token.entry))] / whole)
        chance += total(gated * self.chances(reading, point, token))
        if chance > 1e-290:
            return -elementary.log2(chance)
        before = point.recent[-1].kind if point.recent else TokenClass.EDGE
        return self.prior.spelling(token, before, reading.words) - elementary.log2(max(float(gated[SPELL]), 1e-300))

    def space(self, point: TokenPoint, text: str, kind: TokenClass) -> str:
        """Return the whitespace that is expected before a token at a point."""
        before = point.recent[-1] if point.recent else None
        earlier = point.recent[-2] if len(point.recent) > 1 else None
        return space_before(before, earlier, text, kind, point.frame, self.language)

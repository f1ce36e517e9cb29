"""The copy model: next-token probabilities at a point, bits of a text.

Every source position, the prior and the spelling of unseen tokens are candidates; each has a
log-linear score, and the chance of a token is the share of the candidates that give it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.types import Language
from harness.generators.incontext import features, spacing
from harness.generators.incontext.context import UNKNOWN, Context, Point
from harness.generators.incontext.lexer import Token, TokenClass, lex
from harness.generators.incontext.prior import Floats, Prior, vocabulary
from harness.generators.incontext.source import read
from strategies.api import Prompt

QUANTUM = 64
"""Weights are stored as integers, so many to one."""
DECIMALS = 3
"""Bits are rounded to so many decimals: machines differ in the last bits of exp and log."""


@dataclass(frozen=True, slots=True)
class Next:
    """What may come next: the chance of each known token, and that of spelling one out."""

    known: Floats
    unseen: float


class Reading:
    """A prompt that has been read, with its arrays."""

    def __init__(self, prompt: Prompt, language: Language, prior: Prior) -> None:
        """Read a prompt."""
        source = read(prompt, language)
        self.context = Context(source, prior.static, language)
        self.line_start, self.space = source.line_start, source.space
        self.words: Counter[str] = vocabulary(self.context.tokens)


class Model:
    """The weights of one language."""

    def __init__(self, weights: Floats, prior: Prior, language: Language) -> None:
        """Take fitted weights and counted prior."""
        self.weights, self.prior, self.language = weights, prior, language

    @classmethod
    def load(cls, path: Path, language: Language) -> Model:
        """Read a weights file."""
        with np.load(path, allow_pickle=False) as arrays:
            weights = arrays["weights"].astype(np.float64) / QUANTUM
            return cls(weights, Prior(arrays), language)

    def read(self, prompt: Prompt) -> Reading:
        """Read a prompt into arrays."""
        return Reading(prompt, self.language, self.prior)

    def next(self, context: Context, point: Point) -> Next:
        """Return the distribution of the next token; known and unseen sum to 1."""
        scores = self.weights[features.indices(context, point)].sum(axis=0)
        scores[features.impossible(context)] = -np.inf
        prior, unseen = (float(self.weights[numbers].sum()) for numbers in features.gates(point))
        top = max(float(scores.max()), prior, unseen)
        copied = np.exp(scores - top)
        known: Floats = np.bincount(context.id, weights=copied, minlength=context.size).astype(np.float64)
        before, opener = point.recent, point.frame.opener
        known[: self.prior.size] += math.exp(prior - top) * self.prior.distribution(before, opener)
        rest = math.exp(unseen - top)
        total = known.sum() + rest
        return Next(known / total, float(rest / total))

    def bits(self, prompt: Prompt, text: str) -> float:
        """Return minus log2 of the probability of `text` and the end of its last line."""
        reading = self.read(prompt)
        context, point = reading.context, reading.context.point
        tokens, _ = lex(text + "\n", self.language, line_start=reading.line_start)
        wanted_space: str | None = "" if reading.space else None
        bits = 0.0
        for token in tokens:
            wanted = self.space(point, token.text, token.kind) if wanted_space is None else wanted_space
            wanted_space = None
            bits += self.token_bits(reading, point, token)
            if token.kind is not TokenClass.INDENT:
                bits += spacing.cost(token.space, wanted)
            point = context.extend(point, token)
        return round(bits, DECIMALS)

    def token_bits(self, reading: Reading, point: Point, token: Token) -> float:
        """Return minus log2 of the chance of one token, copied, from the prior or spelled out."""
        after = self.next(reading.context, point)
        before = point.recent[-1].kind if point.recent else TokenClass.EDGE
        spelled = self.prior.spelling(token, before, reading.words)
        number = reading.context.ids.get(token.entry, UNKNOWN)
        chance = float(after.known[number]) if number != UNKNOWN else 0.0
        chance += after.unseen * 2.0**-spelled if spelled < 1000 else 0.0
        return -math.log2(chance) if chance > 0 else spelled - math.log2(max(after.unseen, 1e-300))

    def space(self, point: Point, text: str, kind: TokenClass) -> str:
        """Return the whitespace to expect before a token."""
        before = point.recent[-1] if point.recent else None
        earlier = point.recent[-2] if len(point.recent) > 1 else None
        return spacing.expected(before, earlier, text, kind, point.frame.opener, self.language)

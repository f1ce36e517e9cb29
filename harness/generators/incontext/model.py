"""The copy model: next-token probabilities at a point, bits of a text.

Every source position, the prior and the spelling of unseen tokens are candidates; each has a
log-linear score, and the chance of a token is the share of the candidates that give it. All numbers are the
same to the last bit on every processor.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ctxbench.bench.doubles import exp, total
from ctxbench.bench.elementary import exp2, log2
from ctxbench.bench.languages.base import Language
from ctxbench.harness.generators.incontext import features
from ctxbench.harness.generators.incontext.context import (
    UNKNOWN,
    Ints,
    TokenContext,
    TokenPoint,
    space_before,
    space_cost,
)
from ctxbench.harness.generators.incontext.lexer import Token, TokenClass, lex
from ctxbench.harness.generators.incontext.prior import Floats, Prior, vocabulary
from ctxbench.harness.generators.incontext.source import read
from ctxbench.strategies.api import Prompt

QUANTUM = 64
"""Weights are stored as integers, so many to one."""
DECIMALS = 3
"""Bits are rounded to so many decimals."""


@dataclass(frozen=True, slots=True)
class Next:
    """The distribution of the next token: the chance of each known token, and that of any other."""

    chances: Floats
    unseen: float


PRIOR, SPELL, REPEAT = range(3)


class Shares(NamedTuple):
    """The shares of all candidates, which sum to 1."""

    rows: Ints
    """Weight numbers: groups by source positions."""
    gates: npt.NDArray[np.int64]
    """Weight numbers of the three other candidates."""
    copied: Floats
    """Share of each source position."""
    gated: Floats
    """Shares of the prior, of spelling a token out and of repeating one written before."""


def _repeats(point: TokenPoint) -> dict[str, float]:
    """Return the chance of each token written since the cursor to be repeated: half for the newest."""
    repeats: dict[str, float] = {}
    for entry in point.written:
        repeats[entry] = repeats.get(entry, 0.0) + 0.5 / len(point.written)
    if point.written:
        repeats[point.written[-1]] += 0.5
    return repeats


class PromptReading:
    """A prompt that has been read, with its arrays."""

    def __init__(self, prompt: Prompt, language: Language, prior: Prior) -> None:
        """Read a prompt."""
        source = read(prompt, language)
        self.context = TokenContext(source, prior.static, language)
        self.line_start, self.space = source.line_start, source.space
        self.words: Counter[str] = vocabulary(self.context.tokens)


class CopyModel:
    """The weights of one language."""

    def __init__(self, weights: Floats, prior: Prior, language: Language) -> None:
        """Take fitted weights and counted prior."""
        self.weights, self.prior, self.language = weights, prior, language

    @classmethod
    def load(cls, path: Path, language: Language) -> CopyModel:
        """Read a weights file."""
        with np.load(path, allow_pickle=False) as arrays:
            weights = arrays["weights"].astype(np.float64) / QUANTUM
            return cls(weights, Prior(arrays), language)

    def read(self, prompt: Prompt) -> PromptReading:
        """Read a prompt into arrays."""
        return PromptReading(prompt, self.language, self.prior)

    def weigh(self, context: TokenContext, point: TokenPoint) -> Shares:
        """Return the candidates' shares at a point."""
        rows = features.indices(context, point)
        scores = self.weights[rows].sum(axis=0)
        scores[features.impossible(context)] = -np.inf
        gates = features.gates(point)
        gate = self.weights[gates].sum(axis=1)
        if not point.written:
            gate[REPEAT] = -np.inf
        top = max(float(scores.max()), float(gate.max()))
        copied, gated = exp(scores - top), exp(gate - top)
        whole = total(copied) + total(gated)
        return Shares(rows, gates, copied / whole, gated / whole)

    def chances(self, reading: PromptReading, point: TokenPoint, token: Token) -> Floats:
        """Return the chance that prior, spelling and repetition each give a token."""
        number = self.prior.static.get(token.entry, 0)
        prior_chance = self.prior.distribution(point.recent, point.frame.opener)[number] if number else 0.0
        before = point.recent[-1].kind if point.recent else TokenClass.EDGE
        # A token may be too long for its chance to be a float: it still costs no more than its floor.
        spelled = exp2(-min(self.prior.spelling(token, before, reading.words), 1000.0))
        return np.array([prior_chance, spelled, _repeats(point).get(token.entry, 0.0)])

    def next(self, context: TokenContext, point: TokenPoint) -> Next:
        """Return the distribution of the next token; known and unseen sum to 1.

        The point must be one that was reached by known tokens only, as in generation.
        """
        shares = self.weigh(context, point)
        chances: Floats = np.bincount(context.id, weights=shares.copied, minlength=context.size).astype(np.float64)
        chances[: self.prior.size] += shares.gated[PRIOR] * self.prior.distribution(point.recent, point.frame.opener)
        lost = 0.0
        for entry, chance in _repeats(point).items():
            number = context.ids.get(entry, UNKNOWN)
            if number == UNKNOWN:
                lost += chance
            else:
                chances[number] += shares.gated[REPEAT] * chance
        return Next(chances, float(shares.gated[SPELL] + lost * shares.gated[REPEAT]))

    def bits(self, prompt: Prompt, text: str) -> float:
        """Return minus log2 of the probability of `text` and the end of its last line."""
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
        """Return minus log2 of the chance of one token, from all candidates together."""
        shares = self.weigh(reading.context, point)
        number = reading.context.ids.get(token.entry, UNKNOWN)
        chance = total(shares.copied[reading.context.id == number])
        chance += total(shares.gated * self.chances(reading, point, token))
        if chance > 1e-290:
            return -log2(chance)
        before = point.recent[-1].kind if point.recent else TokenClass.EDGE
        return self.prior.spelling(token, before, reading.words) - log2(max(float(shares.gated[SPELL]), 1e-300))

    def space(self, point: TokenPoint, text: str, kind: TokenClass) -> str:
        """Return the whitespace to expect before a token."""
        before = point.recent[-1] if point.recent else None
        earlier = point.recent[-2] if len(point.recent) > 1 else None
        return space_before(before, earlier, text, kind, point.frame, self.language)

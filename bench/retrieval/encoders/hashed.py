"""`hashed`: a lexical encoder that needs no weights, for tests and first tries. No paper uses it."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated

import numpy as np

from ctxbench.bench.elementary import log
from ctxbench.bench.parameters import AtLeast, AtMost
from ctxbench.bench.retrieval.encoders import encoder
from ctxbench.bench.retrieval.rankers import words

if TYPE_CHECKING:
    from ctxbench.bench.retrieval.encoders import Floats


class Hashed:
    """An encoder of texts by their words and the words' trigrams, each hashed to a dimension and a sign.

    A word that occurs n times counts 1 + ln n.
    """

    version = "2"

    def __init__(self, width: int) -> None:
        self.width = width

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one vector of norm 1 per text. All texts without words get the same vector."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = self._vector(text)
        return vectors

    def _vector(self, text: str) -> Floats:
        slots: list[int] = []
        weights: list[float] = []
        # Sorted, so that texts of the same words have exactly the same vector.
        for word, count in sorted(Counter(words(text)).items()):
            damped = 1 + log(count)
            for slot, weight in _features(word):
                slots.append(slot % self.width)
                weights.append(weight * damped)
        vector = np.bincount(np.array(slots, dtype=np.int64), np.array(weights), minlength=self.width)
        # Without BLAS, whose order of addition depends on the machine.
        length = math.sqrt(math.fsum((vector * vector).tolist()))
        if length == 0:
            vector[0] = length = 1.0
        return (vector / length).astype(np.float32)


@lru_cache(maxsize=1 << 16)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    fenced = f"<{word}>"
    pieces = sorted({fenced[at : at + 3] for at in range(len(fenced) - 2)})
    share = 1 / math.sqrt(len(pieces))
    features = [(f"w{word}", 1.0)] + [(f"p{piece}", share) for piece in pieces]
    slots = []
    for spelling, weight in features:
        digest = int.from_bytes(hashlib.blake2b(spelling.encode(), digest_size=8).digest(), "little")
        slots.append((digest >> 1, weight if digest & 1 else -weight))
    return tuple(slots)


@encoder("hashed")
def hashed(*, width: Annotated[int, AtLeast(16), AtMost(4096)] = 512) -> Hashed:
    """Hashed words: compares spelling only and needs no weights; for tests and first tries.

    Args:
        width: the length of a vector, from 16 to 4096.
    """
    return Hashed(width)

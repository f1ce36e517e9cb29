"""Rankers that compare meanings: the cosine of two vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ctxbench.bench.languages.outline import Span
from ctxbench.bench.retrieval.types import Encoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ctxbench.bench.retrieval.encoders.vectors import Vectors
    from ctxbench.bench.retrieval.types import Floats

    Scores = npt.NDArray[np.float64]

DIGITS = 5
"""Of a similarity, after the point: encoders agree to some 1e-6 from processor to processor."""


class Dense:
    """The cosine of vectors of length 1, which is their product."""

    def __init__(
        self, encoder: Encoder, spec: str, vectors: Vectors, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Rank by an encoder.

        Args:
            encoder: what encodes.
            spec: its canonical spelling.
            vectors: where vectors are kept.
            progress: told now and then how many texts are encoded, of how many; what it raises ends that.
        """
        self._encoder, self._spec, self._vectors, self._progress = encoder, spec, vectors, progress

    @property
    def slack(self) -> float:
        """Return what the fast product may be off `exact`: a rounding a term, and that of the score.

        Its last digits depend on the processor and on how many texts there are, and so on texts that a view leaves
        out; `exact` does not.
        """
        return self._encoder.width * 2.0**-23 + 10.0**-DIGITS

    def index(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts: shape (texts, width)."""
        return self._vectors.of(self._encoder, self._spec, texts, progress=self._progress)

    def query(self, text: str) -> Floats | None:
        """Return the vector of a text; None if it is blank."""
        vector: Floats | None = self.index([text])[0] if text.strip() else None
        return vector

    def scores(self, query: Floats, shared: Floats, own: Floats, skip: Span) -> Scores:
        """Return the score of every shared text and then of every own one, up to `slack`."""
        import numpy as np  # noqa: PLC0415

        return np.concatenate([shared @ query, own @ query]).astype(np.float64)

    def exact(self, query: Floats, vector: Floats) -> float:
        """Return the score of one text, rounded to `DIGITS`, so that machines whose vectors differ rank alike."""
        import numpy as np  # noqa: PLC0415

        return round(math.fsum(np.multiply(query, vector, dtype=np.float64).tolist()), DIGITS)

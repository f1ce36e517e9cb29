"""Rankers: BM25 compares words, `Jaccard` code tokens and `Dense` vectors. No score depends on hidden texts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.elementary import log
from ctxbench.bench.languages.outline import Span

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ctxbench.bench.retrieval.encoders import Encoder, Floats
    from ctxbench.bench.retrieval.encoders.vectors import Vectors

    Ints = npt.NDArray[np.int64]
    Scores = npt.NDArray[np.float64]

K1, B = 1.5, 0.75
_WORD = re.compile(r"[A-Za-z0-9_]+")
_PART = re.compile(r"_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Postings:
    """An index of the texts that contain each token, with counts. The index never changes, so threads can share it."""

    def __init__(self, texts: Sequence[Counter[str]]) -> None:
        """Index texts, given as counted tokens."""
        import numpy as np  # noqa: PLC0415 - not needed by most of what imports this module

        postings: dict[str, tuple[list[int], list[int]]] = {}
        for number, tokens in enumerate(texts):
            for token, times in tokens.items():
                numbers, counts = postings.setdefault(token, ([], []))
                numbers.append(number)
                counts.append(times)
        self._postings = {
            token: (np.array(numbers, dtype=np.int64), np.array(counts, dtype=np.int64))
            for token, (numbers, counts) in postings.items()
        }
        self._none = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self.lengths = np.array([tokens.total() for tokens in texts], dtype=np.int64)
        """Number of tokens in each text."""
        self.kinds = np.array([len(tokens) for tokens in texts], dtype=np.int64)
        """Number of distinct tokens in each text."""

    def of(self, token: str) -> tuple[Ints, Ints]:
        """Return the numbers of the texts that contain a token, ascending, and the token's count in each."""
        return self._postings.get(token, self._none)


class BM25:
    """Okapi BM25 over the words of texts (k1 1.5, b 0.75; the ICL-strategies paper states only the name).

    A word in n of N texts has the weight ``ln(1 + (N - n + 0.5) / (n + 0.5))``. Texts have M words on average. A
    query word that occurs f times in a text of L words adds its weight times ``f * (k1 + 1) / (f + k1 * (1 - b + b * L
    / M))`` to the text's score. A word that the query repeats counts each time.
    """

    slack = 0.0
    exact = None

    def __init__(self, *, split: Literal["identifiers", "spaces"] = "identifiers") -> None:
        """Create a ranker that splits texts into words by `split`.

        Args:
            split: ``identifiers``: see `words`. ``spaces``: at white space. Texts become lower case, queries do not, as
                in RLCoder's program (``bm25.py``).
        """
        self._words = words if split == "identifiers" else _lower_words
        self._query_words = words if split == "identifiers" else str.split

    def index(self, texts: Sequence[str]) -> Postings:
        """Return an index of the tokens in texts."""
        return Postings([Counter(self._words(text)) for text in texts])

    def query(self, text: str) -> Counter[str] | None:
        """Return a query's counted tokens; None if the query has no tokens."""
        return Counter(self._query_words(text)) or None

    def scores(self, query: Counter[str], shared: Postings, own: Postings, skip: Span) -> Scores:
        """Return the scores of the texts in `shared`, then of the texts in `own`.

        Args:
            skip: span ``[start, end)`` of texts in `shared` to leave out. Their scores are meaningless.
        """
        import numpy as np  # noqa: PLC0415

        start, end = skip
        lengths = np.concatenate([shared.lengths, own.lengths])
        count = len(lengths) - (end - start)
        total = int(lengths.sum()) - int(lengths[start:end].sum())
        text_scores = np.zeros(len(lengths))
        if not total:
            return text_scores
        norms = K1 * (1 - B + B * (lengths / (total / count)))
        for token, times in query.items():
            numbers, counts = _both(token, shared, own)
            left_out = int(np.searchsorted(numbers, end)) - int(np.searchsorted(numbers, start))
            holding = len(numbers) - left_out
            weight = times * log(1 + (count - holding + 0.5) / (holding + 0.5))
            text_scores[numbers] += weight * (counts * (K1 + 1) / (counts + norms[numbers]))
        return text_scores


class Jaccard:
    """The Jaccard index of two texts' sets of code tokens: shared tokens over all tokens (InferCom paper)."""

    slack = 0.0
    exact = None

    def index(self, texts: Sequence[str]) -> Postings:
        """Return an index of the tokens in texts."""
        return Postings([Counter(set(tokenize(text))) for text in texts])

    def query(self, text: str) -> Counter[str] | None:
        """Return a query's tokens; None if the query has no tokens."""
        return Counter(set(tokenize(text))) or None

    def scores(self, query: Counter[str], shared: Postings, own: Postings, skip: Span) -> Scores:
        """Return the scores of the texts in `shared`, then of the texts in `own`, as `BM25.scores` does."""
        import numpy as np  # noqa: PLC0415

        kinds = np.concatenate([shared.kinds, own.kinds])
        holding = [_both(token, shared, own)[0] for token in query]
        both = np.bincount(np.concatenate(holding), minlength=len(kinds))
        ratio: Scores = both / (len(query) + kinds - both)
        return ratio


def _both(token: str, shared: Postings, own: Postings) -> tuple[Ints, Ints]:
    import numpy as np  # noqa: PLC0415

    numbers, counts = shared.of(token)
    more, their = own.of(token)
    if not len(more):
        return numbers, counts
    return np.concatenate([numbers, more + len(shared.lengths)]), np.concatenate([counts, their])


def _lower_words(text: str) -> list[str]:
    return text.lower().split()


def words(text: str) -> list[str]:
    """Return all words of a text in lower case, each followed by its parts, if it has any.

    A word is a run of ``[A-Za-z0-9_]``. Its parts end at underscores and case changes: ``loadCart`` becomes
    ``loadcart``, ``load``, ``cart``; ``HTTPServer`` becomes ``httpserver``, ``http``, ``server``.
    """
    all_words: list[str] = []
    for word in _WORD.findall(text):
        parts = [part.lower() for part in _PART.split(word) if part]
        all_words.append(word.lower())
        if parts != all_words[-1:]:
            all_words += parts
    return all_words


DIGITS = 5
"""Decimal places of a similarity. Vectors differ by about 1e-6 between processors."""


class Dense:
    """A ranker by the cosine of vectors of norm 1, which is their dot product."""

    def __init__(
        self, encoder: Encoder, spec: str, vectors: Vectors, *, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Create a ranker that compares the vectors of an encoder.

        Args:
            spec: canonical spec of the encoder.
            vectors: cache of vectors.
            progress: receives the numbers of texts encoded so far and to encode in all. An exception stops encoding.
        """
        self._encoder, self._spec, self._vectors, self._progress = encoder, spec, vectors, progress

    @property
    def slack(self) -> float:
        """Maximum difference between `scores` and `exact`."""
        return self._encoder.width * 2.0**-23 + 10.0**-DIGITS

    def index(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts: shape (texts, width)."""
        return self._vectors.of(self._encoder, self._spec, texts, progress=self._progress)

    def query(self, text: str) -> Floats | None:
        """Return a text's vector; None for a blank text."""
        vector: Floats | None = self.index([text])[0] if text.strip() else None
        return vector

    def scores(self, query: Floats, shared: Floats, own: Floats, skip: Span) -> Scores:
        """Return the scores of the texts in `shared`, then in `own`, with an error of at most `slack`."""
        import numpy as np  # noqa: PLC0415

        return np.concatenate([shared @ query, own @ query]).astype(np.float64)

    def exact(self, query: Floats, vector: Floats) -> float:
        """Return one text's score, rounded to `DIGITS` decimal places so that all machines rank alike."""
        import numpy as np  # noqa: PLC0415

        return round(math.fsum(np.multiply(query, vector, dtype=np.float64).tolist()), DIGITS)

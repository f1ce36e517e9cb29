"""The rankers compared with plain implementations of their definitions."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.retrieval.corpus import Corpus, search, similarity
from ctxbench.bench.retrieval.encoders import get
from ctxbench.bench.retrieval.encoders.vectors import Vectors
from ctxbench.bench.retrieval.rankers import BM25, Dense, Jaccard, words
from ctxbench.bench.retrieval.units import Unit
from ctxbench.bench.types import Place
from tests.helpers.threads import together


def _bm25(query: str, texts: list[str]) -> list[float]:
    """Compute textbook Okapi BM25 with k1 = 1.5 and b = 0.75."""
    documents = [words(text) for text in texts]
    mean = sum(map(len, documents)) / len(documents) or 1.0
    scores = []
    for document in documents:
        score = 0.0
        for word in words(query):
            holding = sum(word in other for other in documents)
            weight = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
            times = document.count(word)
            score += weight * times * (1.5 + 1) / (times + 1.5 * (1 - 0.75 + 0.75 * len(document) / mean))
        scores.append(score)
    return scores


def _jaccard(query: str, texts: list[str]) -> list[float]:
    wanted = set(tokenize(query))
    return [len(wanted & set(tokenize(text))) / len(wanted | set(tokenize(text))) for text in texts]


_TEXT = st.lists(st.sampled_from(["a", "b", "ab", "a_b", "aB", "c = 1", "", "zeta(a)", "\n"]), max_size=6).map(" ".join)
_PLACES = st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), st.integers(0, 5))
_UNITS = st.dictionaries(_PLACES, st.lists(_TEXT, min_size=1, max_size=3), max_size=8)


def _unit(place: tuple[str, int], keys: list[str]) -> Unit:
    path, start = place
    return Unit(place=Place(path=path, start=start, end=start + 1), text=f"{path} {start}", keys=tuple(keys))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    shared=_UNITS, own=st.dictionaries(st.integers(0, 5), st.lists(_TEXT, min_size=1), max_size=3), query=_TEXT,
    top=st.integers(1, 6), which=st.sampled_from(["bm25", "jaccard"]),
)  # fmt: skip
def test_a_search_in_two_corpora_equals_a_search_in_their_union(
    shared: dict[tuple[str, int], list[str]], own: dict[int, list[str]], query: str, top: int, which: str
) -> None:
    plain, ranker = (_bm25, BM25()) if which == "bm25" else (_jaccard, Jaccard())
    known = {place: keys for place, keys in shared.items() if place[0] != "b.py"}
    known |= {("b.py", start): keys for start, keys in own.items()}
    hits = search(
        query,
        shared=Corpus([_unit(*one) for one in shared.items()]),
        own=Corpus([_unit(("b.py", start), keys) for start, keys in own.items()]),
        path="b.py",
        name=which,
        ranker=ranker,
        top=top,
    )
    if not (query.strip() and (words(query) if which == "bm25" else True)):
        assert hits == ()
        return
    rows = [(place, key) for place, keys in sorted(known.items()) for key in keys]
    scores = plain(query, [key for _, key in rows]) if rows else []
    best: dict[tuple[str, int], float] = {}
    for (place, _), score in zip(rows, scores, strict=True):
        best[place] = max(score, best.get(place, 0.0))
    places, expected = [(hit.place.path, hit.place.start) for hit in hits], _ranked(best)[:top]
    # The plain loop adds in another order, so places may swap if their scores differ only in the last digit.
    assert places == expected or [best[place] for place in places] == pytest.approx(
        [best[place] for place in expected], rel=1e-12
    )
    for hit in hits:
        place = (hit.place.path, hit.place.start)
        assert hit.score == pytest.approx(best[place], abs=1e-9)
        at = [score for (other, key), score in zip(rows, scores, strict=True) if other == place and key == hit.matched]
        assert at and max(at) == pytest.approx(hit.score, abs=1e-9)


def _ranked(best: dict[tuple[str, int], float]) -> list[tuple[str, int]]:
    """Sort places by score, then by position. Scores that differ only in their last digits are ties."""
    return sorted(best, key=lambda place: (-round(best[place], 9), place))


def test_similarity_follows_its_definition_over_the_candidates() -> None:
    texts = ["load cart", "", "loadCart(user)", "tax rate"]
    assert similarity("load the cart", texts, BM25()) == pytest.approx(_bm25("load the cart", texts))
    assert similarity("load the cart", texts, Jaccard()) == pytest.approx(_jaccard("load the cart", texts))
    assert similarity(" \n", texts, BM25()) == similarity("++", texts, BM25()) == (0.0,) * 4
    assert similarity("x", [], BM25()) == ()


def test_rlcoder_splits_words_at_spaces_and_keeps_the_case_of_queries() -> None:
    texts = ["Load cart(user)", "load CART(user)", "tax"]
    scores = similarity("load Cart(user) cart(user)", texts, BM25(split="spaces"))
    assert scores[0] == scores[1] > scores[2] == 0
    assert (
        similarity("Load", texts, BM25(split="spaces")) == similarity("user", texts, BM25(split="spaces")) == (0,) * 3
    )
    assert min(similarity("user", texts[:2], BM25())) > 0


def test_a_word_in_every_text_has_a_positive_weight() -> None:
    """Okapi's original weight would be negative here, so a text without the word would come first."""
    assert min(similarity("cart", ["cart", "cart", "cart tax"], BM25())) > 0


def _dense() -> Dense:
    return Dense(get("hashed"), "hashed", Vectors(None))


def test_cosines_do_not_depend_on_hidden_units() -> None:
    """Scores are equal in every bit. The last digits of the fast product vary with the number of rows."""
    texts = [f"def f{i}(a{i % 7}, b): return load_cart(a{i % 5}) + {i % 3}" for i in range(67)]
    units = [Unit(place=Place(path="x.py", start=i, end=i + 1), text=text) for i, text in enumerate(texts)]
    empty = Corpus([])
    found = []
    for more in (0, 1, 2, 3, 5, 8, 1000):
        hidden = [Unit(place=Place(path="t.py", start=i, end=i + 1), text=f"hidden {i}") for i in range(more)]
        shared = Corpus([*units, *hidden])
        found.append(search("load_cart(a1)", shared=shared, own=empty, path="t.py", name="h", ranker=_dense(), top=20))
    assert len(found[0]) == 20 and all(one == found[0] for one in found)
    alone = similarity("load_cart(a1)", [hit.text for hit in found[0]], _dense())
    assert alone == tuple(hit.score for hit in found[0])


def test_the_best_exact_scores_are_found_despite_an_inexact_product() -> None:
    class Rough(Dense):
        def scores(self, *given: Any) -> Any:
            exact = super().scores(*given)
            return exact + 0.9 * self.slack * np.where(np.arange(len(exact)) % 2, 1, -1)

    texts = [f"cart {'x ' * (i % 40)} tax" for i in range(200)]
    corpus = Corpus([Unit(place=Place(path="x.py", start=i, end=i + 1), text=t) for i, t in enumerate(texts)])
    rough, exact = (
        search("cart tax", shared=corpus, own=Corpus([]), path="y.py", name=name, ranker=ranker, top=50)
        for name, ranker in (("rough", Rough(get("hashed"), "hashed", Vectors(None))), ("exact", _dense()))
    )
    assert rough == exact
    assert [hit.place.start for hit in exact[:5]] == [0, 40, 80, 120, 160]  # equal texts: ties by line


def test_threads_build_an_index_once() -> None:
    made: list[int] = []

    class Counting(BM25):
        def index(self, texts: Any) -> Any:
            made.append(1)
            return super().index(texts)

    corpus = Corpus([_unit(("a.py", 0), ["a b"])])
    together(8, lambda: corpus.index("bm25", Counting()))
    assert len(made) == 1

"""Search by words compared with a plain loop over the texts, by the definitions of BM25 and Jaccard similarity."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable

from benchmarks.windows import library
from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.corpus import Corpus, search
from ctxbench.bench.retrieval.rankers import BM25, Jaccard, words
from ctxbench.bench.retrieval.units import cutter

QUERIES = 40
TOP = 10

Loop = Callable[[str], list[float]]


def main() -> None:
    texts, lines = library()
    for unit in ("function", "mini-block"):
        cut = cutter(unit)
        began = time.perf_counter()
        corpus = Corpus([unit_ for path, text in texts.items() for unit_ in cut(path, text, PYTHON)])
        spent = time.perf_counter() - began
        print(f"{lines} lines, {len(corpus.units)} units {unit} cut in {spent * 1e3:.0f} ms")
        queries = [unit_.text for unit_ in corpus.units[3 :: max(1, len(corpus.units) // QUERIES)]][:QUERIES]
        _compare("bm25", BM25(), _bm25(corpus.keys), corpus, queries)
        _compare("jaccard", Jaccard(), _jaccard(corpus.keys), corpus, queries)


def _compare(name: str, ranker: BM25 | Jaccard, loop: Loop, corpus: Corpus, queries: list[str]) -> None:
    began = time.perf_counter()
    corpus.index(name, ranker)
    built = time.perf_counter() - began
    own = Corpus([])

    began = time.perf_counter()
    hit_lists = [search(q, shared=corpus, own=own, path="", name=name, ranker=ranker, top=TOP) for q in queries]
    ours = (time.perf_counter() - began) / len(queries)

    began = time.perf_counter()
    slow = [sorted(enumerate(loop(q)), key=lambda row: (-row[1], row[0]))[:TOP] for q in queries]
    plain = (time.perf_counter() - began) / len(queries)

    same = 0
    for hits, rows in zip(hit_lists, slow, strict=True):
        places = [corpus.units[unit].place for unit, _ in rows]
        same += [hit.place for hit in hits] == places
    print(
        f"  {name}: index {built * 1e3:.0f} ms; loop {plain * 1e3:.2f} ms per query, ours {ours * 1e3:.2f} ms: "
        f"{plain / ours:.0f} times; queries with the same top {TOP} in the same order: {same} of {len(queries)}"
    )


def _bm25(texts: tuple[str, ...]) -> Loop:
    documents = [Counter(words(text)) for text in texts]
    lengths = [document.total() for document in documents]
    mean = sum(lengths) / len(lengths)
    holding = Counter(word for document in documents for word in document)
    weights = {word: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in holding.items()}

    def scores(query: str) -> list[float]:
        query_weights = [
            (word, times * weights[word]) for word, times in Counter(words(query)).items() if word in weights
        ]
        return [
            sum(
                weight * document[word] * 2.5 / (document[word] + 1.5 * (0.25 + 0.75 * length / mean))
                for word, weight in query_weights
                if word in document
            )
            for document, length in zip(documents, lengths, strict=True)
        ]

    return scores


def _jaccard(texts: tuple[str, ...]) -> Loop:
    sets = [set(tokenize(text)) for text in texts]

    def scores(query: str) -> list[float]:
        query_tokens = set(tokenize(query))
        return [
            len(query_tokens & other) / len(query_tokens | other) if query_tokens and other else 0.0 for other in sets
        ]

    return scores


if __name__ == "__main__":
    main()

"""Window retrieval compared with a plain loop over token sets, like the loop in RepoCoder's release."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path

from ctxbench.bench.code_tokens import tokenize
from ctxbench.bench.windows import WindowIndex, split_lines

LINES = 25_000
QUERIES = 100
TOP = 10


def main() -> None:
    texts, lines = library()
    began = time.perf_counter()
    index = WindowIndex(texts)
    built = time.perf_counter() - began
    queries = _queries(texts)

    sets = [set(tokenize(text)) for text in index.texts]
    began = time.perf_counter()
    slow = [_loop(query, sets) for query in queries]
    slow_time = (time.perf_counter() - began) / len(queries)

    index.query(queries[0], top=TOP)
    began = time.perf_counter()
    hits = [index.query(query, top=TOP) for query in queries]
    fast_time = (time.perf_counter() - began) / len(queries)

    number = {text: unit for unit, text in enumerate(index.texts)}
    fast = [[number[hit.text] for hit in query_hits] for query_hits in hits]
    same = sum(a == b for a, b in zip(fast, slow, strict=True))
    print(f"{lines} lines, {len(index.texts)} windows, {len(queries)} queries, top {TOP}")
    print(f"index built once in {built * 1e3:.0f} ms")
    print(
        f"set loop {slow_time * 1e3:.2f} ms per query; ours {fast_time * 1e3:.3f} ms: {slow_time / fast_time:.0f} times"
    )
    print(f"queries with the same top {TOP} in the same order: {same} of {len(queries)}")


def library(most: int = LINES) -> tuple[dict[str, str], int]:
    """Return sources of the standard library in sorted order with at most `most` lines, and their number of lines."""
    texts: dict[str, str] = {}
    lines = 0
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = path.read_text(encoding="utf-8", errors="replace")
        texts[path.name] = text
        lines += text.count("\n")
        if lines >= most:
            break
    return texts, lines


def _queries(texts: dict[str, str]) -> list[str]:
    """Return blocks of 20 lines spread evenly over the files, shifted so that no block equals a window."""
    blocks = [
        "\n".join(lines[start : start + 20])
        for lines in map(split_lines, texts.values())
        for start in range(7, len(lines) - 20, 20)
    ]
    return blocks[:: max(1, len(blocks) // QUERIES)][:QUERIES]


def _loop(query: str, sets: list[set[str]]) -> list[int]:
    tokens = set(tokenize(query))
    scored = []
    for unit, other in enumerate(sets):
        score = len(tokens & other) / len(tokens | other) if tokens and other else 0.0
        scored.append((unit, score))
    scored.sort(key=lambda pair: pair[1])
    return [unit for unit, _ in scored[::-1][:TOP]]


if __name__ == "__main__":
    main()

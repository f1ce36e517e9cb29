"""The windows that engines may use: each is scored by the lines that it contains, whatever its size."""

import math
import random
from collections import defaultdict

import pytest

from ctxbench.bench.engines.inside import best_windows

Hit = tuple[str, int, str]
PUBLISHED = [
    ("b.py", 60, 80, 1.6419326107537402),
    ("c.py", 10, 30, 1.5746705671359362),
    ("c.py", 70, 90, 1.5480992620544196),
]


def random_hits(seed: int) -> tuple[list[Hit], dict[str, float]]:
    chance = random.Random(seed)
    weights = {f"name{number}": 1 / (1 + number / 4) for number in range(12)}
    hits = [(f"{chance.choice('abc')}.py", chance.randrange(90), chance.choice([*weights])) for _ in range(60)]
    return hits, weights


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 20, 21])
def test_a_window_is_scored_by_its_own_lines_and_overlaps_no_other(size: int) -> None:
    hits, weights = random_hits(size)
    files: dict[str, set[str]] = defaultdict(set)
    for path, _, term in hits:
        files[term].add(path)
    covered: set[tuple[str, int]] = set()
    for path, start, end, score in best_windows(hits, weights, size, 1000):
        terms = {term for located, line, term in hits if located == path and start <= line < end}
        assert end - start == size
        assert score == pytest.approx(sum(weights[term] / (1 + math.log(len(files[term]))) for term in terms))
        lines = {(path, line) for line in range(start, end)}
        assert terms and covered.isdisjoint(lines)
        covered |= lines


def test_windows_may_have_one_line_or_three() -> None:
    hits = [("a.py", 4, "x"), ("a.py", 6, "y")]
    weights = {"x": 1.0, "y": 0.5}
    assert best_windows(hits, weights, 1, 9) == [("a.py", 4, 5, 1.0), ("a.py", 6, 7, 0.5)]
    assert best_windows(hits, weights, 3, 9) == [("a.py", 4, 7, 1.5)]


def test_windows_of_an_even_size_equal_the_published_windows() -> None:
    hits, weights = random_hits(0)
    windows = best_windows(hits, weights, 20, 3)
    assert [window[:3] for window in windows] == [window[:3] for window in PUBLISHED]
    assert [window[3] for window in windows] == pytest.approx([window[3] for window in PUBLISHED])

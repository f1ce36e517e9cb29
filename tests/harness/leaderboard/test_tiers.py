"""Letters and rank ranges."""

from __future__ import annotations

import itertools
import random

import pytest

from ctxbench.harness.leaderboard import stats


@pytest.mark.parametrize(
    ("count", "apart", "expected"),
    [
        (0, [], ()),
        (1, [], ("a",)),
        (3, [], ("a", "a", "a")),
        (2, [(0, 1)], ("a", "b")),
        (3, [(0, 2)], ("a", "ab", "b")),
        (3, [(0, 1), (0, 2)], ("a", "b", "b")),
        (3, [(0, 1), (0, 2), (1, 2)], ("a", "b", "c")),
        (4, [(0, 2), (0, 3), (1, 3)], ("a", "ab", "bc", "c")),
    ],
)
def test_letters_by_hand(count: int, apart: list[tuple[int, int]], expected: tuple[str, ...]) -> None:
    assert stats.tier_letters(count, apart) == expected


def test_two_rows_share_a_letter_exactly_if_not_told_apart() -> None:
    draw = random.Random("tiers")
    for _ in range(100):
        pairs = list(itertools.combinations(range(7), 2))
        apart = [pair for pair in pairs if draw.random() < 0.4]
        marks = stats.tier_letters(7, apart)
        for a, b in pairs:
            assert bool(set(marks[a]) & set(marks[b])) is ((a, b) not in apart)


def test_rank_ranges_count_only_significant_differences() -> None:
    assert stats.rank_ranges(3, []) == ((1, 3), (1, 3), (1, 3))
    assert stats.rank_ranges(3, [(0, 2)]) == ((1, 2), (1, 3), (2, 3))
    assert stats.rank_ranges(2, [(1, 0)]) == ((2, 2), (1, 1))

"""Tiers and rank ranges from pairwise comparisons, instead of strict ranks. Pure."""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence


def standing(order: Sequence[int], beats: Collection[tuple[int, int]]) -> list[int]:
    """Return rows by mean, but none before one that beats it.

    Means may be over different samples: one over the easier of them can be higher, and its row the worse wherever the
    two can be compared.

    Args:
        order: rows, the best mean first.
        beats: pairs (winner, loser) that are told apart.
    """
    remaining, standings = list(order), []
    while remaining:
        unbeaten = (row for row in remaining if not any((other, row) in beats for other in remaining))
        standings.append(next(unbeaten, remaining[0]))
        remaining.remove(standings[-1])
    return standings


def rank_ranges(count: int, beats: Collection[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the best and the worst rank of each of `count` rows.

    Args:
        count: number of rows.
        beats: pairs (winner, loser) that are told apart; only these count.
    """
    better, worse = [0] * count, [0] * count
    for winner, loser in beats:
        better[loser] += 1
        worse[winner] += 1
    return tuple((1 + up, count - down) for up, down in zip(better, worse, strict=True))


def letters(count: int, apart: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Return the compact letter display: two rows share a letter exactly if they are not told apart.

    Rows are given best first, so that "a" holds the best. Insert and absorb: begin with one letter for all; a pair
    told apart splits every letter that holds both; a letter within another is dropped.
    """
    columns: list[frozenset[int]] = [frozenset(range(count))] if count else []
    for pair in apart:
        split: list[frozenset[int]] = []
        for column in columns:
            split += [column - {row_index} for row_index in pair] if set(pair) <= column else [column]
        unique = list(dict.fromkeys(split))
        columns = [column for column in unique if not any(column < other for other in unique)]
    columns.sort(key=sorted)
    marks = [_mark(index) for index in range(len(columns))]
    return tuple("".join(m for m, column in zip(marks, columns, strict=True) if row in column) for row in range(count))


def _mark(index: int) -> str:
    """Return a, b, …, z, A, …, Z, then (53), (54), …: always readable one after the other."""
    return string.ascii_letters[index] if index < len(string.ascii_letters) else f"({index + 1})"

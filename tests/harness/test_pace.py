"""How much is done at a time."""

from __future__ import annotations

import pytest

from ctxbench.harness.run import portions
from ctxbench.harness.run.portions import WorkPace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(portions.time, "monotonic", lambda: now[0])
    return now


def sizes(clock: list[float], seconds: float, pieces: int, first: int = 4) -> list[int]:
    """Return how large the parts are, if every piece takes so many seconds."""
    found = []
    for part in WorkPace(first).parts(range(pieces)):
        found.append(len(part))
        clock[0] += len(part) * seconds
    assert sum(found) == pieces
    return found


def test_quick_work_is_done_in_ever_larger_parts(clock: list[float]) -> None:
    assert sizes(clock, 0.001, 100) == [4, 8, 16, 32, 40]


def test_slow_work_is_done_in_parts_of_half_a_second(clock: list[float]) -> None:
    assert sizes(clock, 0.0625, 40) == [4, 8, 8, 8, 8, 4]
    assert sizes(clock, 2.0, 4) == [4]
    assert sizes(clock, 2.0, 8) == [4, 1, 1, 1, 1]


def test_every_piece_comes_once_in_order(clock: list[float]) -> None:
    assert [piece for part in WorkPace(3).parts("abcdefgh") for piece in part] == list("abcdefgh")
    assert list(WorkPace(3).parts("")) == []


def test_the_rest_of_something_tells_little(clock: list[float]) -> None:
    made = WorkPace(8)
    for _ in made.parts(range(1)):
        clock[0] += 0.4
    assert made.size == 8

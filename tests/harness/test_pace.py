"""How much is done at a time, and what becomes of a part in which something cannot be done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.harness.run import portions
from ctxbench.harness.run.portions import NothingWorks, WorkPace, apart


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


def test_a_part_is_done_at_once() -> None:
    assert list(apart("".join, "abc", lambda _: False)) == [("abc", "abc")]
    assert list(apart("".join, "", lambda _: False)) == []


def test_a_piece_that_cannot_be_done_stops_no_other() -> None:
    asked: list[str] = []

    def work(pieces: Sequence[str]) -> str:
        asked.append("".join(pieces))
        if bad := {"b", "d"} & set(pieces):
            raise MachineFault(f"no {min(bad)}")
        return asked[-1].upper()

    outcomes = [(pieces, str(outcome)) for pieces, outcome in apart(work, "abcd", lambda _: True)]
    assert outcomes == [("a", "A"), ("b", "no b"), ("c", "C"), ("d", "no d")] and asked == ["abcd", *"abcd"]


@pytest.mark.parametrize(("until", "tried"), [(0, ["abcd"]), (2, ["abcd", "a", "b"])])
def test_where_nothing_works_any_more_the_rest_is_not_tried(until: int, tried: list[str]) -> None:
    asked: list[str] = []

    def work(pieces: Sequence[str]) -> str:
        asked.append("".join(pieces))
        raise MachineFault(f"{len(asked)}", where="coder", cure="try again")

    outcomes = list(apart(work, "abcd", lambda _: len(asked) <= until))
    assert asked == tried and "".join("".join(pieces) for pieces, _ in outcomes) == "abcd"
    assert [type(outcome) for _, outcome in outcomes] == [MachineFault] * (len(outcomes) - 1) + [NothingWorks]
    assert str(outcomes[-1][1]) == f"coder: {len(tried)}; try again"

"""Which of the tests that cover a function judge it: few, and together as thorough as all of them. Pure.

No measured time decides between tests, since it differs from run to run: what counts is which lines a
test runs. Time only bars a test that is far too slow, by a threshold that ordinary tests stay far from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MOST_TESTS = 20
SLOW = 4.0
"""Seconds of one test under coverage from which it judges nothing."""
SLOW_TOGETHER = 20.0
"""Seconds of a function's chosen tests together, under coverage, from which it gives no sample."""


@dataclass(frozen=True, slots=True)
class TestRun:
    """What is known of one test of the suite."""

    __test__ = False  # pytest would take the class for a test case by its name

    passed: bool
    seconds: float
    breadth: int
    """Lines of the project's sources that it runs: the fewer, the more it is about its subject."""
    clock: bool = False
    """Whether it reads a clock or waits by one, so that a busy machine may fail it."""


def usable(run: TestRun) -> bool:
    """Say whether a test may judge."""
    return run.passed and run.seconds < SLOW


def steady(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> Mapping[str, frozenset[int]]:
    """Return the tests to choose from: of those that read a clock only what runs lines that no other test runs.

    Args:
        covering: usable test -> lines of the function that it runs.
        runs: what is known of each.
    """
    calm = frozenset[int]().union(*(lines for test, lines in covering.items() if not runs[test].clock))
    return {test: lines for test, lines in covering.items() if not runs[test].clock or lines - calm}


def choose(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return the tests that judge a function, sorted by id; at most `MOST_TESTS`.

    First those that together run every line of the function that any test runs, each adding the most
    lines; then the narrowest, one of each parametrized test before a second of any.

    Args:
        covering: usable test -> lines of the function that it runs, not empty.
        runs: what is known of each.
    """
    if len(covering) <= MOST_TESTS:
        return tuple(sorted(covering))
    chosen: list[str] = []
    missing = frozenset[int]().union(*covering.values())
    while missing and len(chosen) < MOST_TESTS:
        best = min(covering, key=lambda test: (-len(covering[test] & missing), runs[test].breadth, test))
        missing -= covering[best]
        chosen.append(best)
    turns = Counter(_base(test) for test in chosen)
    rest: list[tuple[int, int, str]] = []
    for test in sorted(covering.keys() - set(chosen), key=lambda test: (runs[test].breadth, test)):
        rest.append((turns[_base(test)], runs[test].breadth, test))
        turns[_base(test)] += 1
    return tuple(sorted([*chosen, *(test for _, _, test in sorted(rest)[: MOST_TESTS - len(chosen)])]))


def _base(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]

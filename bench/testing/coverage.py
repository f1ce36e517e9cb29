"""Reads what ``ctxbench_pytest:cover`` found, strictly. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ctxbench.bench.testing.events import Malformed


@dataclass(frozen=True, slots=True, kw_only=True)
class CoveredTest:
    """One test of a suite as it ran under coverage."""

    id: str
    outcome: str
    """``passed``, ``failed``, ``skipped`` or ``xfail``."""
    seconds: float
    """Of processor time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A suite under coverage."""

    exit: int
    """pytest's exit status."""
    tests: tuple[CoveredTest, ...]
    broken: tuple[tuple[str, str], ...]
    """Where collection broke, and how."""
    lines: Mapping[str, Mapping[int, tuple[int, ...]]] = field(repr=False)
    """Path -> line from 0 -> sorted positions in `tests` of those that ran it."""
    imports: Mapping[str, Mapping[int, tuple[str, ...]]] = field(repr=False, default_factory=dict)
    """Path -> line from 0 -> test modules whose import ran it; the empty one stands for what runs before any."""


def read(result: object) -> Covered:
    """Read the result of ``ctxbench_pytest:cover``.

    Raises:
        Malformed: if it is not what the guest writes.
    """
    keys = {"exit", "tests", "broken", "sets", "lines", "modules", "imports"}
    if not isinstance(result, dict) or result.keys() != keys:
        raise Malformed("the result has other keys")
    try:
        tests = tuple(
            CoveredTest(id=str(name), outcome=str(outcome), seconds=float(took))
            for name, outcome, took in result["tests"]
        )
        sets = [_numbers(ranges, len(tests)) for ranges in result["sets"]]
        lines = {str(path): _lines(by_line, sets) for path, by_line in result["lines"].items()}
        broken = tuple((str(where), str(what)) for where, what in result["broken"])
        modules = [str(module) for module in result["modules"]]
        imports = {
            str(path): {int(line) - 1: tuple(modules[place] for place in places) for line, places in by_line.items()}
            for path, by_line in result["imports"].items()
        }
        return Covered(exit=int(result["exit"]), tests=tests, broken=broken, lines=lines, imports=imports)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise Malformed(f"not what the runner writes: {error}") from None


def replaced(covered: Covered, again: Covered, tests: Collection[str]) -> Covered:
    """Return a suite's coverage in which some tests stand as they ran another time: outcome, seconds and lines."""
    repeated = {test.id: test for test in again.tests if test.id in tests}
    places = {test.id: place for place, test in enumerate(covered.tests)}
    moved = {number: places[test.id] for number, test in enumerate(again.tests) if test.id in repeated}
    gone = frozenset(moved.values())
    lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path, ran in covered.lines.items():
        for line, numbers in ran.items():
            lines[path][line].update(number for number in numbers if number not in gone)
    for path, ran in again.lines.items():
        for line, numbers in ran.items():
            lines[path][line].update(moved[number] for number in numbers if number in moved)
    return replace(
        covered,
        tests=tuple(repeated.get(test.id, test) for test in covered.tests),
        lines={
            path: {line: tuple(sorted(numbers)) for line, numbers in sorted(ran.items()) if numbers}
            for path, ran in lines.items()
        },
    )


def _lines(by_line: Mapping[str, Any], sets: list[tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {int(line) - 1: sets[int(place)] for line, place in by_line.items()}


def _numbers(ranges: str, count: int) -> tuple[int, ...]:
    numbers: list[int] = []
    for part in ranges.split(","):
        low, _, high = part.partition("-")
        first, last = int(low), int(high or low)
        if not 0 <= first <= last < count:
            raise Malformed("a position of no test")
        numbers.extend(range(first, last + 1))
    return tuple(numbers)

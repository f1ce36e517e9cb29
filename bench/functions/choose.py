"""Selects a few tests for a function that detect about as many faults as all tests that cover the function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from random import Random
from typing import TypeVar

from ctxbench.bench.functions.certificates import Mutants
from ctxbench.bench.functions.mining import TestRun
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.types import Reference, Sample

MOST_TESTS = 20
MOST_TRIED = 150
"""Maximum number of tests to try on a function's faulty versions."""
TWICE = 2
"""Number of selected tests that should detect each faulty version."""
SLOW = 4.0
"""Processor seconds under coverage at which a test becomes unusable."""
SLOW_TOGETHER = 20.0
"""Maximum processor seconds under coverage for all selected tests of a function together."""
MEASURING = 2
"""Number of a function's faulty versions that only serve to evaluate the selected tests."""
CHOOSING = 6
"""Number of further faulty versions, which serve to select the tests."""
_Place = TypeVar("_Place")


def usable(run: TestRun) -> bool:
    """Return whether a test passed and is fast enough to judge functions."""
    return run.passed and run.seconds < SLOW


def steady(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> Mapping[str, frozenset[int]]:
    """Drop each test that reads a clock, unless it runs a line that only such tests run."""
    calm = frozenset[int]().union(*(lines for test, lines in covering.items() if not runs[test].clock))
    return {test: lines for test, lines in covering.items() if not runs[test].clock or lines - calm}


def choose(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return tests that are selected by coverage alone, sorted by id."""
    return tuple(sorted(ranked(covering, runs)))


def ranked(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return at most `MOST_TESTS` tests that are selected by coverage, best first.

    Tests that together run every covered line come first, then the narrowest tests. Cases of a parametrized test
    alternate with other tests.
    """
    picked: list[str] = []
    missing = frozenset[int]().union(*covering.values())
    while missing and len(picked) < MOST_TESTS:
        best = min(covering, key=lambda test: (-len(covering[test] & missing), *preference(test, runs[test])))
        missing -= covering[best]
        picked.append(best)
    turns = Counter(_base(test) for test in picked)
    narrowest: list[tuple[int, int, str]] = []
    for test in sorted(covering.keys() - set(picked), key=lambda test: preference(test, runs[test])):
        narrowest.append((turns[_base(test)], *preference(test, runs[test])))
        turns[_base(test)] += 1
    return (*picked, *(test for *_, test in sorted(narrowest)[: MOST_TESTS - len(picked)]))


def further_tests(
    covering: Mapping[str, frozenset[int]],
    importing: Collection[str],
    runs: Mapping[str, TestRun],
    picked: Sequence[str],
) -> tuple[str, ...]:
    """Return tests besides `picked` that may detect a fault, most promising first; with `picked`, at most `MOST_TRIED`.

    Wide tests (many lines run) and narrow tests alternate. Tests whose modules run the function on import come last.
    """
    excluded = set(picked)
    ways = []
    for tests in (covering.keys() - excluded, set(importing) - covering.keys() - excluded):
        narrow = _in_turns(sorted(tests, key=lambda test: preference(test, runs[test])))
        wide = _in_turns(sorted(tests, key=lambda test: preference(test, runs[test], wide=True)))
        ways.append(dict.fromkeys(test for pair in zip(wide, narrow, strict=True) for test in pair))
    return (*ways[0], *ways[1])[: MOST_TRIED - len(excluded)]


def strongest(ranked: Sequence[str], others: Sequence[str], failing: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """Select up to `MOST_TESTS` tests that together detect many faulty versions. Fill up from `ranked`, and sort by id.

    Args:
        failing: for each faulty version, the tests that detect it. More than `TWICE` tests for a version add nothing.
    """
    picked: list[str] = []
    times = [0 for _ in failing]
    candidates = [*ranked, *others]

    def gain(test: str) -> float:
        counted = zip(times, failing, strict=True)
        return sum(0.5**count for count, those in counted if count < TWICE and test in those)

    while candidates and len(picked) < MOST_TESTS:
        best = max(candidates, key=gain)  # the first of equals
        if not gain(best):
            break
        candidates.remove(best)
        picked.append(best)
        times = [count + (best in those) for count, those in zip(times, failing, strict=True)]
    fillers = [test for test in ranked if test not in picked]
    return tuple(sorted([*picked, *fillers[: MOST_TESTS - len(picked)]]))


def _in_turns(tests: Sequence[str]) -> list[str]:
    turns: Counter[str] = Counter()
    placed: list[tuple[int, int, str]] = []
    for place, test in enumerate(tests):
        placed.append((turns[_base(test)], place, test))
        turns[_base(test)] += 1
    return [test for *_, test in sorted(placed)]


def preference(test: str, run: TestRun, *, wide: bool = False) -> tuple[int, str]:
    """Return a sort key that puts narrow tests (few lines run) first or, with `wide`, wide tests first."""
    return -run.breadth if wide else run.breadth, test


def _base(test: str) -> str:
    return test.partition("[")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A function that may become a sample, with its tests, an empty body and faulty versions."""

    sample: Sample
    reference: Reference
    """The sample's reference. Its tests are those of `ranked`, sorted by id."""
    ranked: tuple[str, ...]
    others: tuple[str, ...]
    """Further tests that run the function, directly or on import."""
    blank: str
    mutants: Callable[[int], tuple[str, ...]]
    """Returns faulty versions of the function, at most the given number."""
    clocks: frozenset[str] = frozenset()

    def judged_by(self, tests: tuple[str, ...]) -> Reference:
        """Return the reference with `tests` as its tests."""
        return replace(self.reference, tests=tests, clocks=tuple(test for test in tests if test in self.clocks))

    def without(self, tests: frozenset[str]) -> Draft | None:
        """Return the draft without the given tests; None if no test remains."""
        remaining = [test for test in (*self.ranked, *self.others) if test not in tests]
        if not remaining:
            return None
        most = len(self.ranked)
        reference = self.judged_by(tuple(sorted(remaining[:most])))
        return replace(self, reference=reference, ranked=tuple(remaining[:most]), others=tuple(remaining[most:]))


def choose_by_faults(draft: Draft, trying: Judge) -> tuple[str, ...]:
    """Return tests, sorted by id, that are selected to detect the empty body and many faulty versions."""
    faulty = draft.mutants(MEASURING + CHOOSING)[MEASURING:]
    noticed = [failing_tests(draft, text, trying) for text in (draft.blank, *faulty)]
    others = draft.others
    if noticed[0] and noticed[0] - draft.clocks:
        # Tests that read a clock are needed only if no other test detects the empty body.
        others = tuple(test for test in others if test not in draft.clocks)
    return strongest(draft.ranked, others, [tests for tests in noticed if tests])


def count_mutants(draft: Draft, tests: tuple[str, ...], trying: Judge) -> Mutants:
    """Count the faulty versions that the selected tests detect, and those that any of the draft's tests detects."""
    failures = [failing_tests(draft, text, trying) for text in draft.mutants(MEASURING)]
    noticed = [failing for failing in failures if failing is not None]
    killed = sum(not failing.isdisjoint(tests) for failing in noticed)
    return Mutants(tried=len(noticed), killed=killed, killed_by_all=sum(map(bool, noticed)))


def in_turns(places: Iterable[tuple[str, _Place]], text: str) -> Iterator[_Place]:
    """Yield places for faults in a random order with `text` as the seed. Kinds of faults take turns."""
    kinds: dict[str, list[_Place]] = {}
    for kind, place in places:
        kinds.setdefault(kind, []).append(place)
    draw = Random(text)  # noqa: S311 - a choice, not a secret
    queues = [kinds[kind] for kind in sorted(kinds)]
    for queue in queues:
        draw.shuffle(queue)
    draw.shuffle(queues)
    for turn in zip_longest(*queues):
        yield from (place for place in turn if place is not None)


def faulty_versions(
    original: str, places: Iterable[tuple[str, _Place]], text: str, changed: Callable[[_Place], str], most: int
) -> tuple[str, ...]:
    """Create up to `most` distinct faulty versions of a function, in a random order with `text` as the seed.

    Args:
        places: places for faults, each with the kind of fault.
        changed: returns the function with the fault at a place.
    """
    faulty = dict.fromkeys([original])
    for place in in_turns(places, text):
        if len(faulty) > most:
            break
        faulty[changed(place)] = None
    return tuple(faulty)[1:]


def failing_tests(draft: Draft, text: str, trying: Judge) -> frozenset[str] | None:
    """Return the draft's tests that fail with `text` as the function; None without a usable report."""
    everything = draft.judged_by(tuple(sorted({*draft.ranked, *draft.others})))
    return trying.failing(draft.sample, everything, text)

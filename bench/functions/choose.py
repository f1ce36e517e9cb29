"""Select the tests that judge a function from those that cover it: few, and together as thorough as all.

Tests are selected by the lines they run and the faulty versions they notice, and evaluated on other faulty versions.
Measured times vary between runs, so they never rank tests. They only exclude a test that is far too slow.
"""

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
"""Largest number of a function's tests to try on its faulty versions."""
TWICE = 2
"""How many selected tests should notice each fault, if so many exist."""
SLOW = 4.0
"""Seconds of processor time under coverage from which a test is not used."""
SLOW_TOGETHER = 20.0
"""Seconds of processor time under coverage of a function's selected tests together, from which it becomes no sample."""
MEASURING = 2
"""Number of faulty versions of each function that evaluate the selected tests."""
CHOOSING = 6
"""Number of other faulty versions that select the tests, if there are more than `MOST_TESTS`."""
_Place = TypeVar("_Place")


def usable(run: TestRun) -> bool:
    """Return whether a test may judge."""
    return run.passed and run.seconds < SLOW


def steady(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> Mapping[str, frozenset[int]]:
    """Return the tests to select from; a test that reads a clock counts only for lines that no other test runs.

    Args:
        covering: usable test -> lines of the function that it runs.
        runs: test -> results of its runs.
    """
    calm = frozenset[int]().union(*(lines for test, lines in covering.items() if not runs[test].clock))
    return {test: lines for test, lines in covering.items() if not runs[test].clock or lines - calm}


def choose(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return the tests that judge a function, selected by coverage alone and sorted by id; see `ranked`."""
    return tuple(sorted(ranked(covering, runs)))


def ranked(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return the tests that judge a function best by coverage, best first; at most `MOST_TESTS`.

    First the tests that together run every covered line, each adding the most lines; then the narrowest, one of each
    parametrized test before a second of any.

    Args:
        covering: usable test -> lines of the function that it runs.
        runs: test -> results of its runs.
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


def others(
    covering: Mapping[str, frozenset[int]],
    importing: Collection[str],
    runs: Mapping[str, TestRun],
    picked: Sequence[str],
) -> tuple[str, ...]:
    """Return further tests that may notice a fault of a function, most promising first.

    First the tests that run it, the widest and the narrowest alternating: narrow tests target it, and wide tests use it
    in practice. Then the tests whose modules ran it at import.

    Args:
        covering: as for `choose`.
        importing: usable tests of modules whose import runs the function.
        runs: test -> results of its runs.
        picked: the result of `choose`.
    """
    excluded = set(picked)
    ways = []
    for tests in (covering.keys() - excluded, set(importing) - covering.keys() - excluded):
        narrow = _in_turns(sorted(tests, key=lambda test: preference(test, runs[test])))
        wide = _in_turns(sorted(tests, key=lambda test: preference(test, runs[test], wide=True)))
        ways.append(dict.fromkeys(test for pair in zip(wide, narrow, strict=True) for test in pair))
    return (*ways[0], *ways[1])[: MOST_TRIED - len(excluded)]


def strongest(ranked: Sequence[str], others: Sequence[str], failing: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """Return the tests, at most `MOST_TESTS`, that notice the most faults, sorted by id.

    The weight of a fault is halved by each selected test that notices it, so that the tests differ as much as possible.
    Once `TWICE` tests notice each fault, the remaining places are filled in the order of `ranked`.

    Args:
        ranked: the tests selected by coverage, best first.
        others: further tests, most promising first.
        failing: for each fault, the tests that notice it.
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
    """Return tests reordered so that the parametrized versions of each test take turns with the other tests."""
    turns: Counter[str] = Counter()
    placed: list[tuple[int, int, str]] = []
    for place, test in enumerate(tests):
        placed.append((turns[_base(test)], place, test))
        turns[_base(test)] += 1
    return [test for *_, test in sorted(placed)]


def preference(test: str, run: TestRun, *, wide: bool = False) -> tuple[int, str]:
    """Return the sort key for tests that run equally useful lines, best first.

    Args:
        test: its id, the last part of the key.
        run: the results of its runs.
        wide: whether to prefer wide tests to narrow ones.
    """
    return -run.breadth if wide else run.breadth, test


def _base(test: str) -> str:
    return test.partition("[")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A function that may become a sample, with everything needed to judge it."""

    sample: Sample
    reference: Reference
    """Its tests are the best of `ranked`."""
    ranked: tuple[str, ...]
    """The tests selected by coverage, best first."""
    others: tuple[str, ...]
    """Further tests that run it, directly or by importing their modules."""
    blank: str
    """The function with an empty body."""
    mutants: Callable[[int], tuple[str, ...]]
    """Returns so many faulty versions, or as many as exist."""
    clocks: frozenset[str] = frozenset()
    """All tests that read a clock."""

    def judged_by(self, tests: tuple[str, ...]) -> Reference:
        """Return the reference with these tests."""
        return replace(self.reference, tests=tests, clocks=tuple(test for test in tests if test in self.clocks))

    def without(self, tests: frozenset[str]) -> Draft | None:
        """Return the draft without some tests; None if no test is left."""
        remaining = [test for test in (*self.ranked, *self.others) if test not in tests]
        if not remaining:
            return None
        most = len(self.ranked)
        reference = self.judged_by(tuple(sorted(remaining[:most])))
        return replace(self, reference=reference, ranked=tuple(remaining[:most]), others=tuple(remaining[most:]))


def choose_by_faults(draft: Draft, trying: Judge) -> tuple[str, ...]:
    """Return the tests that notice most: an empty body first, then other faults; sorted by id."""
    faulty = draft.mutants(MEASURING + CHOOSING)[MEASURING:]
    noticed = [failing_tests(draft, text, trying) for text in (draft.blank, *faulty)]
    others = draft.others
    if noticed[0] and noticed[0] - draft.clocks:
        # Tests that read a clock are needed only if no other test notices the empty body.
        others = tuple(test for test in others if test not in draft.clocks)
    return strongest(draft.ranked, others, [tests for tests in noticed if tests])


def measured(draft: Draft, tests: tuple[str, ...], trying: Judge) -> Mutants:
    """Return counts of the evaluation faults that the selected tests notice, and that any test notices.

    Args:
        draft: the function.
        tests: its selected tests.
        trying: runs the tests.
    """
    failures = [failing_tests(draft, text, trying) for text in draft.mutants(MEASURING)]
    noticed = [failing for failing in failures if failing is not None]
    killed = sum(not failing.isdisjoint(tests) for failing in noticed)
    return Mutants(tried=len(noticed), killed=killed, killed_by_all=sum(map(bool, noticed)))


def in_turns(places: Iterable[tuple[str, _Place]], text: str) -> Iterator[_Place]:
    """Yield places of possible faults in a function; kinds of faults take turns, in an order seeded by its text.

    Args:
        places: the kind of a fault, and its place.
        text: the function.
    """
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
    """Return distinct faulty versions of a function; kinds of faults take turns, in a fixed order.

    Args:
        original: the output of `changed` without a change.
        places: the kind of a fault, and its place.
        text: the function.
        changed: returns the function with a fault at a place.
        most: largest number of versions; a smaller number yields a prefix.
    """
    faulty = dict.fromkeys([original])
    for place in in_turns(places, text):
        if len(faulty) > most:
            break
        faulty[changed(place)] = None
    return tuple(faulty)[1:]


def failing_tests(draft: Draft, text: str, trying: Judge) -> frozenset[str] | None:
    """Return which of a draft's tests fail with `text` as the function; None if unknown."""
    everything = draft.judged_by(tuple(sorted({*draft.ranked, *draft.others})))
    return trying.failing(draft.sample, everything, text)

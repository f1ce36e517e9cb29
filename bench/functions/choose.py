"""The choice of the tests that judge a function, out of those that cover it: few, and together as thorough as all.

They are chosen by the lines that they run and by the faulty versions that they notice, and measured by others.

No measured time decides between tests, since it differs from run to run: what counts is which lines a
test runs. Time only bars a test that is far too slow, by a threshold that ordinary tests stay far from.
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
"""Of the tests that run a function, those that are tried on its faulty versions."""
TWICE = 2
"""How many of the chosen tests are to notice a fault, if that many do."""
SLOW = 4.0
"""Seconds of processor time of one test under coverage from which it judges nothing."""
SLOW_TOGETHER = 20.0
"""Seconds of processor time of a function's chosen tests together, under coverage, from which it gives no sample."""
MEASURING = 2
"""Faulty versions of each function that its tests are measured by, and never chosen by."""
CHOOSING = 6
"""Those that they are chosen by, where there are more tests than may judge."""
_Place = TypeVar("_Place")


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
    """Return the tests that judge a function as far as coverage tells, sorted by id; see `ranked`."""
    return tuple(sorted(ranked(covering, runs)))


def ranked(covering: Mapping[str, frozenset[int]], runs: Mapping[str, TestRun]) -> tuple[str, ...]:
    """Return the tests that coverage says are the best judges of a function, best first; at most `MOST_TESTS`.

    First those that together run every line of the function that any test runs, each adding the most
    lines; then the narrowest, one of each parametrized test before a second of any.

    Args:
        covering: usable test -> lines of the function that it runs.
        runs: what is known of each.
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
    """Return what else may notice a fault of a function, in the order in which it is worth a try.

    First the tests that run it, the widest and the narrowest in turn: the narrow ones are about it, the wide ones
    use it in earnest. Then those whose modules ran it when they were imported.

    Args:
        covering: as `choose` takes it.
        importing: usable tests of modules whose import runs the function.
        runs: what is known of each.
        picked: what `choose` returned.
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

    Each fault counts half as much with every test that was chosen and notices it, so that the few are as different
    as they can be; where `TWICE` tests notice each, the rest of the room is filled in the order of `ranked`.

    Args:
        ranked: the tests that coverage chose, the best judges first.
        others: more tests, in the order in which they are worth a try.
        failing: for each fault the tests that notice it.
    """
    picked: list[str] = []
    times = [0 for _ in failing]
    candidates = [*ranked, *others]

    def gain(test: str) -> float:
        counted = zip(times, failing, strict=True)
        return sum(0.5**count for count, those in counted if count < TWICE and test in those)

    while candidates and len(picked) < MOST_TESTS:
        best = max(candidates, key=gain)  # of equals the first
        if not gain(best):
            break
        candidates.remove(best)
        picked.append(best)
        times = [count + (best in those) for count, those in zip(times, failing, strict=True)]
    fillers = [test for test in ranked if test not in picked]
    return tuple(sorted([*picked, *fillers[: MOST_TESTS - len(picked)]]))


def _in_turns(tests: Sequence[str]) -> list[str]:
    """Return tests in an order in which each comes after one test of every other name that stood before it."""
    turns: Counter[str] = Counter()
    placed: list[tuple[int, int, str]] = []
    for place, test in enumerate(tests):
        placed.append((turns[_base(test)], place, test))
        turns[_base(test)] += 1
    return [test for *_, test in sorted(placed)]


def preference(test: str, run: TestRun, *, wide: bool = False) -> tuple[int, str]:
    """Return the key that orders tests between which lines decide nothing, the better judge first.

    Args:
        test: its id, the last of the key.
        run: what is known of it.
        wide: whether the widest are asked for, not the narrowest.
    """
    return -run.breadth if wide else run.breadth, test


def _base(test: str) -> str:
    """Return the id of a test without its parameters."""
    return test.partition("[")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A function that may become a sample, with all that there is to judge it."""

    sample: Sample
    reference: Reference
    """Its tests are the best of `ranked`."""
    ranked: tuple[str, ...]
    """The tests that coverage chose, the best judges first."""
    others: tuple[str, ...]
    """More tests that run it, or whose modules do when they are imported."""
    blank: str
    """The function with an empty body."""
    mutants: Callable[[int], tuple[str, ...]]
    """Gives that many faulty versions, or as many as there are."""
    clocks: frozenset[str] = frozenset()
    """Those of all its tests that read a clock."""

    def judged_by(self, tests: tuple[str, ...]) -> Reference:
        """Return the reference with these tests."""
        return replace(self.reference, tests=tests, clocks=tuple(test for test in tests if test in self.clocks))

    def without(self, tests: frozenset[str]) -> Draft | None:
        """Return the draft as if some tests were not there; None if no test is left."""
        remaining = [test for test in (*self.ranked, *self.others) if test not in tests]
        if not remaining:
            return None
        most = len(self.ranked)
        reference = self.judged_by(tuple(sorted(remaining[:most])))
        return replace(self, reference=reference, ranked=tuple(remaining[:most]), others=tuple(remaining[most:]))


def choose_by_faults(draft: Draft, trying: Judge) -> tuple[str, ...]:
    """Return the tests that notice most: that an empty body is there, then one fault or another; sorted by id."""
    faulty = draft.mutants(MEASURING + CHOOSING)[MEASURING:]
    noticed = [failing_tests(draft, text, trying) for text in (draft.blank, *faulty)]
    others = draft.others
    if noticed[0] and noticed[0] - draft.clocks:
        # Tests that read a clock are needed only where no other sees that the body is gone.
        others = tuple(test for test in others if test not in draft.clocks)
    return strongest(draft.ranked, others, [tests for tests in noticed if tests])


def measured(draft: Draft, tests: tuple[str, ...], trying: Judge) -> Mutants:
    """Return how many faults that chose nothing are noticed by some tests, and how many by any.

    Args:
        draft: the function.
        tests: those that judge it.
        trying: runs them.
    """
    failures = [failing_tests(draft, text, trying) for text in draft.mutants(MEASURING)]
    noticed = [failing for failing in failures if failing is not None]
    killed = sum(not failing.isdisjoint(tests) for failing in noticed)
    return Mutants(tried=len(noticed), killed=killed, killed_by_all=sum(map(bool, noticed)))


def in_turns(places: Iterable[tuple[str, _Place]], text: str) -> Iterator[_Place]:
    """Yield where a function can be made faulty: kinds of faults take turns, in an order that its text decides.

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
    """Return faulty versions of a function, each once; kinds of faults take turns, in an order that stays.

    Args:
        original: how `changed` writes the function where nothing is changed.
        places: the kind of a fault, and its place.
        text: the function.
        changed: gives the function with a fault at a place.
        most: how many; asking for fewer gives a beginning of more.
    """
    faulty = dict.fromkeys([original])
    for place in in_turns(places, text):
        if len(faulty) > most:
            break
        faulty[changed(place)] = None
    return tuple(faulty)[1:]


def failing_tests(draft: Draft, text: str, trying: Judge) -> frozenset[str] | None:
    """Return which of all tests of a draft do not pass with `text` as the function, None if that is not known."""
    everything = draft.judged_by(tuple(sorted({*draft.ranked, *draft.others})))
    return trying.failing(draft.sample, everything, text)

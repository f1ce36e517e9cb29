"""Which tests notice faults: a function's few are chosen by faulty versions of it, and measured by others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from random import Random
from typing import Protocol, TypeVar

from ctxbench.bench.functions.choose import strongest
from ctxbench.bench.functions.types import Mutants
from ctxbench.bench.types import Reference, Sample

MEASURING = 2
"""Faulty versions of each function that its tests are measured by, and never chosen by."""
CHOOSING = 6
"""Those that they are chosen by, where there are more tests than may judge."""
_Place = TypeVar("_Place")


class Trying(Protocol):
    """The part of `bench.testing.judge.Judge` that is needed."""

    def failing(self, sample: Sample, reference: Reference, text: str) -> frozenset[str] | None:
        """Return which of a reference's tests do not pass with `text` as the function, None if that is not known."""
        ...


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


def choose_by_faults(draft: Draft, trying: Trying) -> tuple[str, ...]:
    """Return the tests that notice most: that an empty body is there, then one fault or another; sorted by id."""
    faulty = draft.mutants(MEASURING + CHOOSING)[MEASURING:]
    noticed = [_failing(draft, text, trying) for text in (draft.blank, *faulty)]
    others = draft.others
    if noticed[0] and noticed[0] - draft.clocks:
        # Tests that read a clock are needed only where no other sees that the body is gone.
        others = tuple(test for test in others if test not in draft.clocks)
    return strongest(draft.ranked, others, [tests for tests in noticed if tests])


def measured(draft: Draft, tests: tuple[str, ...], trying: Trying) -> Mutants:
    """Return how many faults that chose nothing are noticed by some tests, and how many by any.

    Args:
        draft: the function.
        tests: those that judge it.
        trying: runs them.
    """
    failures = [_failing(draft, text, trying) for text in draft.mutants(MEASURING)]
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


def _failing(draft: Draft, text: str, trying: Trying) -> frozenset[str] | None:
    everything = draft.judged_by(tuple(sorted({*draft.ranked, *draft.others})))
    return trying.failing(draft.sample, everything, text)

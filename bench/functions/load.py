"""Certified samples on a busy machine: their references must pass there too, or the tests that fail are left out."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Protocol

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.testing.types import Judgement, Verdict
from ctxbench.bench.types import Reference, Sample

JOBS = 2 * (os.cpu_count() or 1)
"""Jobs that run at once on a busy machine: twice as many as it has cores."""
_TRIES = 2
"""How often a reference may fail for another reason than a test, such as the time of the whole job."""


class Judging(Protocol):
    """The part of `bench.testing.judge.Judge` that is needed."""

    def judge(self, sample: Sample, text: str, *, lenient: bool = True) -> Judgement:
        """Return the verdict on a completion; the first one that there is, unless it is to be lenient."""
        ...


class EarlierLoads(Protocol):
    """What is known of earlier builds."""

    def left_out(self, sample: Sample, reference: Reference) -> tuple[str, ...] | None:
        """Return which tests failed on a busy machine, None if that was not tried."""
        ...

    def add_left_out(self, sample: Sample, reference: Reference, tests: tuple[str, ...]) -> None:
        """Keep it."""
        ...


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came of trying samples on a busy machine."""

    samples: tuple[Sample, ...]
    """Those that keep tests which pass there, in the order given."""
    left_out: frozenset[str]
    """The tests that failed there, of these samples."""


def under_load(
    samples: Sequence[Sample],
    references: MutableMapping[str, Reference],
    judging: Judging,
    earlier: EarlierLoads,
    again: Callable[[Sample], bool],
    *,
    jobs: int,
    report: Callable[[str], None],
) -> Loaded:
    """Judge the references of samples while `jobs` run at once, and leave out the tests that fail there.

    Args:
        samples: those that have the certificate.
        references: sample id -> answer; its tests become those that pass.
        judging: runs the tests, of as many samples at once.
        earlier: of earlier builds.
        again: says whether a sample still has the certificate with the tests that remain.
        jobs: how many run at once.
        report: told which tests are left out, a line each.

    Raises:
        MachineFault: if the machine failed under a test.
    """
    whole = {sample.id: references[sample.id] for sample in samples}
    gone: dict[str, tuple[str, ...]] = {}
    tries = dict.fromkeys(whole, _TRIES)
    waiting = []
    for sample in samples:
        before = earlier.left_out(sample, whole[sample.id])
        if before is None:
            waiting.append(sample)
        else:
            gone[sample.id] = before
            references[sample.id] = without(whole[sample.id], before)
    while waiting:
        failures = _failures(waiting, references, judging, jobs)
        still = []
        for sample in waiting:
            failed = {test for judgement in failures[sample.id] for test in judgement.failed}
            if not failures[sample.id]:
                now = set(references[sample.id].tests)
                gone[sample.id] = tuple(test for test in whole[sample.id].tests if test not in now)
                earlier.add_left_out(sample, whole[sample.id], gone[sample.id])
                continue
            reason = failures[sample.id][0].reason
            references[sample.id] = without(references[sample.id], failed)
            tries[sample.id] -= not failed
            usable = tries[sample.id] and references[sample.id].tests and (not failed or again(sample))
            report(f"{sample.id}: {'tests left out' if usable else 'fails_under_load'}: {reason}")
            if usable:
                still.append(sample)
        waiting = still
    passing = tuple(sample for sample in samples if sample.id in gone)
    return Loaded(passing, frozenset(test for tests in gone.values() for test in tests))


def without(reference: Reference, tests: Sequence[str] | set[str]) -> Reference:
    """Return a reference that some tests do not judge."""
    remaining = tuple(test for test in reference.tests if test not in tests)
    return replace(reference, tests=remaining, clocks=tuple(test for test in reference.clocks if test in remaining))


def _failures(
    samples: Sequence[Sample], references: MutableMapping[str, Reference], judging: Judging, jobs: int
) -> dict[str, list[Judgement]]:
    """Return sample id -> the judgements of its reference, at least one, that were no pass."""

    def judged(sample: Sample) -> tuple[str, Judgement]:
        judgement = judging.judge(sample, references[sample.id].target, lenient=False)
        if judgement.verdict is Verdict.BROKEN:
            raise MachineFault(
                f"the sandbox failed under a test: {judgement.reason}",
                where=sample.id,
                cure="see `ctxbench doctor`, then run the same command again; what was done is kept",
            )
        return sample.id, judgement

    faults: dict[str, list[Judgement]] = defaultdict(list)
    pool = ThreadPoolExecutor(jobs, thread_name_prefix="load")
    try:
        for name, judgement in pool.map(judged, _padded(samples, jobs)):
            if judgement.verdict is not Verdict.PASSED:
                faults[name].append(judgement)
    finally:
        pool.shutdown(cancel_futures=True)
    return faults


def _padded(samples: Sequence[Sample], jobs: int) -> Iterator[Sample]:
    """Yield each sample, and then some again, so that the last of them has as much beside it as the first."""
    return islice(cycle(samples), len(samples) + jobs - 1)

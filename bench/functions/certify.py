"""The certificate of a sample: its reference passes every time, on a busy machine too, and an empty body fails.

A fault of the machine is no property of a sample: it ends the build, which can be run again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from bench.errors import MachineFault
from bench.functions import load
from bench.testing.types import Judgement, Verdict
from bench.types import Reference, Sample

RUNS = 3
"""How often the reference must pass."""
CERTIFIED, FAILS_UNDER_LOAD = "certified", "fails_under_load"


class Judging(Protocol):
    """The part of `bench.testing.judge.Judge` that is needed."""

    def judge(self, sample: Sample, text: str) -> Judgement:
        """Return the verdict on a completion."""
        ...


class Known(load.Known, Protocol):
    """Certificates of earlier builds. What failed is tried again: the fault may have been ours."""

    def has(self, sample: Sample, reference: Reference) -> bool:
        """Say whether a sample was certified before."""
        ...

    def add(self, sample: Sample, reference: Reference) -> None:
        """Keep a certificate; called from many threads."""
        ...


@dataclass(frozen=True, slots=True)
class Certified:
    """What came of certifying."""

    samples: tuple[Sample, ...]
    """In the order given."""
    drops: Counter[str]
    """Reason -> samples that were tried and failed."""
    left_out: frozenset[str] = frozenset()
    """Tests of these samples that failed on a busy machine, and so judge nothing."""


def certify(  # noqa: PLR0913 - each is used once, here
    samples: Sequence[Sample],
    references: MutableMapping[str, Reference],
    blank: Callable[[Sample], str],
    judging: load.Judging,
    known: Known,
    *,
    wanted: int,
    workers: int,
    jobs: int = load.JOBS,
    tick: Callable[[int, int], None],
    report: Callable[[str], None],
) -> Certified:
    """Certify samples in order until enough are; the number of workers changes nothing.

    Args:
        samples: in the order in which to try them.
        references: sample id -> answer; loses the tests that fail on a busy machine.
        blank: gives a sample's function with an empty body.
        judging: runs the tests.
        known: certificates of earlier builds, which are not made again.
        wanted: how many are enough.
        workers: how many to judge at once.
        jobs: how many references to judge at once on a busy machine.
        tick: told how many were certified and tried.
        report: told why a sample is none, a line each; called from many threads.

    Raises:
        MachineFault: if the machine failed under a test.
    """
    found: list[Sample] = []
    drops: Counter[str] = Counter()

    def one(sample: Sample) -> str:
        reference = references[sample.id]
        if known.has(sample, reference):
            return CERTIFIED
        result, detail = certificate(sample, reference.target, blank(sample), judging)
        if result == CERTIFIED:
            known.add(sample, reference)
        else:
            report(f"{sample.id}: {result}: {detail}".rstrip(": "))
        return result

    def again(sample: Sample) -> bool:
        return one(sample) == CERTIFIED

    def passing(results: Iterator[tuple[Sample, str]]) -> Iterator[Sample]:
        for count, (sample, result) in enumerate(results, 1):
            if result == CERTIFIED:
                yield sample
            else:
                drops[result] += 1
            tick(count - drops.total(), count)

    left_out: set[str] = set()
    with closing(_in_order(one, samples, workers)) as results:
        certified = passing(results)
        while fresh := list(islice(certified, wanted - len(found))):
            loaded = load.under_load(fresh, references, judging, known, again, jobs=jobs, report=report)
            drops[FAILS_UNDER_LOAD] += len(fresh) - len(loaded.samples)
            found += loaded.samples
            left_out |= loaded.left_out
    return Certified(tuple(found), +drops, frozenset(left_out))


def _in_order(one: Callable[[Sample], str], samples: Sequence[Sample], workers: int) -> Generator[tuple[Sample, str]]:
    """Yield each sample with its result, in order; no more than `workers` are begun ahead."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="certify")
    waiting: deque[tuple[Sample, Future[str]]] = deque()
    try:
        for sample in samples:
            waiting.append((sample, pool.submit(one, sample)))
            if len(waiting) > workers:
                first, result = waiting.popleft()
                yield first, result.result()
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
    finally:
        pool.shutdown(cancel_futures=True)


def certificate(sample: Sample, reference: str, blank: str, judging: Judging) -> tuple[str, str]:
    """Return `CERTIFIED`, or why a sample is none with the detail.

    ``reference_failed`` and ``reference_timed_out`` (every time), ``reference_has_no_tests``, ``flaky``
    (sometimes), ``blank_passed``.

    Raises:
        MachineFault: if the machine failed under a test.
    """
    judged: list[Judgement] = []
    patience = 1
    while len(judged) < RUNS:
        judged.append(_judged(sample, reference, judging))
        if judged[-1].verdict is Verdict.NO_TESTS:
            return "reference_has_no_tests", judged[-1].reason
        if judged[-1].verdict is Verdict.TIMED_OUT and patience:
            # A busy machine, perhaps: once is no property of the sample.
            patience -= 1
            judged.pop()
    bad = [each for each in judged if each.verdict is not Verdict.PASSED]
    if len(bad) == RUNS:
        timed_out = any(each.verdict is Verdict.TIMED_OUT for each in bad)
        return ("reference_timed_out" if timed_out else "reference_failed"), bad[0].reason
    if bad:
        return "flaky", bad[0].reason
    if _judged(sample, blank, judging).verdict is Verdict.PASSED:
        return "blank_passed", ""
    return CERTIFIED, ""


def _judged(sample: Sample, text: str, judging: Judging) -> Judgement:
    judgement = judging.judge(sample, text)
    if judgement.verdict is Verdict.BROKEN:
        raise MachineFault(
            f"the sandbox failed under a test: {judgement.reason}",
            where=sample.id,
            cure="see `ctxbench doctor`, then run the same command again; what was done is kept",
        )
    return judgement

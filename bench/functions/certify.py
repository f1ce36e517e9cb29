"""Certifies samples: their reference must always pass, even on a busy machine, and an empty body must fail."""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.functions.certificates import Certificate, Certificates, Mutants
from ctxbench.bench.functions.choose import MOST_TESTS, Draft, choose_by_faults, count_mutants, failing_tests
from ctxbench.bench.judging.judge import Judge
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.types import Reference, Sample

RUNS = 3
"""Number of runs in which the reference must pass."""
PATIENCE = 2
"""Number of runs that may time out. Each is replaced by another run."""
ROUNDS = 3
CERTIFIED = "certified"
BLANK_PASSED, FLAKY, REFERENCE_FAILED, TIMED_OUT = "blank_passed", "flaky", "reference_failed", "reference_timed_out"
FAILS_UNDER_LOAD = "fails_under_load"
JOBS = 2 * (os.cpu_count() or 1)
"""Number of concurrent jobs that simulate a busy machine."""
_TRIES = 2
"""A sample is dropped after this many runs that fail without naming a failed test, for example by a timeout."""


@dataclass(frozen=True, slots=True)
class Certified:
    """The certified samples, and how many other samples were dropped for each reason."""

    samples: Mapping[str, Certificate]
    drops: Counter[str]
    left_out: frozenset[str] = frozenset()
    """Tests that failed on a busy machine for a certified sample, which no longer uses them."""

    @property
    def mutants(self) -> Mutants:
        """Counts of faulty versions, summed over all certified samples."""
        return sum((certificate.mutants for certificate in self.samples.values() if certificate.mutants), Mutants())


def certify(  # noqa: PLR0913 - each is used once, here
    drafts: Sequence[Draft],
    references: MutableMapping[str, Reference],
    boxes: Judge,
    earlier: Certificates,
    *,
    most: int,
    workers: int,
    jobs: int = JOBS,
    tick: Callable[[int, int], None],
    report: Callable[[str], None],
) -> Certified:
    """Certify samples in order until `most` are certified. The result does not depend on `workers`.

    Args:
        references: references by sample id, which receive the selected tests.
        boxes: judge that runs the tests. The judge shares `references`.
        earlier: cached certificates.
        jobs: number of references judged at once to simulate a busy machine.
        tick: receives the numbers of certified and tried samples.
        report: receives a line for each failure, from many threads.

    Raises:
        MachineFault: if the machine failed.
    """
    certified: dict[str, Certificate] = {}
    drops: Counter[str] = Counter()

    def passing(results: Iterator[tuple[Draft, Certificate | str]]) -> Iterator[tuple[Draft, Certificate]]:
        for count, (draft, result) in enumerate(results, 1):
            if isinstance(result, Certificate):
                yield draft, result
            else:
                drops[result] += 1
            tick(count - drops.total(), count)

    left_out: set[str] = set()
    batch: dict[str, tuple[Draft, Certificate]] = {}
    attempt = partial(_attempt, references, boxes, earlier, report)
    with closing(_in_order(attempt, drafts, workers, lambda: most - len(certified) - len(batch))) as results:
        fresh = passing(results)
        while len(certified) < most:
            batch.clear()
            for draft, result in islice(fresh, most - len(certified)):
                batch[draft.sample.id] = draft, result
            if not batch:
                break
            samples = [draft.sample for draft, _ in batch.values()]
            again = partial(_again, {name: draft.blank for name, (draft, _) in batch.items()}, references, boxes)
            loaded = under_load(samples, references, boxes, earlier, again, jobs=jobs, report=report)
            drops[FAILS_UNDER_LOAD] += len(batch) - len(loaded.samples)
            left_out |= loaded.left_out
            for sample in loaded.samples:
                draft, certificate = batch[sample.id]
                certified[sample.id] = _narrowed(draft, certificate, references[sample.id], boxes, earlier)
    return Certified(certified, +drops, frozenset(left_out))


def _attempt(
    references: MutableMapping[str, Reference],
    boxes: Judge,
    earlier: Certificates,
    report: Callable[[str], None],
    draft: Draft,
) -> Certificate | str:
    sample, reference = draft.sample, draft.reference
    certificate = earlier.get(sample, reference, draft.others)
    if certificate is not None and certificate.mutants is not None:
        references[sample.id] = draft.judged_by(certificate.tests)
        return certificate
    tests, result, detail = _with_tests(draft, references, boxes)
    if result != CERTIFIED:
        report(f"{sample.id}: {result}: {detail}".rstrip(": "))
        return result
    fresh = _measured(draft, tests, boxes)
    earlier.add(sample, reference, fresh, draft.others)
    return fresh


def _measured(draft: Draft, tests: tuple[str, ...], boxes: Judge) -> Certificate:
    return Certificate(tests, count_mutants(draft, tests, boxes), bool(tests) and draft.clocks.issuperset(tests))


def _again(blanks: Mapping[str, str], references: Mapping[str, Reference], boxes: Judge, sample: Sample) -> bool:
    return certificate(sample, references[sample.id].target, blanks[sample.id], boxes)[0] == CERTIFIED


def _narrowed(
    draft: Draft, certificate: Certificate, reference: Reference, boxes: Judge, earlier: Certificates
) -> Certificate:
    if certificate.tests == reference.tests:
        return certificate
    narrowed = earlier.get(draft.sample, reference)
    if narrowed is None or narrowed.mutants is None:
        narrowed = _measured(draft, reference.tests, boxes)
        earlier.add(draft.sample, reference, narrowed)
    return narrowed


def _with_tests(
    draft: Draft, references: MutableMapping[str, Reference], boxes: Judge
) -> tuple[tuple[str, ...], str, str]:
    sample, remaining, searched = draft.sample, draft, len(draft.ranked) == MOST_TESTS
    tests, result, detail = draft.reference.tests, "", ""
    for _ in range(ROUNDS):
        tests = choose_by_faults(remaining, boxes) if remaining.others and searched else remaining.reference.tests
        references[sample.id] = draft.judged_by(tests)
        result, detail = certificate(sample, draft.reference.target, draft.blank, boxes)
        if result == BLANK_PASSED and remaining.others and not searched:
            searched = True
        elif result in (REFERENCE_FAILED, FLAKY):
            fewer = remaining.without(_unreliable(remaining, tests, detail, references, boxes))
            if fewer is None or fewer == remaining:
                break
            remaining = fewer
        else:
            break
    return tests, result, detail


def _unreliable(
    draft: Draft, tests: tuple[str, ...], detail: str, references: Mapping[str, Reference], boxes: Judge
) -> frozenset[str]:
    sample, target = draft.sample, draft.reference.target
    named = {test for test in tests if f"did not pass: {test}: " in detail}
    again = boxes.failing(sample, references[sample.id], target)
    rest = draft.without(frozenset(tests))
    further = failing_tests(rest, target, boxes) if rest else None
    return frozenset(named).union(again or (), further or ())


def _in_order(
    attempt: Callable[[Draft], Certificate | str], drafts: Sequence[Draft], workers: int, needed: Callable[[], int]
) -> Generator[tuple[Draft, Certificate | str]]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="certify")
    waiting: deque[tuple[Draft, Future[Certificate | str]]] = deque()
    try:
        for draft in drafts:
            while waiting and len(waiting) >= min(workers + 1, needed()):
                first, result = waiting.popleft()
                yield first, result.result()
            waiting.append((draft, pool.submit(attempt, draft)))
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
    finally:
        pool.shutdown(cancel_futures=True)


def certificate(sample: Sample, reference: str, blank: str, judging: Judge) -> tuple[str, str]:
    """Return `CERTIFIED` or the reason why a sample cannot be certified, and details.

    Reasons: ``reference_failed`` (in every run), ``reference_timed_out`` (failed in every run, at least once by a
    timeout), ``flaky`` (failed in some runs), ``reference_has_no_tests``, ``blank_passed`` (`blank` passed).

    Raises:
        MachineFault: if the machine failed.
    """
    judged: list[Judgement] = []
    patience = PATIENCE
    while len(judged) < RUNS:
        judged.append(_unbroken(sample, judging.judge(sample, reference)))
        if judged[-1].verdict is Verdict.NO_TESTS:
            return "reference_has_no_tests", judged[-1].reason
        if judged[-1].verdict is Verdict.TIMED_OUT and patience:
            # The machine may be busy.
            patience -= 1
            judged.pop()
    bad = [judgement for judgement in judged if judgement.verdict is not Verdict.PASSED]
    if len(bad) == RUNS:
        timed_out = any(judgement.verdict is Verdict.TIMED_OUT for judgement in bad)
        return (TIMED_OUT if timed_out else REFERENCE_FAILED), bad[0].reason
    if bad:
        return FLAKY, bad[0].reason
    if _unbroken(sample, judging.judge(sample, blank)).verdict is Verdict.PASSED:
        return BLANK_PASSED, ""
    return CERTIFIED, ""


def _unbroken(sample: Sample, judgement: Judgement) -> Judgement:
    if judgement.verdict is Verdict.BROKEN:
        raise MachineFault(
            f"the sandbox failed during a test: {judgement.reason}",
            where=sample.id,
            cure="run `ctxbench doctor`, then run the same command again; finished work is kept",
        )
    return judgement


@dataclass(frozen=True, slots=True)
class Loaded:
    """Samples whose references pass on a busy machine, and their tests that failed there and were removed."""

    samples: tuple[Sample, ...]
    left_out: frozenset[str]


def under_load(
    samples: Sequence[Sample],
    references: MutableMapping[str, Reference],
    judging: Judge,
    earlier: Certificates,
    again: Callable[[Sample], bool],
    *,
    jobs: int,
    report: Callable[[str], None],
) -> Loaded:
    """Judge references while the machine is busy, and remove failing tests from `references`.

    Args:
        again: certifies a sample's remaining tests. If it returns False, the sample is dropped.
        jobs: number of references judged at the same time.

    Raises:
        MachineFault: if the machine failed.
    """
    whole = {sample.id: references[sample.id] for sample in samples}
    gone: dict[str, tuple[str, ...]] = {}
    tries = dict.fromkeys(whole, _TRIES)
    waiting = []
    for sample in samples:
        before = earlier.busy_failures(sample, whole[sample.id])
        if before is None:
            waiting.append(sample)
        else:
            gone[sample.id] = before
            references[sample.id] = drop_tests(whole[sample.id], before)
    while waiting:
        failures = _failures(waiting, references, judging, jobs)
        still = []
        for sample in waiting:
            failed = {test for judgement in failures[sample.id] for test in judgement.failed}
            if not failures[sample.id]:
                now = set(references[sample.id].tests)
                gone[sample.id] = tuple(test for test in whole[sample.id].tests if test not in now)
                earlier.add_busy_failures(sample, whole[sample.id], gone[sample.id])
                continue
            reason = failures[sample.id][0].reason
            references[sample.id] = drop_tests(references[sample.id], failed)
            tries[sample.id] -= not failed
            usable = tries[sample.id] and references[sample.id].tests and (not failed or again(sample))
            report(f"{sample.id}: {'tests left out' if usable else 'fails_under_load'}: {reason}")
            if usable:
                still.append(sample)
        waiting = still
    passing = tuple(sample for sample in samples if sample.id in gone)
    return Loaded(passing, frozenset(test for tests in gone.values() for test in tests))


def drop_tests(reference: Reference, tests: Sequence[str] | set[str]) -> Reference:
    """Return the reference without the given tests."""
    remaining = tuple(test for test in reference.tests if test not in tests)
    return replace(reference, tests=remaining, clocks=tuple(test for test in reference.clocks if test in remaining))


def _failures(
    samples: Sequence[Sample], references: MutableMapping[str, Reference], judging: Judge, jobs: int
) -> dict[str, list[Judgement]]:
    def judged(sample: Sample) -> tuple[str, Judgement]:
        judgement = judging.judge(sample, references[sample.id].target, lenient=False)
        return sample.id, _unbroken(sample, judgement)

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
    """Yield all samples, then the first samples again, so that the last samples also run under full load."""
    return islice(cycle(samples), len(samples) + jobs - 1)

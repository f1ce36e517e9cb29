"""Checks a set of function samples on this machine: every reference passes, every empty body fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import PUBLISHED_REUSE, Judge
from ctxbench.bench.judging.suites import suite_of
from ctxbench.bench.judging.types import Judgement, Suite, Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind, Sample
from ctxbench.sandbox.types import Sandbox

Report = Callable[[str], None]
REFERENCE, BLANK = "reference", "blank"
BROKEN, VACUOUS = "broken", "vacuous"
"""Marks of samples that no score is to rest on: the reference fails its tests; an empty body passes them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The two verdicts on one sample."""

    id: str
    reference: Judgement
    blank: Judgement
    image: str = ""
    """What the tests were run in."""

    def faults(self) -> Iterator[tuple[str, Judgement]]:
        """Yield what is not as it must be: ``reference`` or ``blank``, and its judgement."""
        if self.reference.verdict is not Verdict.PASSED:
            yield REFERENCE, self.reference
        if self.blank.verdict in (Verdict.PASSED, Verdict.BROKEN):
            yield BLANK, self.blank

    def marks(self) -> Iterator[tuple[str, str]]:
        """Yield the marks of the sample with their reasons; a fault of the machine is none."""
        if self.reference.verdict not in (Verdict.PASSED, Verdict.BROKEN):
            yield BROKEN, f"the reference {self.reference.verdict} {self.reference.reason}".rstrip()
        if self.blank.verdict is Verdict.PASSED:
            yield VACUOUS, "an empty body passes"


@dataclass(frozen=True, slots=True)
class Verification:
    """What verifying a set found."""

    checked: tuple[Checked, ...]
    """In the set's order."""

    @property
    def references_passed(self) -> int:
        """How many references passed."""
        return sum(sample.reference.verdict is Verdict.PASSED for sample in self.checked)

    @property
    def blanks_passed(self) -> int:
        """How many empty bodies passed; none may."""
        return sum(sample.blank.verdict is Verdict.PASSED for sample in self.checked)

    @property
    def machine_faults(self) -> int:
        """How many verdicts are missing because the machine failed."""
        return sum(Verdict.BROKEN in (sample.reference.verdict, sample.blank.verdict) for sample in self.checked)

    @property
    def faults(self) -> tuple[tuple[str, str, Judgement], ...]:
        """Sample id, ``reference`` or ``blank``, and the judgement that is not as it must be."""
        return tuple((sample.id, what, judgement) for sample in self.checked for what, judgement in sample.faults())


def verify(
    home: Home,
    sample_set: SampleSet,
    sandbox: Sandbox,
    *,
    workers: int,
    report: Report,
    tick: Callable[[int], None],
) -> Verification:
    """Judge the reference and an empty body of every sample once, a reference that ran out of time twice.

    Args:
        home: where the repositories are.
        sample_set: function samples.
        sandbox: where tests run.
        workers: how many samples to judge at once.
        report: told what is not as it must be, a line at a time.
        tick: told 1 for every sample that is done.

    Raises:
        InputFault: if the set holds no function samples, or its repositories are not there as it was built.
        MachineFault: if no box can be had.
    """
    functions = [sample for sample in sample_set.samples if sample.kind is Kind.FUNCTION]
    if not functions:
        raise InputFault(
            f"the sample set {sample_set.name!r} holds no functions: there is nothing to run",
            cure="build one with `ctxbench samples build NAME --kind function --repo R`",
        )
    suites = {name: suite_of(home, sample_set, name, sandbox) for name in dict.fromkeys(s.repo for s in functions)}

    def check(sample: Sample) -> Checked:
        return _check(sample, sample_set, suites[sample.repo], judge)

    results: list[Checked] = []
    with Judge(home, sample_set, sandbox, width=workers, reuse=PUBLISHED_REUSE) as judge:
        pool = ThreadPoolExecutor(workers, thread_name_prefix="verify")
        try:
            for checked in pool.map(check, functions):
                for what, judgement in checked.faults():
                    report(f"{checked.id}: {what} {judgement.verdict} {judgement.reason}".rstrip())
                results.append(checked)
                tick(1)
        finally:
            pool.shutdown(cancel_futures=True)
    return Verification(tuple(results))


def _check(sample: Sample, sample_set: SampleSet, suite: Suite, judge: Judge) -> Checked:
    target = sample_set.references[sample.id].target
    reference = judge.judge(sample, target)
    if reference.verdict is Verdict.TIMED_OUT:
        reference = judge.judge(sample, target)  # a busy machine, perhaps
    return Checked(sample.id, reference, judge.judge(sample, suite.blank(sample)), judge.image(sample))

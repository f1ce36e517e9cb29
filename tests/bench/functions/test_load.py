"""Certifying under load: tests that fail on a busy machine do not judge."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.functions.certificates import Certificates
from ctxbench.bench.functions.certify import Certified, certify
from ctxbench.bench.functions.choose import MEASURING, Draft
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.types import Reference, Sample
from tests.helpers.samples import make_sample

JOBS = 4
P, F, T, B = Verdict.PASSED, Verdict.FAILED, Verdict.TIMED_OUT, Verdict.BROKEN
CLOCKS = ("t.py::test_fast", "t.py::test_timed")
TESTS = (*CLOCKS, "t.py::test_value")


class Machine:
    """Judges by the tests' outcomes when it is idle and under load. Jobs that are not lenient are the load."""

    def __init__(self, references: dict[str, Reference], busy: Callable[[str, int], Verdict]) -> None:
        self.references, self.busy = references, busy
        self.lock, self.full = threading.Lock(), threading.Event()
        self.running = self.most = 0
        self.times: Counter[str] = Counter()
        self.idle: Counter[str] = Counter()
        self.measured: Counter[str] = Counter()
        self.weak: set[str] = set()
        """Tests that an empty body passes."""

    def failing(self, sample: Sample, reference: Reference, text: str) -> frozenset[str]:
        self.measured[sample.id] += 1
        return frozenset(reference.tests[:1])

    def judge(self, sample: Sample, text: str, *, lenient: bool = True) -> Judgement:
        tests = self.references[sample.id].tests
        if text == "blank":
            return Judgement(verdict=P if set(tests) <= self.weak else F)
        if lenient:
            self.idle[sample.id] += 1
            return Judgement(verdict=P)
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.times[sample.id] += 1
            if self.running == JOBS:
                self.full.set()
        assert self.full.wait(60), "as many jobs as asked for run at once"
        said = {test: self.busy(test, self.times[sample.id]) for test in tests}
        failed = tuple(test for test in tests if said[test] is F)
        worst = next((each for each in (B, T, F) if each in said.values()), P)
        with self.lock:
            self.running -= 1
        return Judgement(verdict=worst, reason=f"was {worst}", failed=failed if worst is F else ())


def made(count: int) -> tuple[list[Sample], dict[str, Reference]]:
    samples = [make_sample(id=f"demo/{number}", path=f"kit{number}.py") for number in range(count)]
    return samples, {each.id: Reference(id=each.id, target="x", tests=TESTS, clocks=CLOCKS) for each in samples}


def certified(
    machine: Machine, samples: list[Sample], references: dict[str, Reference], folder: Path, *, wanted: int = 9
) -> Certified:
    drafts = [
        Draft(
            sample=sample,
            reference=references[sample.id],
            ranked=TESTS,
            others=(),
            blank="blank",
            mutants=lambda most: ("faulty",) * most,
            clocks=frozenset(CLOCKS),
        )
        for sample in samples
    ]
    return certify(
        drafts,
        references,
        machine,
        Certificates(folder / "certificates.jsonl"),
        most=wanted,
        workers=2,
        jobs=JOBS,
        tick=lambda *_: None,
        report=lambda _: None,
    )


def timed_fails(test: str, _: int) -> Verdict:
    return F if test == "t.py::test_timed" else P


def test_references_are_judged_with_the_requested_number_of_jobs(tmp_path: Path) -> None:
    samples, references = made(3)
    machine = Machine(references, lambda *_: P)
    found = certified(machine, samples, references, tmp_path)
    assert (
        list(found.samples) == [sample.id for sample in samples] and found.left_out == frozenset() and not found.drops
    )
    assert machine.most == JOBS and machine.times.total() == len(samples) + JOBS - 1
    assert all(references[sample.id].tests == TESTS for sample in samples)


def test_tests_that_fail_under_load_are_left_out_and_the_rest_recertified(tmp_path: Path) -> None:
    samples, references = made(2)
    machine = Machine(references, timed_fails)
    found = certified(machine, samples, references, tmp_path)
    assert (
        list(found.samples) == [sample.id for sample in samples]
        and found.left_out == {"t.py::test_timed"}
        and not found.drops
    )
    for sample in samples:
        assert references[sample.id].tests == ("t.py::test_fast", "t.py::test_value")
        assert references[sample.id].clocks == ("t.py::test_fast",)
        assert machine.idle[sample.id] == 6, "three times with all tests, three times with those that are left"
        assert machine.measured[sample.id] == 2 * MEASURING
        assert found.samples[sample.id].tests == references[sample.id].tests


def test_stored_certificates_are_not_computed_again(tmp_path: Path) -> None:
    samples, references = made(2)
    first = certified(Machine(references, timed_fails), samples, references, tmp_path)
    left = dict(references)
    samples, references = made(2)
    idle = Machine(references, lambda *_: pytest.fail("was tried again"))
    assert certified(idle, samples, references, tmp_path) == first
    assert references == left and not idle.idle and not idle.measured


@pytest.mark.parametrize("most", [1, 2, 3])
def test_only_as_many_samples_as_needed_are_tried(tmp_path: Path, most: int) -> None:
    samples, references = made(5)
    machine = Machine(references, lambda *_: P)
    certificates = certified(machine, samples, references, tmp_path, wanted=most)
    assert list(certificates.samples) == sorted(machine.idle) == [sample.id for sample in samples[:most]]


def test_the_certificate_records_if_only_clock_tests_judge(tmp_path: Path) -> None:
    samples, references = made(1)
    machine = Machine(references, lambda test, _: F if test == "t.py::test_value" else P)
    found = certified(machine, samples, references, tmp_path)
    assert found.samples["demo/0"].clocks_only and references["demo/0"].clocks == CLOCKS
    lines = (tmp_path / "certificates.jsonl").read_text().splitlines()
    assert ['"clocks_only":true' in line.replace(" ", "") for line in lines if line] == [False, False, True]


@pytest.mark.parametrize(
    ("busy", "weak"),
    [(lambda *_: F, ()), (lambda *_: T, ()), (timed_fails, ("t.py::test_fast", "t.py::test_value"))],
    ids=["no test passes", "it never ends in time", "what is left passes an empty body"],
)
def test_samples_that_fail_under_load_are_counted_and_the_next_tried(
    tmp_path: Path, busy: Callable[[str, int], Verdict], weak: tuple[str, ...]
) -> None:
    samples, references = made(3)
    machine = Machine(references, busy)
    machine.weak.update(weak)
    found = certified(machine, samples, references, tmp_path, wanted=1)
    assert not found.samples and found.left_out == frozenset()
    assert sum(found.drops.values()) >= 3 and found.drops["fails_under_load"] == 3


def test_one_timeout_under_load_is_tolerated(tmp_path: Path) -> None:
    samples, references = made(1)
    # All jobs of the first round time out: the sample's own and those that only add load.
    machine = Machine(references, lambda _, times: T if times <= JOBS else P)
    assert certified(machine, samples, references, tmp_path).samples.keys() == {"demo/0"}
    assert references["demo/0"].tests == TESTS


def test_a_broken_machine_is_a_machine_fault(tmp_path: Path) -> None:
    samples, references = made(1)
    with pytest.raises(MachineFault, match="run the same command again"):
        certified(Machine(references, lambda *_: B), samples, references, tmp_path)

"""Turns a job's outcome into a verdict, outside the box."""

from __future__ import annotations

import hashlib
import random
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ctxbench.bench.judging.python.reports import Malformed, Phase, RunReport, read_run
from ctxbench.bench.judging.types import TAMPERED, Finding, Judgement, Verdict, concluded, ended, killed
from ctxbench.sandbox.types import Outcome

_FAILED_STATUS = 1
"""pytest's exit status after a failed test. Only this status is valid, because the canaries must fail."""
_NO_TESTS_STATUS = (4, 5)
"""pytest's exit statuses if the tests were not found, or nothing was collected."""


def judge(tests: Sequence[str], canaries: Sequence[Canary], nonce: str, outcome: Outcome) -> Judgement:
    """Judge a run of ``ctxbench_pytest:run_tests``. The canaries must fail, and the result must contain `nonce`."""
    try:
        report = None if outcome.result is None else read_run(outcome.result)
        finding = _verdict(tests, canaries, nonce, outcome, report)
    except Malformed as error:
        finding = ended(outcome) or Finding(Verdict.FAILED, f"{TAMPERED}: {error}")
    return finding.judgement(outcome, outcome.output)


def failing(tests: Sequence[str], outcome: Outcome) -> frozenset[str] | None:
    """Return the tests that detected a fault; None without a usable report.

    If the run was cut short after a test's setup, tests that did not run detected nothing. A test that was interrupted
    after its setup counts as detecting a fault, unless the run reached its total processor limit.
    """
    try:
        report = read_run(outcome.result) if outcome.result is not None else None
    except Malformed:
        return None
    if report is None:
        return None
    by_test = _by_test(report)
    noticing = {place for place in range(len(tests)) if _bad(by_test.get(place, []))}
    if report.end is None and by_test:
        noticing &= by_test.keys()
        if report.signal == signal.SIGXCPU:
            noticing = {place for place in noticing if any(phase.outcome != "passed" for phase in by_test[place])}
    return frozenset(test for place, test in enumerate(tests) if place in noticing)


def _verdict(
    tests: Sequence[str], canaries: Sequence[Canary], nonce: str, outcome: Outcome, report: RunReport | None
) -> Finding:
    early = ended(outcome)
    if early:
        return early
    if report is None:
        return Finding(Verdict.FAILED, f"ended early: no result was written (exit status {outcome.exit_code})")
    by_test = _by_test(report)
    if report.signal == signal.SIGXCPU:
        return Finding(Verdict.TIMED_OUT, "ran out of processor time")
    run = sum(1 for place in by_test if place is not None and 0 <= place < len(tests))
    reason = _lie(report, by_test, tests, canaries, nonce) or _cut_short(report, outcome)
    if reason:
        return Finding(Verdict.FAILED, reason, run)
    if report.broken:
        where, what = report.broken[0]
        return Finding(Verdict.FAILED, f"import or collection broke: {where}: {what}", run)
    if not run and not report.collected and report.end in _NO_TESTS_STATUS:
        return Finding(Verdict.NO_TESTS, "none of the expected tests was found")
    if not report.collections:
        return Finding(Verdict.FAILED, f"import or collection broke: exit status {report.end}", run)
    wrong = _wrong(by_test, tests)
    unproven = _unproven(report, by_test, canaries, outcome)
    return concluded(tests, wrong, unproven, run)


def _by_test(report: RunReport) -> dict[int, list[Phase]]:
    by_place: dict[int, list[Phase]] = {}
    for phase in report.phases:
        by_place.setdefault(phase.test, []).append(phase)
    return by_place


def _lie(
    report: RunReport, by_test: dict[int, list[Phase]], tests: Sequence[str], canaries: Sequence[Canary], nonce: str
) -> str:
    if report.nonce != nonce:
        return f"{TAMPERED}: the result belongs to another job"
    if report.changed:
        return f"{TAMPERED}: the completion wrote to {', '.join(report.changed)}"
    if report.altered:
        return f"{TAMPERED}: the completion changed {', '.join(dict.fromkeys(report.altered))}"
    places = {*range(len(tests)), *range(-len(canaries), 0)}
    if report.collections > 1 or not by_test.keys() <= places or len(set(report.collected)) < len(report.collected):
        return f"{TAMPERED}: the report contains tests that were not requested"
    for phases in by_test.values():
        if not _in_order(phases):
            return f"{TAMPERED}: a test was reported more than once, or in parts"
        if any(phase.outcome == "passed" and (phase.raised or phase.ran is False) for phase in phases):
            return f"{TAMPERED}: a test that failed or was not run was reported as passed"
    for number in range(1, len(canaries) + 1):
        phases = by_test.get(-number, [])
        if any(phase.phase == "call" and phase.outcome == "passed" for phase in phases):
            return f"{TAMPERED}: a test that must fail was reported as passed"
    return ""


def _in_order(phases: Sequence[Phase]) -> bool:
    names = [phase.phase for phase in phases]
    setups, teardowns = names.count("setup"), names.count("teardown")
    if setups != 1 or names[0] != "setup" or teardowns > 1:
        return False
    return not teardowns or names[-1] == "teardown"


def _cut_short(report: RunReport, outcome: Outcome) -> str:
    if report.signal is not None:
        return killed(report.signal, outcome)
    if report.end is None:
        return f"ended early: exit status {report.exit} before all tests were done"
    if report.end != report.exit:
        return f"{TAMPERED}: exit status {report.exit}, but pytest ended with {report.end}"
    return ""


def _wrong(by_test: dict[int, list[Phase]], tests: Sequence[str]) -> Mapping[str, str]:
    bad = {test: _bad(by_test.get(place, [])) for place, test in enumerate(tests)}
    return {test: why for test, why in bad.items() if why}


def _bad(phases: Sequence[Phase]) -> str:
    if not phases:
        return "not run"
    for phase in phases:
        if phase.outcome != "passed":
            return f"{phase.outcome} in {phase.phase}: {phase.message}" if phase.message else phase.outcome
    names = [phase.phase for phase in phases]
    return "" if "call" in names and "teardown" in names else "not finished"


def _unproven(report: RunReport, by_test: dict[int, list[Phase]], canaries: Sequence[Canary], outcome: Outcome) -> str:
    if any(not canary.failed_as_it_must(by_test.get(-number, [])) for number, canary in enumerate(canaries, 1)):
        return f"{TAMPERED}: a test that must fail did not fail as expected"
    if report.exit != _FAILED_STATUS or outcome.exit_code != 0 or report.collections != 1:
        return f"{TAMPERED}: exit status {report.exit} instead of {_FAILED_STATUS}"
    if report.loaded is not True:
        return "the tests did not import the changed file"
    return ""


@dataclass(frozen=True, slots=True)
class Canary:
    """A test that must fail: it asserts that two different numbers are equal."""

    name: str
    unittest: bool
    """Whether the canary becomes a method of a TestCase, provided that a real test is such a method."""
    place: float
    left: int
    right: int

    def argument(self) -> dict[str, Any]:
        """Return the canary as an argument for the runner in the box."""
        return asdict(self)

    def failed_as_it_must(self, phases: Sequence[Phase]) -> bool:
        """Return whether the phases show that the canary ran once and failed because its numbers differ."""
        if [(phase.phase, phase.outcome) for phase in phases] != [
            ("setup", "passed"),
            ("call", "failed"),
            ("teardown", "passed"),
        ]:
            return False
        return phases[1].raised and f"{self.left} == {self.right}" in phases[1].message


def canaries(secret: str, tests: Sequence[str]) -> tuple[Canary, ...]:
    """Draw a job's three canaries: a function and a method at random places, and a function at the end."""
    drawn = random.Random(hashlib.sha256(f"canaries {secret}".encode()).digest())  # noqa: S311 - seeded by a secret
    words = _words(tests)
    drawn_canaries: list[Canary] = []
    for unittest, place in ((False, drawn.random()), (True, drawn.random()), (False, 1.0)):
        first, second = drawn.sample(range(1000, 10_000), 2)
        number = drawn.randrange(2, 100) + 100 * len(drawn_canaries)
        name = "_".join(["test", *drawn.sample(words, min(2, len(words))), str(number)])
        drawn_canaries.append(Canary(name, unittest, place, first, second))
    return tuple(drawn_canaries)


def nonce(secret: str) -> str:
    """Return the nonce that a job's result must contain."""
    return hashlib.sha256(f"nonce {secret}".encode()).hexdigest()


def _words(tests: Sequence[str]) -> list[str]:
    names = " ".join(test.split("[", 1)[0].rsplit("::", 1)[-1] for test in tests)
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", names.replace("_", " "))} - {"test"}
    return sorted(words) or ["value"]

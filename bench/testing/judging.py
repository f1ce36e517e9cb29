"""From an outcome to a verdict: passed only if every expected test did, exactly once, and nothing speaks against it.

Pure. The reasons are a few fixed phrases, with the detail behind a colon.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxbench.bench.testing import events
from ctxbench.bench.testing.canaries import Canary
from ctxbench.bench.testing.events import Phase, RunReport
from ctxbench.bench.testing.types import TAMPERED, Judgement, Verdict
from ctxbench.sandbox.types import Ended, Outcome

_MAX_REASON = 300
_FAILED_STATUS = 1
"""pytest's exit status when a test failed: the only right one, since the canaries do."""
_NO_TESTS_STATUS = (4, 5)
"""Named tests not found; nothing collected."""


class _Finding(NamedTuple):
    """What a run means, without what it cost."""

    verdict: Verdict
    reason: str = ""
    run: int = 0
    failed: tuple[str, ...] = ()


def judge(tests: Sequence[str], canaries: Sequence[Canary], nonce: str, outcome: Outcome) -> Judgement:
    """Return what the outcome of a run of `tests` means.

    Args:
        tests: ids of those that must pass.
        canaries: those that must fail.
        nonce: what the result must carry.
        outcome: of a job that called ``ctxbench_pytest:run_tests`` with these.
    """
    flags: tuple[str, ...] = ()
    try:
        report = None if outcome.result is None else events.read(outcome.result)
        finding = _verdict(tests, canaries, nonce, outcome, report)
        flags = tuple(sorted({*report.flags})) if report else ()
    except events.Malformed as error:
        finding = _Finding(*(ended(outcome) or (Verdict.FAILED, f"{TAMPERED}: {error}")))
    return Judgement(
        verdict=finding.verdict,
        reason=short(finding.reason),
        tests_run=finding.run,
        failed=finding.failed,
        output=outcome.output,
        seconds=outcome.seconds,
        peak_bytes=outcome.peak_bytes,
        flags=flags,
    )


def ended(outcome: Outcome) -> tuple[Verdict, str] | None:
    """Return the verdict on a job that did not come to its end by itself, None on one that did."""
    if outcome.ended is Ended.TIMED_OUT:
        return Verdict.TIMED_OUT, "ran out of time"
    if outcome.ended is Ended.WRECKED:
        return Verdict.FAILED, "wrecked its box, three times"
    if outcome.ended is Ended.KILLED:
        return Verdict.FAILED, _killed(outcome.signal, outcome)
    return None


def passed(report: RunReport, tests: Sequence[str]) -> frozenset[int]:
    """Return the positions of the tests that passed."""
    return frozenset(
        place for place, phases in _by_test(report).items() if place in range(len(tests)) and not _bad(phases)
    )


def failing(tests: Sequence[str], outcome: Outcome) -> frozenset[str] | None:
    """Return which tests noticed a fault, None if that is not known.

    Where the run was cut short, what was not run did not notice: only the test that it ended in did, unless it was
    the time of all tests together that ended it.

    Args:
        tests: ids of those that were run.
        outcome: as `judge` takes it.
    """
    try:
        report = events.read(outcome.result) if outcome.result is not None else None
    except events.Malformed:
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
) -> _Finding:
    early = ended(outcome)
    if early:
        return _Finding(*early)
    if report is None:
        return _Finding(Verdict.FAILED, f"ended early: no result came (exit status {outcome.exit_code})")
    by_test = _by_test(report)
    if report.signal == signal.SIGXCPU:
        return _Finding(Verdict.TIMED_OUT, "ran out of processor time")
    run = sum(1 for place in by_test if place is not None and 0 <= place < len(tests))
    reason = _lie(report, by_test, tests, canaries, nonce) or _cut_short(report, outcome)
    if reason:
        return _Finding(Verdict.FAILED, reason, run)
    if report.broken:
        where, what = report.broken[0]
        return _Finding(Verdict.FAILED, f"import or collection broke: {where}: {what}", run)
    if not run and not report.collected and report.end in _NO_TESTS_STATUS:
        return _Finding(Verdict.NO_TESTS, "none of the expected tests was found")
    if not report.collections:
        return _Finding(Verdict.FAILED, f"import or collection broke: exit status {report.end}", run)
    wrong = _wrong(by_test, tests)
    unproven = _unproven(report, by_test, canaries, outcome)
    if wrong:
        first, why = next(iter(wrong.items()))
        reason = f"{len(wrong)} of {len(tests)} tests did not pass: {first}: {why}"
        return _Finding(Verdict.FAILED, reason, run, () if unproven else tuple(wrong))
    return _Finding(Verdict.FAILED, unproven, run) if unproven else _Finding(Verdict.PASSED, "", run)


def _by_test(report: RunReport) -> dict[int, list[Phase]]:
    by_place: dict[int, list[Phase]] = {}
    for phase in report.phases:
        by_place.setdefault(phase.test, []).append(phase)
    return by_place


def _lie(
    report: RunReport, by_test: dict[int, list[Phase]], tests: Sequence[str], canaries: Sequence[Canary], nonce: str
) -> str:
    """Return what cannot be said without lying, or nothing."""
    if report.nonce != nonce:
        return f"{TAMPERED}: the result is not this job's"
    if report.changed:
        return f"{TAMPERED}: it wrote to {', '.join(report.changed)}"
    if report.altered:
        return f"{TAMPERED}: it changed {', '.join(dict.fromkeys(report.altered))}"
    places = {*range(len(tests)), *range(-len(canaries), 0)}
    if report.collections > 1 or not by_test.keys() <= places or len(set(report.collected)) < len(report.collected):
        return f"{TAMPERED}: tests that were not asked for"
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
    """Say whether the phases are setup, calls (one for each subtest too), teardown, as far as they got."""
    names = [phase.phase for phase in phases]
    setups, teardowns = names.count("setup"), names.count("teardown")
    if setups != 1 or names[0] != "setup" or teardowns > 1:
        return False
    return not teardowns or names[-1] == "teardown"


def _cut_short(report: RunReport, outcome: Outcome) -> str:
    if report.signal is not None:
        return _killed(report.signal, outcome)
    if report.end is None:
        return f"ended early: exit status {report.exit} before all tests were done"
    if report.end != report.exit:
        return f"{TAMPERED}: exit status {report.exit} where the tests ended with {report.end}"
    return ""


def _wrong(by_test: dict[int, list[Phase]], tests: Sequence[str]) -> Mapping[str, str]:
    """Return the expected tests that did not pass, in their order, each with the reason."""
    bad = {test: _bad(by_test.get(place, [])) for place, test in enumerate(tests)}
    return {test: why for test, why in bad.items() if why}


def _bad(phases: Sequence[Phase]) -> str:
    if not phases:
        return "not run"
    for phase in phases:
        if phase.outcome != "passed":
            return f"{phase.outcome} in {phase.phase}: {phase.message}" if phase.message else phase.outcome
    names = [phase.phase for phase in phases]
    return "" if "call" in names and "teardown" in names else "not run to its end"


def _unproven(report: RunReport, by_test: dict[int, list[Phase]], canaries: Sequence[Canary], outcome: Outcome) -> str:
    """Return what is missing for a pass although every test was reported as passed, or nothing."""
    if any(not canary.failed_as_it_must(by_test.get(-number, [])) for number, canary in enumerate(canaries, 1)):
        return f"{TAMPERED}: a test that must fail did not fail as it must"
    if report.exit != _FAILED_STATUS or outcome.exit_code != 0 or report.collections != 1:
        return f"{TAMPERED}: exit status {report.exit} where it must be {_FAILED_STATUS}"
    if report.loaded is not True:
        return "the tests did not import the changed file"
    return ""


def _killed(number: int | None, outcome: Outcome) -> str:
    return "out of memory" if outcome.out_of_memory else f"killed by signal {number}"


def short(text: str) -> str:
    """Return a reason on one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_REASON else line[: _MAX_REASON - 1] + "…"

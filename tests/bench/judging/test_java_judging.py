from typing import Any

import pytest

from ctxbench.bench.judging.java import failing, judge
from ctxbench.bench.judging.types import TAMPERED, Verdict
from ctxbench.sandbox.types import Ended, Outcome

TESTS = ("a.FooTest#one", "a.FooTest#two(int)[*]")
SECRET = "5ec4e7"
GOOD: dict[str, Any] = {
    "compiled": True,
    "messages": "",
    "exit": 1,
    "canary": ["failed", f"org.opentest4j.AssertionFailedError: {SECRET}", 0.1],
    "tests": {TESTS[0]: ["passed", ""], TESTS[1]: ["passed", ""]},
}


def verdict(result: Any, ended: Ended = Ended.EXITED, **more: Any) -> tuple[Verdict, str]:
    code = 0 if ended is Ended.EXITED else None
    found = judge(TESTS, Outcome(**{"ended": ended, "exit_code": code, "result": result} | more), SECRET)
    return found.verdict, found.reason


def test_passed_tests_and_a_failed_canary_are_a_pass() -> None:
    found = judge(TESTS, Outcome(ended=Ended.EXITED, exit_code=0, result=GOOD, seconds=2.0, peak_bytes=7), SECRET)
    assert (found.verdict, found.reason, found.tests_run) == (Verdict.PASSED, "", 2)
    assert (found.seconds, found.peak_bytes) == (2.0, 7)


@pytest.mark.parametrize("state", [["failed", "x: 1"], ["skipped", "later"], None])
def test_a_test_that_did_not_pass_fails_the_completion(state: list[str] | None) -> None:
    tests = {TESTS[0]: ["passed", ""]} | ({TESTS[1]: state} if state else {})
    got, reason = verdict(GOOD | {"tests": tests})
    assert got is Verdict.FAILED
    assert reason.startswith(f"1 of 2 tests did not pass: {TESTS[1]}")


def failed(**more: Any) -> tuple[str, ...]:
    """Return the failed tests that a judgement names. By default only the second test failed."""
    tests = {TESTS[0]: ["passed", ""], TESTS[1]: ["failed", "org.opentest4j.AssertionFailedError: too slow"]}
    code = more.pop("exit_code", 0)
    return judge(
        TESTS, Outcome(ended=Ended.EXITED, exit_code=code, result=GOOD | {"tests": tests} | more), SECRET
    ).failed


def test_failed_tests_are_named_if_nothing_else_is_wrong() -> None:
    assert failed() == (TESTS[1],)
    assert failed(tests={TESTS[0]: ["skipped", "busy"]}) == TESTS
    assert judge(TESTS, Outcome(ended=Ended.EXITED, exit_code=0, result=GOOD), SECRET).failed == ()


@pytest.mark.parametrize(
    "change", [{"exit": 0}, {"exit": -9}, {"exit_code": 3}, {"canary": None}, {"foreign": "a/X"}, {"tests": {}}]
)
def test_no_failed_test_is_named_if_something_else_is_wrong(change: dict[str, Any]) -> None:
    assert failed(**change) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"canary": ["passed", ""]},
        {"canary": None},
        {"canary": ["failed", "java.lang.IllegalStateException: no"]},
        {"canary": ["failed", f"org.opentest4j.AssertionFailedError: open {SECRET}"]},
        {"exit": 0},
        {"foreign": "a/FooTest"},
        {"tests": [["a"]]},
    ],
)
def test_signs_of_tampering_prevent_a_pass(change: dict[str, Any]) -> None:
    got, reason = verdict(GOOD | change)
    assert (got, reason.partition(":")[0]) == (Verdict.FAILED, TAMPERED)


def test_a_good_result_of_a_failed_job_is_tampering() -> None:
    got, reason = verdict(GOOD, exit_code=3)
    assert (got, reason.partition(":")[0]) == (Verdict.FAILED, TAMPERED)


def test_code_that_does_not_compile_fails_with_its_error() -> None:
    said = "src/A.java:3: error: ';' expected\n  int x\n"
    report = {"compiled": False, "messages": said, "exit": 1}
    assert verdict(report) == (Verdict.FAILED, "does not compile: ';' expected")
    unplaced = {**report, "messages": "error: cannot access X\n1 error\n"}
    assert verdict(unplaced) == (Verdict.FAILED, "does not compile: error: cannot access X")


@pytest.mark.parametrize(
    ("status", "said", "reason"),
    [
        (-9, "", "killed by signal 9"),
        (-9, "src/A.java:3: error: ';' expected", "killed by signal 9"),
        (3, "\n\nThe system is out of resources.\n", "javac printed: The system is out of resources. (exit status 3)"),
        (1, "There is not enough memory", "javac printed: There is not enough memory (exit status 1)"),
    ],
)
def test_a_compiler_that_crashed_is_an_early_end(status: int, said: str, reason: str) -> None:
    report = {"compiled": False, "messages": said, "exit": status, "overtime": False}
    assert verdict(report) == (Verdict.FAILED, f"ended early: {reason}")
    if status < 0:
        assert verdict(report, out_of_memory=True) == (Verdict.FAILED, "ended early: out of memory")


def test_a_compiler_without_memory_is_a_broken_machine() -> None:
    said = "Error occurred during initialization of VM\nCould not reserve enough space for object heap\n"
    assert verdict({"compiled": False, "messages": said, "exit": 1})[0] is Verdict.BROKEN
    quoted = f"src/A.java:3: error: ';' expected\n{said}"
    assert verdict({"compiled": False, "messages": quoted, "exit": 1})[0] is Verdict.FAILED
    assert verdict(GOOD | {"messages": said, "exit": 1, "canary": None, "tests": {}})[0] is Verdict.FAILED


def test_tests_that_did_not_pass_detect_the_fault() -> None:
    tests = {TESTS[0]: ["passed", ""], TESTS[1]: ["failed", "x: 1"]}
    for result, noticed in [
        (GOOD, set()),
        (GOOD | {"tests": tests}, {TESTS[1]}),
        (GOOD | {"tests": {TESTS[0]: ["skipped", ""]}}, set(TESTS)),
    ]:
        assert failing(TESTS, Outcome(ended=Ended.EXITED, exit_code=0, result=result)) == noticed


@pytest.mark.parametrize(
    "result",
    [
        {"compiled": False, "messages": "src/A.java:3: error: ';' expected", "overtime": False},
        {"compiled": False, "messages": "", "overtime": True},
        {"unusable": "javac is not there"},
        GOOD | {"tests": {}, "overtime": True},
        None,
    ],
)
def test_detecting_tests_are_unknown_if_no_test_ran(result: Any) -> None:
    assert failing(TESTS, Outcome(ended=Ended.EXITED, exit_code=0, result=result)) is None


def test_exceeded_time_limits_are_timeouts() -> None:
    assert verdict(None, Ended.TIMED_OUT)[0] is Verdict.TIMED_OUT
    assert verdict(GOOD | {"overtime": True})[0] is Verdict.TIMED_OUT


def test_a_run_without_a_report_ended_early() -> None:
    for result in (None, "text", {"compiled": True, "exit": 0, "tests": {}, "canary": None, "messages": ""}):
        got, reason = verdict(result)
        assert (got, reason.partition(":")[0]) == (Verdict.FAILED, "ended early")
    assert verdict(None, Ended.KILLED, signal=9, out_of_memory=True) == (Verdict.FAILED, "out of memory")
    gone = {"compiled": True, "exit": -9, "tests": {}, "canary": None, "messages": ""}
    assert verdict(gone, out_of_memory=True) == (Verdict.FAILED, "ended early: out of memory")


def test_a_result_without_tests_has_the_verdict_no_tests() -> None:
    assert verdict(GOOD | {"tests": {}})[0] is Verdict.NO_TESTS


def test_a_box_without_java_is_a_broken_machine() -> None:
    assert verdict({"unusable": "no javac"}) == (Verdict.BROKEN, "no javac")

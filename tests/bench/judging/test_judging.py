import json
import signal
from typing import Any

import pytest

from ctxbench.bench.judging.python.judging import canaries, failing, judge, nonce
from ctxbench.bench.judging.types import TAMPERED, Judgement, Verdict
from ctxbench.sandbox.types import Ended, Outcome
from tests.bench.judging import told
from tests.bench.judging.told import CANARIES, NONCE, TESTS, bent, events, outcome, phases, result


def judged(said: object, **changes: Any) -> Judgement:
    return judge(TESTS, CANARIES, NONCE, outcome(said, **changes))


def test_passed_tests_and_failed_canaries_are_a_pass() -> None:
    found = judged(result(), output="x")
    wanted = Judgement(verdict=Verdict.PASSED, tests_run=3, output="x", seconds=0.5, peak_bytes=7)
    assert found == wanted


def test_a_subtest_counts_as_another_call() -> None:
    said = bent(lambda all_: all_.insert(3, phases(0)[1]))
    assert judged(result(said)).verdict is Verdict.PASSED


def test_a_test_without_run_information_may_pass() -> None:
    said = bent(lambda all_: all_.__setitem__(2, phases(0, ran=None)[1]))
    assert judged(result(said)).verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        ({"ended": Ended.TIMED_OUT, "exit_code": None}, Verdict.TIMED_OUT, "ran out of time"),
        ({"ended": Ended.WRECKED, "exit_code": None}, Verdict.FAILED, "broke its box three times"),
        ({"ended": Ended.KILLED, "exit_code": None, "signal": 9}, Verdict.FAILED, "killed by signal 9"),
        ({"ended": Ended.KILLED, "signal": 9, "out_of_memory": True}, Verdict.FAILED, "out of memory"),
    ],
)
def test_a_job_that_was_stopped_has_its_reason(changes: dict[str, Any], verdict: Verdict, reason: str) -> None:
    found = judged(result(), **changes)
    assert (found.verdict, found.reason, found.tests_run) == (verdict, reason, 0)


def test_a_missing_result_is_an_early_end() -> None:
    assert judged(None, exit_code=3).reason == "ended early: no result was written (exit status 3)"


def failed(said: object, **changes: Any) -> str:
    found = judged(said, **changes)
    assert found.verdict is Verdict.FAILED
    return found.reason


def test_the_first_failing_test_is_named_with_its_message() -> None:
    said = bent(lambda all_: all_.__setitem__(slice(4, 7), phases(1, "failed", "ValueError: 3\n is odd")))
    reason = "1 of 3 tests did not pass: t.py::test_b[1]: failed in call: ValueError: 3 is odd"
    assert failed(result(said)) == reason


@pytest.mark.parametrize("outcome_", ["skipped", "xfail", "failed"])
def test_only_passed_tests_count(outcome_: str) -> None:
    said = bent(lambda all_: all_.__setitem__(slice(1, 4), phases(0, outcome_)))
    assert failed(result(said)).startswith("1 of 3 tests did not pass: t.py::test_a: ")


def test_a_broken_teardown_is_a_failure() -> None:
    said = bent(lambda all_: all_.__setitem__(3, ["phase", 0, "teardown", "failed", True, None, "OSError: x"]))
    assert failed(result(said)).endswith("t.py::test_a: failed in teardown: OSError: x")


def test_a_broken_setup_is_a_failure() -> None:
    said = bent(lambda all_: all_.__setitem__(slice(1, 3), [["phase", 0, "setup", "failed", True, None, "OSError: x"]]))
    assert failed(result(said)).endswith("t.py::test_a: failed in setup: OSError: x")


def test_a_test_that_was_not_run_is_named() -> None:
    said = bent(lambda all_: all_.__delitem__(slice(1, 4)))
    assert failed(result(said)) == "1 of 3 tests did not pass: t.py::test_a: not run"


@pytest.mark.parametrize("gone", [slice(2, 4), slice(3, 4)])
def test_a_test_without_its_last_phases_does_not_pass(gone: slice) -> None:
    said = bent(lambda all_: all_.__delitem__(gone))
    assert failed(result(said)).endswith("t.py::test_a: not finished")


def test_broken_imports_are_the_completions_failure() -> None:
    said = [["broken", "t.py", "SyntaxError: bad"], ["collected", []], ["loaded", False], ["end", 2]]
    reason = "import or collection broke: t.py: SyntaxError: bad"
    assert failed(result(said, exit=2)) == reason
    assert failed(result([["loaded", False], ["end", 3]], exit=3)) == "import or collection broke: exit status 3"


@pytest.mark.parametrize("status", [4, 5])
def test_tests_that_were_not_found_have_the_verdict_no_tests(status: int) -> None:
    said = [["collected", []], ["loaded", False], ["end", status]]
    found = judged(result(said, exit=status))
    assert (found.verdict, found.reason) == (Verdict.NO_TESTS, "none of the expected tests was found")


def test_an_early_end_has_its_reason() -> None:
    said = events()[:5]
    assert failed(result(said, exit=0)) == "ended early: exit status 0 before all tests were done"
    assert failed(result(said, exit=None, signal=11)) == "killed by signal 11"
    assert failed(result(said, exit=None, signal=9), out_of_memory=True) == "out of memory"
    late = judged(result(said, exit=None, signal=24))
    assert (late.verdict, late.reason) == (Verdict.TIMED_OUT, "ran out of processor time")


def test_an_incomplete_line_after_a_kill_is_not_tampering() -> None:
    half = result(events()[:3], exit=None, signal=9)
    assert failed({**half, "events": half["events"][:-9]}) == "killed by signal 9"


def swap(place: int, **changes: Any) -> list[told.Event]:
    names = ("kind", "test", "phase", "outcome", "raised", "ran", "message")

    def change(said: list[told.Event]) -> None:
        for name, value in changes.items():
            said[place][names.index(name)] = value

    return bent(change)


CALL = 2
CANARY = 1 + 3 * len(TESTS)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (result(nonce="0" * 64), "the result belongs to another job"),
        (result(changed=["t.py"]), "the completion wrote to t.py"),
        (result(bent(lambda all_: all_.insert(1, ["altered", ["pytest.raises"]]))), "completion changed pytest.raises"),
        (result(swap(CALL, raised=True)), "a test that failed or was not run was reported as passed"),
        (result(swap(CALL, ran=False)), "a test that failed or was not run was reported as passed"),
        (result(swap(CANARY + 1, outcome="passed", raised=False)), "a test that must fail was reported as passed"),
        (result(swap(CANARY + 1, message="assert 1 == 2")), "a test that must fail did not fail as expected"),
        (result(swap(CANARY + 1, outcome="skipped")), "a test that must fail did not fail as expected"),
        (result(swap(CANARY, outcome="failed")), "a test that must fail did not fail as expected"),
        (result(bent(lambda all_: all_.__delitem__(slice(CANARY, CANARY + 3)))), "did not fail as expected"),
        (result(bent(lambda all_: all_.extend(phases(0)))), "an event follows the end"),
        (result(bent(lambda all_: all_.__setitem__(slice(1, 1), phases(0)))), "a test was reported more than once"),
        (result(bent(lambda all_: all_.insert(1, phases(0)[2]))), "a test was reported more than once"),
        (result(bent(lambda all_: all_.__delitem__(1))), "a test was reported more than once, or in parts"),
        (result(bent(lambda all_: all_.__setitem__(slice(1, 1), phases(7)))), "tests that were not requested"),
        (result(bent(lambda all_: all_.__setitem__(slice(1, 1), phases(-9)))), "tests that were not requested"),
        (result(bent(lambda all_: all_.insert(0, ["collected", [0]]))), "tests that were not requested"),
        (result(bent(lambda all_: all_.__setitem__(0, ["collected", [0, 0]]))), "tests that were not requested"),
        (result(exit=0), "exit status 0, but pytest ended with 1"),
        (result(bent(lambda all_: all_.__setitem__(-1, ["end", 0])), exit=0), "exit status 0 instead of 1"),
        (result(bent(lambda all_: all_.__delitem__(0))), ""),
    ],
)
def test_an_impossible_result_is_tampering(said: object, reason: str) -> None:
    found = failed(said)
    assert reason in found
    if reason:
        assert found.startswith(TAMPERED)


def test_a_failed_exit_status_of_the_caller_is_tampering() -> None:
    assert failed(result(), exit_code=1).startswith(TAMPERED)


def test_tests_that_do_not_import_the_changed_file_fail() -> None:
    said = bent(lambda all_: all_.__setitem__(-2, ["loaded", False]))
    assert failed(result(said)) == "the tests did not import the changed file"
    assert failed(result(bent(lambda all_: all_.__delitem__(-2)))) == "the tests did not import the changed file"


@pytest.mark.parametrize(
    "said",
    [
        [],
        "PASSED",
        {"passed": True},
        {**result(), "more": 1},
        result(exit="1"),
        result(exit=True),
        result(nonce=5),
        result(changed="x"),
        result(changed=[1]),
        {**result(), "events": [["end", 1]]},
        {**result(), "events": result()["events"] + "x"},
        {**result(), "events": "not JSON\n" + result()["events"]},
        {**result(), "events": "[" * 100_000 + "\n" + result()["events"]},
        result([["surprise", 1]]),
        result([[]]),
        result([["end"]]),
        result([["end", 1, 2]]),
        result([["end", "1"]]),
        result([["phase", 0, "setup", "passed", False, None]]),
        result([["phase", 0.0, "setup", "passed", False, None, ""]]),
        result([["phase", None, "setup", "passed", False, None, ""]]),
        result([["phase", 0, "setup", "PASSED", False, None, ""]]),
        result([["phase", 0, "later", "passed", False, None, ""]]),
        result([["phase", 0, [], "passed", False, None, ""]]),
        result([["phase", 0, "setup", {}, False, None, ""]]),
        result([["phase", 0, "setup", "passed", 0, None, ""]]),
        result([["phase", 0, "setup", "passed", False, 1, ""]]),
        result([["phase", 0, "setup", "passed", False, None, None]]),
        result([["collected", 5]]),
        result([["collected", [True]]]),
        result([["altered", "x"]]),
        result([["loaded", 1]]),
    ],
)
def test_a_malformed_result_is_tampering(said: object) -> None:
    assert failed(said).startswith(TAMPERED)


def test_reasons_are_one_short_line() -> None:
    said = bent(lambda all_: all_.__setitem__(slice(1, 4), phases(0, "failed", "x\n" * 900)))
    assert len(failed(result(said))) == 300 and "\n" not in failed(result(said))


def test_the_outcome_survives_json() -> None:
    again = json.loads(json.dumps(result()))
    assert judge(TESTS, CANARIES, NONCE, Outcome(ended=Ended.EXITED, exit_code=0, result=again)).verdict == "PASSED"


def test_the_total_time_limit_of_all_tests_does_not_detect_a_fault() -> None:
    said = [["collected", [0, 1, 2]], *phases(0, "failed"), *phases(1)[:2]]
    for number, noticing in ((signal.SIGKILL, {TESTS[0], TESTS[1]}), (signal.SIGXCPU, {TESTS[0]})):
        assert failing(TESTS, outcome(result(said, exit=None, signal=int(number)))) == noticing


NAMED = ("tests/test_x.py::test_merge_with[a-b]", "tests/test_x.py::TestY::test_mergeTwo")


def test_canaries_are_equal_only_for_equal_secrets() -> None:
    assert canaries("a", NAMED) == canaries("a", NAMED) != canaries("b", NAMED)
    assert nonce("a") == nonce("a") != nonce("b")
    assert "a" * 8 not in nonce("a" * 8)


def test_one_canary_is_last_and_one_is_a_method() -> None:
    for secret in "abcdefgh":
        drawn = canaries(secret, NAMED)
        assert [each.unittest for each in drawn] == [False, True, False]
        assert drawn[-1].place == 1.0 and all(0 <= each.place <= 1 for each in drawn)
        assert all(each.left != each.right for each in drawn)
        assert len({each.name for each in drawn}) == 3


def test_canary_names_use_the_tests_own_words() -> None:
    words = {"test", "merge", "with", "mergetwo"}
    for secret in "abcdefgh":
        for each in canaries(secret, NAMED):
            *rest, number = each.name.split("_")
            assert set(rest) <= words and number.isdigit() and each.name.isidentifier()


def test_tests_without_words_have_canaries_too() -> None:
    assert canaries("a", ["x.py::test_1"])[0].name.startswith("test_value_")

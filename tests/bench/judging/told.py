"""Results in the guest runner's format, which tests can modify."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from ctxbench.bench.judging.python.judging import Canary, canaries, nonce
from ctxbench.sandbox.types import Ended, Outcome

TESTS = ("t.py::test_a", "t.py::test_b[1]", "t.py::T::test_c")
SECRET = "s3cret"
CANARIES = canaries(SECRET, TESTS)
NONCE = nonce(SECRET)
Event = list[Any]


def phases(test: int, outcome: str = "passed", message: str = "", *, ran: bool | None = True) -> list[Event]:
    """Return the events of one test whose call had the given outcome."""
    return [
        ["phase", test, "setup", "passed", False, None, ""],
        ["phase", test, "call", outcome, outcome != "passed", ran, message],
        ["phase", test, "teardown", "passed", False, None, ""],
    ]


def canary(number: int, canary: Canary) -> list[Event]:
    """Return the events of a canary that failed as expected."""
    return phases(-number, "failed", f"AssertionError: assert {canary.left} == {canary.right}")


def events(tests: Sequence[str] = TESTS, drawn: Sequence[Canary] = CANARIES) -> list[Event]:
    """Return the events of a run without faults."""
    found: list[Event] = [["collected", list(range(len(tests)))]]
    for test in range(len(tests)):
        found += phases(test)
    for number, each in enumerate(drawn, 1):
        found += canary(number, each)
    return [*found, ["loaded", True], ["end", 1]]


def result(said: Sequence[Event] | None = None, **changes: Any) -> dict[str, Any]:
    lines = "".join(json.dumps(event) + "\n" for event in (events() if said is None else said))
    return {"nonce": NONCE, "exit": 1, "signal": None, "events": lines, "changed": [], **changes}


def outcome(said: object, **changes: Any) -> Outcome:
    return Outcome(
        **{"ended": Ended.EXITED, "exit_code": 0, "result": said, "seconds": 0.5, "peak_bytes": 7, **changes}
    )


def bent(change: Callable[[list[Event]], object]) -> list[Event]:
    """Return the events of a run without faults, after a change in place."""
    said = events()
    change(said)
    return said

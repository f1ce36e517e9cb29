"""Which tests judge a task: few that its reference passes, and that an empty body does not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ctxbench.bench.codereval.accounts import KEPT, NO_COVERING_TEST, TOO_SLOW
from ctxbench.bench.functions.certify import CERTIFIED
from ctxbench.bench.functions.choose import SLOW_TOGETHER, TestRun, choose, steady, usable

ROUNDS = 8
"""How many choices of tests are tried for one task."""
_REFERENCE = ("reference_failed", "flaky")


@dataclass(frozen=True, slots=True)
class Chosen:
    """What came of choosing tests."""

    outcome: str
    """`KEPT`, or why no choice judges the task."""
    detail: str = ""
    tests: tuple[str, ...] = ()
    covering: int = 0
    """How many usable tests there were to choose from."""


def chosen(
    covering: Mapping[str, frozenset[int]],
    runs: Mapping[str, TestRun],
    certificate: Callable[[tuple[str, ...]], tuple[str, str]],
) -> Chosen:
    """Return the first choice of tests that earns the certificate.

    A test that the reference does not pass by itself (it leans on others, or on chance) is left out and the rest is
    chosen from again; tests that an empty body passes make room for those not tried yet.

    Args:
        covering: test -> lines of the function that it runs, whatever became of the test.
        runs: what is known of each test.
        certificate: says ``certified``, or why not with the detail, see `bench.functions.certify.certificate`.
    """
    left = {test: lines for test, lines in covering.items() if usable(runs[test])}
    count = len(left)
    if not left:
        unusable = f"{len(covering)} tests run it, but none of them passes quickly" if covering else ""
        return Chosen(NO_COVERING_TEST, unusable)
    result, detail = NO_COVERING_TEST, ""
    for _ in range(ROUNDS):
        if not left:
            break
        tests = choose(steady(left, runs), runs)
        gone = tests
        if sum(runs[test].seconds for test in tests) > SLOW_TOGETHER:
            result, detail = TOO_SLOW, f"{len(tests)} tests take more than {SLOW_TOGETHER:.0f} s"
        else:
            result, detail = certificate(tests)
            if result == CERTIFIED:
                return Chosen(KEPT, "", tests, count)
            if result in _REFERENCE:
                gone = tuple(test for test in tests if f"did not pass: {test}: " in detail) or tests
        for test in gone:
            del left[test]
    return Chosen(result, detail, (), count)

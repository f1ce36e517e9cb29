"""Forgeries in a real box: each fails, or passes with a remark. `test_plain` reads all of them.

The judging code is the same in every box. Both back ends run the forgeries that reach out of the interpreter, and
only bubblewrap runs the others.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from ctxbench.bench.judging.judge import judged
from ctxbench.bench.judging.python import PythonSuite, requirements
from ctxbench.bench.judging.python import reports as coverage
from ctxbench.bench.judging.types import TAMPERED, Judgement, Verdict
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.sandbox import wheels
from ctxbench.sandbox.types import Command, Job, Outcome, Pool, Sandbox
from tests.helpers.sandboxes import BACK_ENDS, cache, locked
from tests.sandbox.forgeries import shop
from tests.sandbox.forgeries.forgery import FORGERIES, SLOW, Forgery
from tests.sandbox.forgeries.honest import RIGHT, WRONG, Honest

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.long]
SUITE = TestSuite(paths=("tests",))
REUSE = 20
"""Jobs per box. A box costs more to start than a job, and leftovers of one job must not help the next one."""
_REACHES_OUT = re.compile(r"ctypes|/proc|mmap|\bos\.|signal|socket|subprocess|thread")
MEETS_THE_BOX = [forgery for forgery in FORGERIES if _REACHES_OUT.search(forgery.text)][::4]


@pytest.fixture(scope="module")
def suite() -> PythonSuite:
    with locked():
        lock = wheels.lock(requirements(SUITE), "", cache(), print)
    return PythonSuite(SUITE, lock, "", shop.TREE)


@dataclass(frozen=True)
class Bench:
    """A suite and a pool that judge a text as a target of the shop."""

    suite: PythonSuite
    pool: Pool

    def judge(self, text: str, target: str, seconds: float | None = None) -> Judgement:
        def run(job: Job) -> Outcome:
            return self.pool.run(job if seconds is None else replace(job, seconds=seconds))

        return judged(self.suite, run, shop.sample(target), shop.reference(target), text)


@contextmanager
def _opened(sandbox: Sandbox, suite: PythonSuite) -> Iterator[Bench]:
    sandbox.prepare(suite.environment, print)
    with sandbox.open(suite.environment, limits=suite.limits, reuse=REUSE) as pool:
        yield Bench(suite, pool)


@pytest.fixture(scope="module")
def bubblewrap(bubblewrap_sandbox: Sandbox, suite: PythonSuite) -> Iterator[Bench]:
    with _opened(bubblewrap_sandbox, suite) as bench:
        yield bench


@pytest.fixture(scope="module")
def docker(docker_sandbox: Sandbox, suite: PythonSuite) -> Iterator[Bench]:
    with _opened(docker_sandbox, suite) as bench:
        yield bench


@pytest.fixture(params=BACK_ENDS)
def bench(request: pytest.FixtureRequest) -> Bench:
    opened: Bench = request.getfixturevalue(request.param)
    return opened


@pytest.mark.parametrize("target", shop.TARGETS)
def test_the_reference_passes_and_the_blank_fails(bench: Bench, target: str) -> None:
    good = bench.judge(shop.TARGETS[target], target)
    assert (good.verdict, good.reason, good.tests_run) == (Verdict.PASSED, "", len(shop.TESTS[target])), good.output
    blank = bench.judge(bench.suite.blank(shop.sample(target)), target)
    assert blank.verdict is Verdict.FAILED and "did not pass" in blank.reason


@pytest.mark.parametrize("forgery", FORGERIES[::3], ids=lambda forgery: forgery.name)
def test_a_forgery_gets_the_documented_verdict(bubblewrap: Bench, forgery: Forgery) -> None:
    _check_verdict(bubblewrap, forgery)


def test_enough_forgeries_reach_out_and_their_names_are_unique() -> None:
    assert len(MEETS_THE_BOX) >= 10 and len({forgery.name for forgery in FORGERIES}) == len(FORGERIES)


@pytest.mark.parametrize("forgery", MEETS_THE_BOX, ids=lambda forgery: forgery.name)
def test_a_forgery_that_reaches_out_gets_the_same_verdict_in_docker(docker: Bench, forgery: Forgery) -> None:
    _check_verdict(docker, forgery)


def _check_verdict(bench: Bench, forgery: Forgery) -> None:
    found = bench.judge(forgery.text, forgery.target)
    if found.verdict is Verdict.PASSED:
        assert found.flags, found
        return
    assert found.verdict in (Verdict.FAILED, Verdict.NO_TESTS), found
    assert any(each in found.reason for each in forgery.says), found


@pytest.mark.parametrize("honest", RIGHT, ids=lambda honest: honest.name)
def test_correct_but_unusual_code_passes(bubblewrap: Bench, honest: Honest) -> None:
    found = bubblewrap.judge(honest.text, honest.target)
    assert (found.verdict, found.reason) == (Verdict.PASSED, ""), found


@pytest.mark.parametrize("honest", WRONG, ids=lambda honest: honest.name)
def test_wrong_but_honest_code_fails(bubblewrap: Bench, honest: Honest) -> None:
    found = bubblewrap.judge(honest.text, honest.target)
    assert found.verdict is Verdict.FAILED and TAMPERED not in found.reason, found


@pytest.mark.parametrize("forgery", [f for f in FORGERIES if f.fools_pytest][::4], ids=lambda forgery: forgery.name)
def test_a_forgery_makes_plain_pytest_exit_with_0(bubblewrap: Bench, forgery: Forgery) -> None:
    job = bubblewrap.suite.job(shop.sample(forgery.target), shop.reference(forgery.target), forgery.text, "")
    pytest_alone = Command(argv=("python3", "-m", "pytest", "-p", "no:cacheprovider", *shop.TESTS[forgery.target]))
    outcome = bubblewrap.pool.run(replace(job, action=pytest_alone))
    assert outcome.exit_code == 0, outcome.output


@pytest.mark.parametrize("forgery", SLOW, ids=lambda forgery: forgery.name)
def test_a_forgery_that_never_returns_times_out(bench: Bench, forgery: Forgery) -> None:
    assert bench.judge(forgery.text, "total", seconds=5.0).verdict is Verdict.TIMED_OUT


def test_coverage_of_the_whole_suite_names_the_tests_of_each_line(bench: Bench) -> None:
    outcome = bench.pool.run(bench.suite.cover(SUITE, seconds=60.0))
    found = coverage.read_coverage(outcome.result)
    assert (found.exit, found.broken) == (0, ()), outcome.output
    assert {test.id: test.outcome for test in found.tests} == dict.fromkeys(
        (test for tests in shop.TESTS.values() for test in tests), "passed"
    )
    raises = shop.PRICES.split("\n").index('        raise ValueError("a rate is not negative")')
    names = {line: {found.tests[place].id for place in ran} for line, ran in found.lines[shop.PATH].items()}
    assert names[raises] == {"tests/test_prices.py::test_negative_rate"}
    assert names[raises + 1] == set(shop.TESTS["total"]) - names[raises]

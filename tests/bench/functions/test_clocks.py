"""Finding tests that read a clock, and preferring tests that read none."""

from dataclasses import dataclass, field

import pytest

from ctxbench.bench.functions.candidates import ListedFunction, candidates
from ctxbench.bench.functions.choose import MOST_TESTS, Draft, choose, choose_by_faults, steady
from ctxbench.bench.functions.mining import Level, TestRun
from ctxbench.bench.functions.python.covering import clock_lines, clock_tests
from ctxbench.bench.judging.python.reports import Covered, CoveredTest
from ctxbench.bench.types import Cursor, Reference, Sample
from tests.helpers.samples import make_sample

READS = {
    "the module": "import time\ndef f():\n    return time.perf_counter()",
    "another name of the module": "import time as t\ndef f():\n    return t.monotonic()",
    "the function": "from time import perf_counter as now\ndef f():\n    return now()",
    "every name": "from time import *\ndef f():\n    return time_ns()",
    "an alias": "import time\nclock = time.time\nclock()",
    "an attribute": "import time\nclass T: clock = time.monotonic\nT().clock()",
    "a default": "import time\ndef f(timer=time.perf_counter):\n    return timer()",
    "a date": "import datetime as dt\n\nx = dt.datetime.now()",
    "a date by its class": "from datetime import datetime\n\nx = datetime.utcnow()",
    "a day": "from datetime import date\n\nx = date.today()",
    "timeit": "import timeit\n\nx = timeit.timeit('1')",
    "sleep": "import time\n\ntime.sleep(0.1)",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.wait_for(g(), 1)",
    "a loop's time": "async def f(loop):\n    await g()\n    return loop.time()",
    "the running loop's time": "import asyncio\n\nx = asyncio.get_running_loop().time()",
    "a loop's timer": "def f(self):\n\n    self._loop.call_later(1, g)",
    "a timeout": "q = make()\n\nq.get(timeout=0.5)",
    "a wait": "event = make()\n\nevent.wait(0.5)",
}


@pytest.mark.parametrize("source", READS.values(), ids=READS)
def test_a_line_that_reads_a_clock_is_found(source: str) -> None:
    assert 2 in clock_lines(source.encode())


TIMED = {
    "pytest-timeout": "import pytest\n@pytest.mark.timeout(1)\ndef test_a():\n    work()\n",
    "a class with a mark": "import pytest\n@pytest.mark.timeout(1)\nclass TestA:\n    def test_a(self): work()\n",
    "a module with a mark": "import pytest\npytestmark = [pytest.mark.timeout(1)]\ndef test_a():\n    work()\n",
    "pytest-benchmark": "import pytest\n\ndef test_a(benchmark):\n    benchmark(work)\n",
}


@pytest.mark.parametrize("source", TIMED.values(), ids=TIMED)
def test_a_test_with_a_timeout_or_a_benchmark_is_found(source: str) -> None:
    assert 3 in clock_lines(source.encode())


HARMLESS = {
    "a time of day": "from datetime import time\nx = time(3)",
    "a date that is given": "import datetime\nx = datetime.datetime(2020, 1, 1)",
    "the time of a date": "x = make().time()",
    "a time that a loop is given": "def f(loop):\n    loop.time(3)",
    "words": "x = 'time.time()'  # time.time()",
    "joined text": "x = ','.join(['time'])",
    "a timeout that is passed on": "def f(timeout):\n    return get(timeout=timeout)",
    "no timeout": "get(timeout=None)",
    "a name of its own": "class T:\n    def perf_counter(self): pass\nT().perf_counter()",
    "a deadline, which the runner takes away": (
        "from hypothesis import given, settings\n@settings(deadline=9)\n@given(x)\ndef test_a(x): pass"
    ),
    "no Python": "time.time( import",
    "a null byte": "import time\0",
}


@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_a_line_that_reads_no_clock_is_not_found(source: str) -> None:
    assert clock_lines(source.encode()) == frozenset()


def test_running_a_clock_line_in_any_file_marks_the_test() -> None:
    files = {
        "t.py": b"from help import Timer\ndef test_a():\n    with Timer(): work()\ndef test_b():\n    work()\n",
        "help.py": b"import time\nclass Timer:\n    def __enter__(self):\n        self.start = time.time()\n",
    }
    tests = tuple(CoveredTest(id=f"t.py::test_{name}", outcome="passed", seconds=0.1) for name in "ab")
    lines = {"t.py": {2: (0,), 4: (1,)}, "help.py": {3: (0,)}, "gone.py": {0: (1,)}}
    covered = Covered(exit=0, tests=tests, broken=(), lines=lines)
    assert clock_tests(covered, files) == {"t.py::test_a"}


def run(*, clock: bool = False) -> TestRun:
    return TestRun(passed=True, seconds=0.1, breadth=1, clock=clock)


def test_tests_that_read_a_clock_judge_only_lines_without_other_tests() -> None:
    covering = {"timed": frozenset({1, 2}), "plain": frozenset({1}), "needless": frozenset({1}), "late": frozenset({3})}
    runs = {test: run(clock=test != "plain") for test in covering}
    assert set(steady(covering, runs)) == {"late", "plain", "timed"}
    without = {test: covering[test] for test in ("timed", "needless")}
    assert steady(without, runs) == without


def test_tests_that_read_a_clock_are_left_out_if_others_suffice() -> None:
    covering = {f"{kind}{number:02}": frozenset({1}) for kind in ("a", "b") for number in range(MOST_TESTS)}
    runs = {test: run(clock=test.startswith("a")) for test in covering}
    assert all(test.startswith("b") for test in choose(steady(covering, runs), runs))


class FakeJudge:
    """Names the tests that detect the blank. Only the test that reads a clock detects any other text."""

    def __init__(self, *blank: str) -> None:
        self.blank = frozenset(blank)

    def failing(self, sample: Sample, reference: Reference, text: str) -> frozenset[str]:
        return self.blank if text == "blank" else frozenset({"timed"})


def draft() -> Draft:
    return Draft(
        sample=make_sample(),
        reference=Reference(id="demo/1", target="x", tests=("plain",)),
        ranked=("plain",),
        others=("wide", "timed"),
        blank="blank",
        mutants=lambda most: tuple(f"fault {number}" for number in range(most)),
        clocks=frozenset({"timed"}),
    )


def test_clock_tests_are_chosen_only_if_no_other_detects_an_empty_body() -> None:
    assert "timed" not in choose_by_faults(draft(), FakeJudge("wide", "timed"))
    with_clock = choose_by_faults(draft(), FakeJudge("timed"))
    assert "timed" in with_clock and draft().judged_by(with_clock).clocks == ("timed",)


def test_tests_that_read_a_clock_are_tried_last() -> None:
    definition = ListedFunction(path="a.py", definition=Definition(), level=Level.SELF_CONTAINED, uses=())
    runs = {"timed": run(clock=True), "plain": run(), "late": run(clock=True)}
    covering = {"timed": frozenset({1}), "plain": frozenset({1}), "late": frozenset({2})}
    [made], _ = candidates([definition], runs, lambda _: covering)
    assert set(made.tests) == {"plain", "late"} and made.others == ("timed",)
    assert made.clocks == {"timed", "late"}


@dataclass(frozen=True)
class Definition:
    """The definition of a minimal function."""

    name: str = "f"
    signature: str = "def f():"
    docstring: str = "Do it."
    start: int = 0
    tail: None = None
    cursor: Cursor = field(default=Cursor(line=2, column=0))
    end: int = 3
    code: str = "pass"

"""The guest runner on trusted code. Attacks by untrusted code are in tests/sandbox/forgeries."""

import marshal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import CodeType, MappingProxyType

import pytest

from ctxbench.bench.judging import python
from ctxbench.bench.judging import python as guest
from ctxbench.bench.judging.python import PythonSuite, read_bytecode
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.types import Reference
from ctxbench.sandbox.types import Call, Ended, Outcome
from tests.bench.judging.runner import call, run_tests
from tests.sandbox.forgeries import shop

SUITE = TestSuite(paths=("tests",))


def judged(
    folder: Path,
    text: str,
    *,
    tests: tuple[str, ...] = shop.TESTS["total"],
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Judgement:
    """Judge a function of the shop in a folder below `folder`. `files` are added to the shop."""
    suite = PythonSuite(SUITE, (), "", shop.TREE | dict(files))
    reference = Reference(id="shop/total", target=shop.TARGETS["total"], tests=tests)
    job = suite.job(shop.sample(), reference, text, "secret")
    assert isinstance(job.action, Call) and job.action.function == guest.RUN
    root = folder / "tree"
    root.mkdir(parents=True)
    result = run_tests(root, {**suite.environment.tree, **job.files}, job.action.arguments)
    return suite.judge(reference, Outcome(ended=Ended.EXITED, exit_code=0, result=result), "secret")


def test_a_correct_function_passes_every_kind_of_test(tmp_path: Path) -> None:
    found = judged(tmp_path, shop.TARGETS["total"])
    assert (found.verdict, found.reason, found.tests_run) == (Verdict.PASSED, "", 6)


def test_a_wrong_function_fails_with_the_tests_message(tmp_path: Path) -> None:
    found = judged(tmp_path, shop.TARGETS["total"].replace("sum(", "max("))
    assert found.verdict is Verdict.FAILED
    assert found.reason.startswith(
        "5 of 6 tests did not pass: tests/test_prices.py::test_total: failed in call: Assert"
    )


def test_a_text_that_is_not_python_breaks_the_import(tmp_path: Path) -> None:
    found = judged(tmp_path, "def total(prices, rate=0.0) return 1")
    assert (
        found.reason.startswith("import or collection broke: tests/test_prices.py: ") and "SyntaxError" in found.reason
    )


def test_only_the_expected_tests_are_run(tmp_path: Path) -> None:
    found = judged(tmp_path, shop.TARGETS["total"].replace("sum(", "max("), tests=shop.TESTS["total"][3:4])
    assert (found.verdict, found.tests_run) == (Verdict.PASSED, 1)


def test_an_expected_test_that_does_not_exist_fails(tmp_path: Path) -> None:
    found = judged(
        tmp_path,
        shop.TARGETS["total"],
        tests=(*shop.TESTS["total"][:2], "tests/test_prices.py::test_total_with_rate[9-9]"),
    )
    assert found.reason == "1 of 3 tests did not pass: tests/test_prices.py::test_total_with_rate[9-9]: not run"
    found = judged(tmp_path / "other", shop.TARGETS["total"], tests=("tests/test_prices.py::test_other",))
    assert found.verdict is Verdict.NO_TESTS


@pytest.mark.slow
def test_the_repositorys_options_and_warning_filters_do_not_fail_a_test(tmp_path: Path) -> None:
    settings = "[pytest]\naddopts = --numprocesses=4 --cov\nfilterwarnings = error\n"
    warns = shop.TARGETS["total"].replace(
        "    if rate", "    import warnings\n    warnings.warn('old', DeprecationWarning)\n    if rate"
    )
    files = {
        "pytest.ini": settings.encode(),
        "conftest.py": b"import warnings\nwarnings.warn('old', DeprecationWarning)\n",
    }
    assert judged(tmp_path, warns, files=files).verdict is Verdict.PASSED


KINDS = """
import unittest
import warnings
import pytest
from shop.prices import total

@pytest.mark.filterwarnings("error")
def test_marked(): assert total([1]) == 1

def warn(): warnings.warn("old", DeprecationWarning)

@pytest.mark.filterwarnings("error:old")
def test_marked_and_warns(): warn()

@pytest.mark.filterwarnings("ignore:old")
def test_marked_and_silent():
    with warnings.catch_warnings(record=True) as log: warn()
    assert not log

def test_records(capfd):
    warn()
    for _ in range(2):
        with warnings.catch_warnings(record=True) as log: warn()
        assert [entry.category for entry in log] == [DeprecationWarning]
    assert capfd.readouterr() == ("", "")

class TestSome(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.prices = [1, 2]
    def test_subs(self):
        for price in self.prices:
            with self.subTest(price=price):
                self.assertEqual(total([price]), price)
    @unittest.skip("no")
    def test_skipped(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(total([1]), 2)

class TestLater(unittest.IsolatedAsyncioTestCase):
    async def test_later(self): self.assertEqual(total([1]), 1)

@pytest.mark.xfail
def test_known(): assert total([1]) == 2

@pytest.fixture
def broken():
    yield 1
    raise OSError("left")

def test_teardown(broken): assert total([1]) == 1
"""


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ("test_marked", ""),
        ("test_marked_and_warns", "DeprecationWarning: old"),
        ("test_marked_and_silent", ""),
        ("test_records", ""),
        ("TestSome::test_subs", ""),
        ("TestLater::test_later", ""),
        ("TestSome::test_skipped", "skipped"),
        ("TestSome::test_expected", "xfail"),
        ("test_known", "xfail"),
        ("test_teardown", "failed in teardown: OSError: left"),
    ],
)
def test_each_kind_of_test_is_judged_by_its_outcome(tmp_path: Path, test: str, wanted: str) -> None:
    files = {"tests/test_kinds.py": KINDS.encode()}
    found = judged(tmp_path, shop.TARGETS["total"], tests=(f"tests/test_kinds.py::{test}",), files=files)
    assert found.verdict is (Verdict.FAILED if wanted else Verdict.PASSED), found
    assert wanted in found.reason


LOUD = """
    import os, warnings
    class Loud(DeprecationWarning):
        is_over = False
        def __str__(self): return os._exit(0) if Loud.is_over else 'loud'
    for _ in range(1000): warnings.warn(Loud())
    Loud.is_over = True
"""
FORGIVING = "\n    import warnings; warnings.catch_warnings.__exit__ = lambda *_: True\n    return -1\n"
LYING = """
    import sys, warnings
    def show(*_):
        for frame in sys._current_frames().values():
            for value in frame.f_locals.values():
                if hasattr(value, "outcome"): value.outcome = "passed"
    warnings.showwarning = show
    warnings.warn("x", DeprecationWarning)
    return -1
"""


@pytest.mark.parametrize(
    ("body", "verdict"), [(LOUD, Verdict.PASSED), (FORGIVING, Verdict.FAILED), (LYING, Verdict.FAILED)]
)
def test_warnings_do_not_change_or_forge_a_verdict(tmp_path: Path, body: str, verdict: Verdict) -> None:
    text = shop.TARGETS["total"].replace("\n    if rate", f"{body}    if rate")
    assert judged(tmp_path, text).verdict is verdict


@pytest.mark.slow
def test_an_endless_loop_runs_out_of_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "CPU_SECONDS", 1)
    found = judged(tmp_path, "def total(prices, rate=0.0):\n    while True: pass\n")
    assert (found.verdict, found.reason) == (Verdict.TIMED_OUT, "ran out of processor time")


def test_a_test_may_write_new_files(tmp_path: Path) -> None:
    writes = shop.TARGETS["total"].replace("    if rate", "    open('new.txt', 'w').close()\n    if rate")
    assert judged(tmp_path, writes).verdict is Verdict.PASSED


def test_a_file_write_is_detected_even_if_the_text_is_restored(tmp_path: Path) -> None:
    writes = shop.TARGETS["total"].replace(
        "    if rate",
        "    text = open('tests/conftest.py').read()\n    open('tests/conftest.py', 'w').write(text)\n    if rate",
    )
    assert judged(tmp_path, writes).reason == "tampered: the completion wrote to tests/conftest.py"


PROPERTIES = """
import time
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from shop.prices import total

drawn = []

@given(st.text('ab'), st.integers())
def test_draws(text, number): drawn.append((text, number))

def test_drawn(): open("drawn", "w").write("".join(f"{pair!a}|" for pair in drawn))

@settings(deadline=1, max_examples=3)
@given(st.integers())
def test_slow(number): time.sleep(0.01)

class Machine(RuleBasedStateMachine):
    @rule(number=st.integers())
    def adds(self, number): time.sleep(0.002)

Machine.TestCase.settings = settings(deadline=1, max_examples=2)
TestMachine = Machine.TestCase

@given(st.integers())
def test_fails(number): assert total([number]) == number < 1000
"""


@pytest.mark.slow
def test_hypothesis_examples_do_not_depend_on_clocks_or_constants(tmp_path: Path) -> None:
    names = ("test_draws", "test_drawn", "test_slow", "TestMachine::runTest", "test_fails")
    tests = tuple(f"tests/test_properties.py::{name}" for name in names)
    files = {"tests/test_properties.py": PROPERTIES.encode()}
    completion = shop.TARGETS["total"]
    drawn = []
    for text in (completion, completion.replace("    if rate", "    what = 987654, 'constant'\n    if rate")):
        folder = tmp_path / str(len(drawn))
        judgement = judged(folder, text, tests=tests, files=files)
        # The trace function of Hypothesis's explanations would count as tampering.
        assert (judgement.verdict, judgement.failed) == (Verdict.FAILED, tests[-1:])
        drawn.append((folder / "tree" / "drawn").read_text())
    assert drawn[0] == drawn[1]
    assert drawn[0].count("|") == 100


def test_the_library_contains_only_the_guest_package() -> None:
    assert set(guest.library()) == {f"ctxbench_pytest/{name}.py" for name in _NAMES}


_NAMES = ("__init__", "child", "covering", "integrity", "options", "parent")


@pytest.mark.slow
def test_bytecode_of_tests_and_imports_is_used_only_for_its_own_text(tmp_path: Path) -> None:
    suite = PythonSuite(SUITE, (), "", shop.TREE)
    job = suite.compiling(shop.TESTS["total"])
    assert isinstance(job.action, Call) and job.action.function == guest.COMPILE
    (tmp_path / "tree").mkdir()
    compiled = read_bytecode(call("compiled", tmp_path / "tree", shop.TREE, job.action.arguments))
    stems = {path.rpartition("/")[2].partition(".")[0]: path for path in compiled}
    assert {"test_prices", "conftest", "prices"} <= set(stems)
    assert "-pytest-" in stems["test_prices"] and "-pytest-" not in stems["prices"]
    # Bytecode is used only for its own text: emptied tests pass a wrong function until the test file's text changes.
    emptied = {path: held[:16] + marshal.dumps(_emptied(marshal.loads(held[16:]))) for path, held in compiled.items()}
    wrong = shop.TARGETS["total"].replace("sum(", "max(")
    for number, (files, tests, verdict) in enumerate(
        [
            (compiled, {}, Verdict.FAILED),
            (emptied, {}, Verdict.PASSED),
            (emptied, {"tests/test_prices.py": shop.TREE["tests/test_prices.py"] + b"\n"}, Verdict.FAILED),
        ]
    ):
        job = suite.job(shop.sample(), shop.reference("total"), wrong, "secret")
        assert isinstance(job.action, Call)
        (folder := tmp_path / str(number) / "tree").mkdir(parents=True)
        result = run_tests(folder, {**shop.TREE, **files, **tests, **job.files}, job.action.arguments)
        outcome = Outcome(ended=Ended.EXITED, exit_code=0, result=result)
        assert suite.judge(shop.reference("total"), outcome, "secret").verdict is verdict


def _emptied(code: CodeType) -> CodeType:
    """Return the code with every function called ``test_...`` emptied, at any depth."""
    if code.co_name.startswith("test_"):
        nothing = (lambda: None).__code__
        return code.replace(co_code=nothing.co_code, co_consts=(None,), co_exceptiontable=b"")
    return code.replace(
        co_consts=tuple(_emptied(held) if isinstance(held, CodeType) else held for held in code.co_consts)
    )


def failing(folder: Path, text: str, tests: tuple[str, ...] = shop.TESTS["total"]) -> frozenset[str] | None:
    """Return the tests that detect a faulty `total` of the shop."""
    suite, reference = PythonSuite(SUITE, (), "", shop.TREE), replace(shop.reference("total"), tests=tests)
    job = suite.trial(shop.sample(), reference, text, "s")
    assert isinstance(job.action, Call)
    root = folder / "tree"
    root.mkdir(parents=True)
    result = run_tests(root, {**shop.TREE, **job.files}, job.action.arguments)
    return suite.failing(reference, Outcome(ended=Ended.EXITED, exit_code=0, result=result))


@pytest.mark.slow
def test_the_tests_that_detect_a_fault_are_named(tmp_path: Path) -> None:
    tests = shop.TESTS["total"]
    assert failing(tmp_path / "right", shop.TARGETS["total"]) == frozenset()
    assert failing(tmp_path / "wrong", "def total(prices, rate=0.0):\n    return None\n") == set(tests)
    assert failing(tmp_path / "leaves", "def total(prices, rate=0.0):\n    import os\n    os._exit(0)\n") == {tests[0]}


@pytest.mark.slow
def test_the_total_time_of_all_tests_does_not_detect_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "TRIAL_SECONDS", 1)
    slow = "    import time\n    end = time.process_time() + 0.6\n    while time.process_time() < end: pass\n"
    signature, _, body = shop.TARGETS["total"].partition("\n")
    tests = shop.TESTS["total"][:2]
    assert failing(tmp_path / "slow", f"{signature}\n{slow}{body}", tests) == frozenset()
    assert failing(tmp_path / "endless", f"{signature}\n    while True: pass\n", tests) == {tests[0]}


@pytest.mark.slow
def test_a_test_that_waits_forever_detects_the_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "IDLE_SECONDS", 1)
    signature = shop.TARGETS["total"].partition("\n")[0]
    waits = f"{signature}\n    import threading\n    threading.Event().wait()\n"
    assert failing(tmp_path / "t", waits) == {shop.TESTS["total"][0]}

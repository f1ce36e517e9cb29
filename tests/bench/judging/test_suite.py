from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.judging.python import PythonSuite, requirements
from ctxbench.bench.judging.python import reports as coverage
from ctxbench.bench.judging.python.reports import Malformed
from ctxbench.bench.judging.python.text import splice
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.types import Call
from tests.helpers.samples import make_sample
from tests.sandbox.forgeries import shop


def test_a_suite_gets_pytest_and_coverage_unless_it_names_them() -> None:
    assert requirements(TestSuite(requirements=("attrs",))) == ("pytest>=9,<10", "coverage>=7.10,<8", "attrs")
    assert requirements(TestSuite(requirements=("pytest<8",))) == ("coverage>=7.10,<8", "pytest<8")
    assert requirements(TestSuite(requirements=("pytest-mock",)))[0] == "pytest>=9,<10"


def test_the_box_contains_requirements_library_and_tree() -> None:
    suite = PythonSuite(TestSuite(pythonpath="src"), ("pytest==9.2.0",), "shop==1.0", shop.TREE)
    box = suite.environment
    assert (box.name, box.requirements, box.project, box.path) == (
        "shop-1.0",
        ("pytest==9.2.0",),
        "shop==1.0",
        ("src",),
    )
    assert box.preload == ("ctxbench_pytest",) and "ctxbench_pytest/child.py" in box.library
    assert box.tree == shop.TREE


def test_a_job_changes_the_target_and_carries_new_canaries_for_each_secret() -> None:
    suite = PythonSuite(TestSuite(arguments=("--x",)), (), "", shop.TREE)
    jobs = [suite.job(shop.sample(), shop.reference(), "def total(): pass", secret) for secret in "aab"]
    assert jobs[0] == jobs[1]
    assert list(jobs[0].files) == [shop.PATH]
    assert jobs[0].files[shop.PATH].decode() == shop.PRICES.replace(shop.TOTAL, "def total(): pass\n")
    action, other = jobs[0].action, jobs[2].action
    assert isinstance(action, Call) and isinstance(other, Call)
    assert action.arguments["tests"] == list(shop.TESTS["total"]) and action.arguments["arguments"] == ["--x"]
    assert all(action.arguments[key] != other.arguments[key] for key in ("nonce", "canaries"))


def test_a_text_or_sample_without_a_function_is_refused() -> None:
    suite = PythonSuite(TestSuite(), (), "", shop.TREE)
    with pytest.raises(InputFault, match="defines no function 'total'"):
        suite.job(shop.sample(), shop.reference(), "return 1", "s")
    with pytest.raises(InputFault, match="has no file"):
        suite.job(make_sample(span=(0, 1), name="f"), shop.reference(), "def f(): pass", "s")
    with pytest.raises(InputFault, match="not a function.*--kind function"):
        suite.blank(make_sample())


BODY = "class A:\n    def f(self):\n        '''Doc.'''\n        return 1\n"


@pytest.mark.parametrize(
    ("prefix", "wanted"),
    [
        ("class A:\n    def f(self):\n        '''Doc.'''\n", "        pass\n"),
        ("class A:\n    def f(self):\n        '''Doc.'''\n        ", "        pass\n"),
        ("class A:\n    def f(self):\n        '''Doc.'''; ", "        '''Doc.'''; pass\n"),
        ("class A:\n    def f(self): ", "    def f(self): pass\n"),
        ("class A:\n    def f(self):\n", "        pass\n"),
    ],
)
def test_a_blank_ends_in_pass(prefix: str, wanted: str) -> None:
    lines = prefix.split("\n")
    sample = make_sample(
        prefix=prefix, span=(1, 4), name="A.f", cursor=Cursor(line=len(lines) - 1, column=len(lines[-1]))
    )
    text = PythonSuite(TestSuite(), (), "", {}).blank(sample)
    assert text.startswith("    def f(self):") and text.endswith(wanted)
    compile(splice(BODY.encode(), (1, 4), "A.f", text), "x", "exec")


def test_the_whole_suite_includes_the_repositorys_and_added_tests() -> None:
    suite = PythonSuite(TestSuite(), (), "", shop.TREE)

    def paths(tests: TestSuite) -> object:
        action = suite.cover(tests, 1.0).action
        assert isinstance(action, Call)
        return action.arguments["paths"]

    assert paths(TestSuite(paths=("tests",))) == ["tests"]
    assert paths(TestSuite(paths=("tests",), added=Path("ours"))) == ["tests", "ctxbench_tests/"]
    assert paths(TestSuite(paths=("ctxbench_tests",), added=Path("ours"))) == ["ctxbench_tests"]
    assert paths(TestSuite(added=Path("ours"))) == []


def covered(**changes: object) -> dict[str, object]:
    return {
        "exit": 0,
        "tests": [["a", "passed", 0.5], ["b", "failed", 1], ["c", "passed", 0]],
        "broken": [],
        "sets": ["0-1", "2"],
        "lines": {"x.py": {"3": 0, "4": 1}},
        "modules": ["", "t.py"],
        "imports": {"x.py": {"3": [0, 1]}},
        **changes,
    }


def test_coverage_is_read_back_by_line_from_zero() -> None:
    found = coverage.read_coverage(covered())
    assert found.lines == {"x.py": {2: (0, 1), 3: (2,)}} and found.imports == {"x.py": {2: ("", "t.py")}}
    assert [test.id for test in found.tests] == ["a", "b", "c"] and found.tests[1].seconds == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"more": 1},
        {"tests": None},
        {"tests": [["a"]]},
        {"sets": ["0-3", "2"]},
        {"sets": ["2-1", "2"]},
        {"sets": ["x"]},
        {"sets": []},
        {"lines": []},
        {"modules": []},
        {"imports": {"x.py": {"one": [0]}}},
        {"lines": {"x.py": {"one": 0}}},
        {"exit": None},
        {"broken": [1]},
    ],
)
def test_malformed_coverage_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        coverage.read_coverage(covered(**changes))

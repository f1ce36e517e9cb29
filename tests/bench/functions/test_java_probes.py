import fcntl
import io
import json
import zipfile
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.functions.java import lift
from ctxbench.bench.functions.java.covering import (
    UNSELECTABLE,
    Ran,
    cover,
    failure_causes,
    merged,
    numbered,
    probed,
)
from ctxbench.bench.functions.mining import Project
from ctxbench.bench.home import Home
from ctxbench.bench.judging.java import JavaSuite
from ctxbench.bench.judging.java.build import Build
from ctxbench.bench.judging.java.layout import layout
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.java_shop import TREE


def test_probes_follow_braces_and_do_not_move_lines() -> None:
    source = "class A { // caf\u00e9\r\n  int a() { if (true) { return 1; } return 2; }\r\n}\r\n".encode("iso-8859-1")
    places = {7: Cursor(line=1, column=11), 8: Cursor(line=1, column=23)}
    assert probed(source, "iso-8859-1", places) == (
        "class A { // caf\u00e9\r\n  int a() {ctxbench.Probe.hit(7); if (true) {ctxbench.Probe.hit(8); return 1; } "
        "return 2; }\r\n}\r\n"
    ).encode("iso-8859-1")


def test_probes_are_numbered_across_all_files() -> None:
    one, two = Cursor(line=1, column=2), Cursor(line=3, column=4)
    assert numbered([("a", one), ("a", two), ("b", one)]) == {"a": {0: one, 1: two}, "b": {2: one}}


def test_runs_of_one_test_are_merged() -> None:
    lines = [["A#x[*]", "passed", 500, [1]], ["B#y", "passed", 1, []], ["A#x[*]", "failed", 250, [2]]]
    assert merged(lines) == (Ran("A#x[*]", "failed", 0.75, frozenset({1, 2})), Ran("B#y", "passed", 0.001, frozenset()))


@pytest.mark.parametrize(
    "rows", [None, [["A#x"]], [["A#x", "lost", 1, []], ["A#x", "lost", 1, []]], [["A", "passed", "x", []]]]
)
def test_malformed_coverage_is_refused(rows: object) -> None:
    with pytest.raises(InputFault, match="run the same command again"):
        merged(rows)


def test_lifting_a_method_keeps_its_relative_indentation() -> None:
    assert lift(["    int a() {", "        return 1;", "", "    }"]) == "int a() {\n    return 1;\n\n}"


def shop(tmp_path: Path, *deselect: str) -> tuple[Project, JavaSuite]:
    """Return a repository with one test that waits, and its suite. Nothing is compiled."""
    tests = TestSuite(deselect=deselect)
    wait = b"package shop;\nclass WaitTest { @Test void waits() throws Exception { Thread.sleep(5); } }\n"
    tree = {**TREE, "src/test/java/shop/WaitTest.java": wait}
    jar = io.BytesIO()
    zipfile.ZipFile(jar, "w").close()
    suite = JavaSuite(tests, layout(tests, tree), tree, Build(main=jar.getvalue(), test=b"", tools=b"", dropped=()))
    manifest = RepoManifest(name="shop", language=JAVA, license="MIT", version="1", sources=(), tests=tests)
    snapshot = Snapshot(name="shop", language=JAVA, digest="", texts={}, dropped={})
    return Project(manifest=manifest, root=tmp_path, snapshot=snapshot, home=Home(tmp_path), lock=lambda *_: ()), suite


def deselected(job: Job) -> list[str]:
    assert isinstance(job.action, Call)
    return list(job.action.arguments["deselected"])


def test_a_suite_that_takes_too_long_suggests_deselecting_tests(tmp_path: Path) -> None:
    project, suite = shop(tmp_path, "src/test/java/shop/OldTest.java", "shop.CartTest#pays")
    sandbox = FakeSandbox(lambda job: Outcome(ended=Ended.TIMED_OUT))
    with pytest.raises(InputFault, match="take longer than 1800 s; add the test files that .* to `deselect`"):
        cover(project, suite, (), sandbox, lambda line: None)
    assert deselected(sandbox.jobs[0]) == ["shop.OldTest", "shop.CartTest#pays"]


def rows(waits: str) -> list[object]:
    return [
        ["shop.WaitTest#waits", waits, 5, [0]],
        ["shop.CartTest$Inner#pays", "passed", 1, []],
        ["shop.WrongTest#fails", "failed", 1, []],
    ]


@pytest.mark.parametrize("first", ["failed", UNSELECTABLE])
def test_a_test_that_reads_a_clock_and_failed_runs_again_alone(first: str, tmp_path: Path) -> None:
    project, suite = shop(tmp_path, "shop.CartTest#sells")

    def answer(job: Job) -> Outcome:
        again = len(deselected(job)) > 1
        if again:
            with (project.home.cache / "judging.room").open() as room, pytest.raises(BlockingIOError):
                fcntl.flock(room, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return Outcome(ended=Ended.EXITED, result={"tests": rows("passed" if again else first)})

    sandbox = FakeSandbox(answer)
    for _ in range(2):  # the outcome is cached
        ran = {test.id: test.state for test in cover(project, suite, (), sandbox, lambda line: None)}
        assert ran["shop.WaitTest#waits"] == "passed" and ran["shop.WrongTest#fails"] == "failed"
        assert list(map(deselected, sandbox.jobs)) == [
            ["shop.CartTest#sells"],
            ["shop.CartTest#sells", "shop.CartTest", "shop.WrongTest"],
        ]
    # An unreadable cache file makes the suite run again.
    (stored,) = (project.home.cache / "coverage").iterdir()
    stored.write_text(json.dumps(rows(first)))
    assert cover(project, suite, (), sandbox, lambda line: None)[1].state == "passed" and len(sandbox.jobs) == 4


def test_a_test_that_cannot_run_alone_stays_failed(tmp_path: Path) -> None:
    project, suite = shop(tmp_path)
    outcomes = iter([Outcome(ended=Ended.EXITED, result={"tests": rows("failed")}), Outcome(ended=Ended.TIMED_OUT)])
    reports: list[str] = []
    ran = cover(project, suite, (), FakeSandbox(lambda job: next(outcomes)), reports.append)
    assert {test.id for test in ran if test.state == "failed"} == {"shop.WaitTest#waits", "shop.WrongTest#fails"}
    assert "could not run alone" in reports[-1]


LAUNCHER = """
Failures (3):
  JUnit Vintage:TillTest:opens
    MethodSource [className = 'shop.TillTest', methodName = 'opens', methodParameterTypes = '']
    => java.lang.IllegalStateException: Could not initialize plugin
       java.base/java.lang.Class.getDeclaredMethods0(Native Method)
       [...]
     Caused by: java.lang.NoClassDefFoundError: org/slf4j/Logger
       [...]
  JUnit Jupiter:BillTest:adds(int):[2] 7
    MethodSource [className = 'shop.BillTest', methodName = 'adds', methodParameterTypes = 'int']
    => org.opentest4j.AssertionFailedError: expected: <1> but was: <2>
[...]
    => java.lang.Error: of a test whose name was cut off
"""


def test_failure_causes_are_read_from_the_launchers_output() -> None:
    assert failure_causes(LAUNCHER) == {
        "shop.TillTest#opens": "java.lang.NoClassDefFoundError: org/slf4j/Logger",
        "shop.BillTest#adds": "org.opentest4j.AssertionFailedError: expected: <1> but was: <2>",
    }

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from ctxbench.bench.errors import InputFault
from ctxbench.bench.functions.java import lift
from ctxbench.bench.functions.java.covering import Ran, cover, merged, numbered, probed
from ctxbench.bench.functions.mining import Project
from ctxbench.bench.home import Home
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.repositories.manifest import RepoManifest, TestSuite
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.testing.java import JavaSuite
from ctxbench.bench.testing.java.build import Build
from ctxbench.bench.testing.java.layout import layout
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.fake import FakeSandbox
from ctxbench.sandbox.types import Call, Ended, Outcome
from tests.helpers.java_shop import TREE


def test_probes_stand_behind_braces_and_move_no_line() -> None:
    source = "class A { // caf\u00e9\r\n  int a() { if (true) { return 1; } return 2; }\r\n}\r\n".encode("iso-8859-1")
    places = {7: Cursor(line=1, column=11), 8: Cursor(line=1, column=23)}
    assert probed(source, "iso-8859-1", places) == (
        "class A { // caf\u00e9\r\n  int a() {ctxbench.Probe.hit(7); if (true) {ctxbench.Probe.hit(8); return 1; } "
        "return 2; }\r\n}\r\n"
    ).encode("iso-8859-1")


def test_numbers_run_through_all_files() -> None:
    one, two = Cursor(line=1, column=2), Cursor(line=3, column=4)
    assert numbered([("a", one), ("a", two), ("b", one)]) == {"a": {0: one, 1: two}, "b": {2: one}}


def test_runs_of_one_test_are_merged() -> None:
    rows = [["A#x[*]", "passed", 500, [1]], ["B#y", "passed", 1, []], ["A#x[*]", "failed", 250, [2]]]
    assert merged(rows) == (Ran("A#x[*]", "failed", 0.75, frozenset({1, 2})), Ran("B#y", "passed", 0.001, frozenset()))


@pytest.mark.parametrize(
    "rows", [None, [["A#x"]], [["A#x", "lost", 1, []], ["A#x", "lost", 1, []]], [["A", "passed", "x", []]]]
)
def test_what_is_no_survey_is_refused(rows: object) -> None:
    with pytest.raises(InputFault, match="try it again"):
        merged(rows)


def test_lifting_a_method_keeps_its_shape() -> None:
    assert lift(["    int a() {", "        return 1;", "", "    }"]) == "int a() {\n    return 1;\n\n}"


def test_what_takes_too_long_can_be_deselected(tmp_path: Path) -> None:
    tests = TestSuite(deselect=("src/test/java/shop/OldTest.java", "shop.CartTest#pays"))
    jar = io.BytesIO()
    zipfile.ZipFile(jar, "w").close()
    suite = JavaSuite(tests, layout(tests, TREE), TREE, Build(main=jar.getvalue(), test=b"", tools=b"", dropped=()))
    manifest = RepoManifest(name="shop", language=JAVA, license="MIT", version="1", sources=(), tests=tests)
    snapshot = Snapshot(name="shop", language=JAVA, digest="", texts={}, dropped={})
    project = Project(manifest=manifest, root=tmp_path, snapshot=snapshot, home=Home(tmp_path), lock=lambda *_: ())
    sandbox = FakeSandbox(lambda job: Outcome(ended=Ended.TIMED_OUT))
    with pytest.raises(InputFault, match="take longer than 1800 s; name the test files that .* under deselect"):
        cover(project, suite, (), sandbox, lambda line: None)
    action = sandbox.jobs[0].action
    assert isinstance(action, Call)
    assert action.arguments["deselected"] == ["shop.OldTest", "shop.CartTest#pays"]

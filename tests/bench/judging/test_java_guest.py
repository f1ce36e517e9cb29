import zipfile
from pathlib import Path

import pytest

from ctxbench.bench.judging.java import build as java_guest
from ctxbench.bench.judging.java.ctxbench_java import judging, programs

XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter">
<testcase name="one()" classname="a.FooTest" time="0.5"/>
<testcase name="two(int)[1]" classname="a.FooTest" time="1,000.25"/>
<testcase name="two(int)[2]" classname="a.FooTest" time="0.5">
  <failure message="no" type="E"><![CDATA[E: no]]></failure></testcase>
<testcase name="three" classname="a.BarTest" time="0"><skipped><![CDATA[later]]></skipped></testcase>
</testsuite>
"""


def test_the_library_contains_python_java_and_the_policy() -> None:
    names = set(java_guest.library())
    assert {f"ctxbench_java/{name}" for name in ("__init__.py", "Canary.java", "Probe.java", "judge.policy")} <= names


def test_reports_are_read_and_the_worst_invocation_counts(tmp_path: Path) -> None:
    (tmp_path / "TEST-junit-jupiter.xml").write_text(XML)
    (tmp_path / "TEST-junit-vintage.xml").write_text("<testsuite><testcase")
    assert judging.read_reports(tmp_path) == {
        "a.FooTest#one": ("passed", "", 0.5),
        "a.FooTest#two(int)[*]": ("failed", "E: no", 1000.75),
        "a.BarTest#three": ("skipped", "later", 0.0),
    }


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("works()", "A#works"),
        ("works", "A#works"),
        ("adds(int, String)[12]", "A#adds(int, String)[*]"),
        ("adds[1: x=[2]]", "A#adds[*]"),
        ("told(TestInfo)", "A#told(TestInfo)[*]"),
        ("adds[a b]", "A#adds[*]"),
        ("adds(int[])[1]", "A#adds(int[])[*]"),
    ],
)
def test_ids_are_built_from_report_names(name: str, wanted: str) -> None:
    assert judging.test_id("A", name) == wanted


def test_a_plain_method_that_runs_with_its_class_is_found_in_reports() -> None:
    assert judging.entry_of_test({"A#x": 1, "A#y": 2, "A#y[*]": 3}, "A#x[*]") == 1
    assert judging.entry_of_test({"A#x": 1, "A#y": 2, "A#y[*]": 3}, "A#y[*]") == 3
    assert judging.entry_of_test({"A#y[*]": 3}, "A#y") is None


def test_selectors_name_methods_or_whole_classes() -> None:
    tests = ["a.B#x", "a.B#y", "a.C#x(int)[*]", "a.C#z", "a.D$E#x"]
    assert judging.selectors(tests) == [
        "--select-class=a.C",
        "--select-method=a.B#x",
        "--select-method=a.B#y",
        "--select-method=a.D$E#x",
    ]


def test_classes_of_other_files_are_foreign(tmp_path: Path) -> None:
    for name in ("shop/Prices.class", "shop/Prices$1.class", "shop/PricesTest.class"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert judging.unexpected_class(tmp_path, ["shop/Prices"]) == "shop/PricesTest"
    assert judging.unexpected_class(tmp_path, ["shop/Prices", "shop/PricesTest"]) == ""


def test_jars_of_equal_folders_are_equal_and_entries_can_be_removed(tmp_path: Path) -> None:
    (tmp_path / "classes/a").mkdir(parents=True)
    for name in ("A", "B"):
        (tmp_path / f"classes/a/{name}.class").write_text(name)
    jar = tmp_path / "main.jar"
    jar.write_bytes(programs.jar(tmp_path / "classes"))
    assert jar.read_bytes() == programs.jar(tmp_path / "classes")
    judging.remove_entries(jar, {"a/A.class"})
    assert zipfile.ZipFile(jar).namelist() == ["a/B.class"]

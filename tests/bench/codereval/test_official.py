"""The official protocol without a container: names of tests, what is replaced, and what counts as passed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import container, official_java, official_python, protocol
from ctxbench.bench.codereval.container import Contents
from ctxbench.bench.codereval.image import check, import_image
from ctxbench.bench.codereval.image_projects import NO_FOLDER, NO_INTERPRETER, NO_TEST, OfficialTest, judged_by
from ctxbench.bench.codereval.protocol import JAVA, java_test, python_tests
from ctxbench.bench.codereval.records import TaskRecord
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.formats.importing import read_tasks
from ctxbench.bench.formats.types import Task
from ctxbench.bench.home import Home
from ctxbench.bench.testing.suites import suite_of
from ctxbench.bench.testing.types import Verdict
from ctxbench.bench.types import Reference
from ctxbench.sandbox.types import Command, Ended, Job, Outcome
from tests.bench.codereval import miniature

CONTENTS = Contents(
    id="sha256:0123456789abcdef",
    python="/usr/bin/python3",
    python_version="3.9.1",
    javac="/jdk/bin/javac",
    java="/jdk/bin/java",
    java_version="1.8.0_292",
    folders=("owner---mini",),
    tests=frozenset(
        path.removeprefix("repos/") for path in miniature.files() if "_passk_" in path or "standalone" in path
    ),
    projects=("mini-master",),
    classes=frozenset(f"mini-master/target/classes/org/mini/Text_{name}.class" for name in ("shout", "count")),
    roots=("mini-master/target/classes",),
    jars=(),
)


def record(**changes: str) -> TaskRecord:
    values = {
        "id": "1",
        "project": "owner/mini",
        "path": "a/b.py",
        "name": "f",
        "level": "self_contained",
        "signature": "def f():",
        "docstring": "Do.",
    }
    return TaskRecord(**{**values, **changes})  # type: ignore[arg-type]


def tasks(tmp_path: Path, language: str) -> tuple[Task, ...]:
    return read_tasks("codereval", [str(miniature.write(tmp_path, language))]).tasks


OWN = "owner---mini"
TESTS: list[tuple[tuple[str, ...], set[str], str | None]] = [
    # Beside the source file.
    ((OWN,), {f"{OWN}/a/b_f_passk_validte.py"}, f"{OWN}/a/b_f_passk_validte.py"),
    # neo4j's files lie under one more folder.
    ((OWN,), {f"{OWN}/src/a/b_f_passk_validte.py"}, f"{OWN}/src/a/b_f_passk_validte.py"),
    # A standalone test goes before one in the repository, however it is spelled.
    ((OWN,), {"standalone/a-b-f.py", f"{OWN}/a/b_f_passk_validte.py"}, "standalone/a-b-f.py"),
    ((), {"standalone/a->b.py-f.py"}, "standalone/a->b.py-f.py"),
    # A project in the folder of its former name, as mozilla/relman-auto-nag.
    (("other---name", "third"), {"other---name/a/b_f_passk_validte.py"}, "other---name/a/b_f_passk_validte.py"),
    # A special name: the only one beside the file that no task claims.
    ((OWN,), {f"{OWN}/a/b_ff_passk_validte.py"}, f"{OWN}/a/b_ff_passk_validte.py"),
    # Two such, or two projects with such a file: nothing is guessed.
    ((OWN,), {f"{OWN}/a/b_g_passk_validte.py", f"{OWN}/a/b_h_passk_validte.py"}, None),
    (("x", "y"), {"x/a/b_f_passk_validte.py", "y/a/b_f_passk_validte.py"}, None),
    ((OWN,), {f"{OWN}/a/bb_f_passk_validte.py"}, None),
    ((OWN,), set(), None),
]


@pytest.mark.parametrize(("folders", "tests", "expected"), TESTS)
def test_which_file_judges_a_python_task(folders: tuple[str, ...], tests: set[str], expected: str | None) -> None:
    found = python_tests([record()], folders, tests).get("1")
    if expected is None:
        assert found is None
    else:
        owner = expected.partition("/")[0]
        assert found == ((OWN if OWN in folders else None) if owner == "standalone" else owner, expected)


def test_what_two_tasks_may_claim_is_neither_s() -> None:
    two = [record(), record(id="2", name="g")]
    left = {"owner---mini/a/b_ff_passk_validte.py"}
    assert python_tests(two, ["owner---mini"], left) == {}
    more = {*left, "owner---mini/a/b_g_passk_validte.py"}
    assert {one: path for one, (_, path) in python_tests(two, ["owner---mini"], more).items()} == {
        "1": "owner---mini/a/b_ff_passk_validte.py",
        "2": "owner---mini/a/b_g_passk_validte.py",
    }


def test_which_class_judges_a_java_task() -> None:
    java = record(project="p", path="Text.java", package="org.mini", class_name="Text")
    classes = {f"p/core/target/classes/org/mini/Text_{name}.class" for name in ("f", "g")}
    roots = ["p/core/target/classes", "p/target/classes"]
    assert java_test(java, "p", classes, roots) == "p/core/target/classes::org.mini.Text_f"
    assert java_test(replace(java, package="org.other"), "p", classes, roots) is None
    assert java_test(java, "q", classes, roots) is None
    # Lists of results tell neither file nor class.
    bare = replace(java, path="", class_name="", package="")
    assert java_test(bare, "p", classes, roots) == "p/core/target/classes::org.mini.Text_f"
    assert java_test(bare, "p", classes | {"p/target/classes/org/More_f.class"}, roots) is None


def test_every_task_has_a_test_or_a_reason(tmp_path: Path) -> None:
    python, java = tasks(tmp_path, "python"), tasks(tmp_path, "java")
    found = judged_by([*python, *java], CONTENTS)
    assert list(found.values()) == [
        OfficialTest("owner---mini", "owner---mini/mini/prices_total_passk_validte.py"),
        OfficialTest("owner---mini", "owner---mini/mini/prices_rounded_passk_validte.py"),
        OfficialTest(None, "standalone/alone-words-longest.py"),
        OfficialTest("owner---mini", "owner---mini/mini/prices_names_of_passk_validte.py"),
        NO_TEST,
        OfficialTest("mini-master", "mini-master/target/classes::org.mini.Text_shout"),
        OfficialTest("mini-master", "mini-master/target/classes::org.mini.Text_count"),
    ]
    assert set(judged_by(python, replace(CONTENTS, python="")).values()) == {NO_INTERPRETER}
    assert set(judged_by(java, replace(CONTENTS, javac="")).values()) == {NO_INTERPRETER}
    assert set(judged_by(java, replace(CONTENTS, projects=())).values()) == {NO_FOLDER}
    assert set(judged_by(java, replace(CONTENTS, classes=frozenset())).values()) == {NO_TEST}


SOURCE = '''\
def f(a):
    return 1


class C:
    @wrapped
    def _f(self, a):
        """Do."""
        return 2

    def g(self):
        return 3


if __name__ == "__main__":
    C()._f(1)
'''


def test_the_last_function_of_the_name_is_replaced_and_indented() -> None:
    changed = official_python.replaced(SOURCE, "f", "def f(self, a):\n    if a:\n\n        return 4\n")
    assert changed == SOURCE.replace(
        '    def _f(self, a):\n        """Do."""\n        return 2\n',
        "    def f(self, a):\n        if a:\n\n            return 4\n",
    )
    # Decorators lie above the lines that are replaced, and stay.
    assert "    @wrapped\n    def f" in changed


def test_what_is_indented_enough_is_taken_as_it_is() -> None:
    deep = official_python.replaced(SOURCE, "f", "        def f(self):\n            pass")
    assert "\n        def f(self):\n            pass\n\n    def g" in deep
    part = official_python.replaced(SOURCE, "f", "  def f(self):\n      pass")
    assert "\n    def f(self):\n        pass\n" in part
    assert official_python.replaced("def g(): pass\n", "g", "no Python at all") == "no Python at all\n"


@pytest.mark.parametrize("source", ["def g(): pass\n", "def f(:\n", "f = 1\n", "\0"])
def test_a_test_file_without_the_function_is_refused(source: str) -> None:
    with pytest.raises(InputFault, match="test file"):
        official_python.replaced(source, "f", "def f(): pass")


def python_suite() -> official_python.OfficialPythonSuite:
    tree = {"owner---mini/a/b_f_passk_validte.py": b"# \xe9\ndef f():\n    return 1\n"}
    return official_python.OfficialPythonSuite("sha256:1", "/usr/bin/python3", tree)


def test_the_changed_copy_is_run_beside_the_original(tmp_path: Path) -> None:
    sample = replace(tasks(tmp_path, "python")[0].sample, name="C.f")
    reference = Reference(id=sample.id, target="", tests=("owner---mini/a/b_f_passk_validte.py",))
    suite = python_suite()
    job = suite.job(sample, reference, "def f(): return 2", "secret")
    name = "owner---mini/a/b_f_passk_validte0.py"
    # Bytes that are no UTF-8 stay what they were.
    assert job == Job(
        action=Command(argv=("/usr/bin/python3", f"/home/travis/builds/repos/{name}")),
        files={name: b"# \xe9\ndef f(): return 2\n"},
        seconds=30.0,
    )
    with pytest.raises(InputFault, match="cannot be written"):
        suite.job(sample, reference, "def f(): return '\ud800'", "secret")
    with pytest.raises(InputFault, match="hold no test"):
        suite.job(sample, replace(reference, tests=("gone.py",)), "def f(): pass", "secret")
    assert suite.environment.image == "sha256:1" and suite.environment.folder == "/home/travis/builds/repos"


def ended(output: str = "", code: int | None = 0, **changes: Any) -> Outcome:
    return Outcome(ended=changes.pop("ended", Ended.EXITED), exit_code=code, output=output, **changes)


JUDGED: list[tuple[Outcome, Verdict, str]] = [
    (ended("False\n"), Verdict.PASSED, ""),
    (ended("a\nException: Result not True!!!\n", 1), Verdict.FAILED, "exit code 1: Exception: Result not True!!!"),
    (ended("", None, ended=Ended.KILLED, out_of_memory=True, signal=9), Verdict.FAILED, "out of memory"),
    (ended("", None, ended=Ended.TIMED_OUT), Verdict.TIMED_OUT, "its time was over"),
    (ended("box lost", None, ended=Ended.WRECKED), Verdict.FAILED, "wrecked: box lost"),
]


@pytest.mark.parametrize(("outcome", "verdict", "reason"), JUDGED)
def test_the_exit_code_is_all_that_counts(outcome: Outcome, verdict: Verdict, reason: str) -> None:
    found = python_suite().judge(Reference(id="1", target=""), outcome, "secret")
    assert (found.verdict, found.reason, found.tests_run) == (verdict, reason, 1)


def java_suite() -> official_java.OfficialJavaSuite:
    held = official_java.entry(
        "sha256:1", "p", "/jdk/bin/java", ("p/target/classes", "q/target/classes"), ("/m2/a/b.jar",)
    )
    return official_java.OfficialJavaSuite(held, {"src/org/Text.java": miniature.TEXT})


def test_the_java_file_is_made_public_and_compiled_before_the_rest(tmp_path: Path) -> None:
    sample = replace(tasks(tmp_path, "java")[0].sample, path="src/org/Text.java")
    reference = Reference(id=sample.id, target="", tests=("p/target/classes::org.mini.Text_shout",))
    job = java_suite().job(sample, reference, "private static String shout(String text) { return null; }\n", "secret")
    (text,) = (data.decode() for data in job.files.values())
    assert list(job.files) == ["source/Text.java"] and job.seconds == 120.0
    assert "private " not in text and "public static final String MARK" in text
    assert "@Deprecated\npublic static String shout(String text) { return null; }\n\n" in text
    assert isinstance(job.action, Command)
    assert job.action.argv[4:] == (
        f"{JAVA}/p/target/classes",
        "/work/source/Text.java",
        "secret",
        "org.mini.Text_shout",
    )
    variables = dict(java_suite().environment.variables)
    assert variables["CLASSPATH"] == f"{JAVA}/p/target/classes:/m2/a/*" and variables["JAVAC"] == "/jdk/bin/javac"
    assert not java_suite().environment.tree
    with pytest.raises(InputFault, match="has no file"):
        java_suite().job(replace(sample, path="Gone.java"), reference, "", "secret")


@pytest.mark.parametrize(
    ("outcome", "verdict", "reason"),
    [
        (ended("warning\nsecret\ntrue\n"), Verdict.PASSED, ""),
        (ended("secret\ntrue\nfalse\n"), Verdict.FAILED, "exec error: false"),
        (ended("secret\n"), Verdict.FAILED, "exec error: "),
        # What the compiler says is no output of the test.
        (
            ended("Text.java:3: error: true is odd\n", 1),
            Verdict.FAILED,
            "compile error: Text.java:3: error: true is odd",
        ),
        (ended("secret\na.b.OddException: no\n\tat x", 1), Verdict.FAILED, "exec error: a.b.OddException: no"),
        # Officially its output counts, whatever the exit code is.
        (ended("secret\ntrue\n", 1), Verdict.PASSED, ""),
        (ended("secret\ntrue\n", None, ended=Ended.TIMED_OUT), Verdict.TIMED_OUT, "its time was over"),
        (ended("secret\ntrue\n", None, ended=Ended.WRECKED), Verdict.FAILED, "exec error: true"),
    ],
)
def test_a_word_of_the_output_is_all_that_counts(outcome: Outcome, verdict: Verdict, reason: str) -> None:
    found = java_suite().judge(Reference(id="1", target=""), outcome, "secret")
    assert (found.verdict, found.reason) == (verdict, reason)


def test_a_project_s_own_jars_go_before_those_of_maven() -> None:
    own = f"{JAVA}/p/lib/a.jar"
    held = official_java.entry("i", "p", "/j", (), (own, f"{JAVA}/p/lib/b.jar", "/root/.m2/c/d.jar"))
    assert held["classpath"] == [f"{JAVA}/p/lib/*"]
    with pytest.raises(InputFault, match="too long"):
        official_java.entry("i", "p", "/j", (), tuple(f"/m2/{number:050d}/a.jar" for number in range(3000)))


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the miniature's files be what an image holds, without an engine."""

    def holding(contents: Contents = CONTENTS, **changed: str) -> None:
        texts = {f"/home/travis/builds/{path}": text for path, text in {**miniature.files(), **changed}.items()}

        def copy_out(_: object, image: str, folder: str, into: Any, keep: Callable[[str], bool], most: int) -> bool:
            assert image == contents.id and most > 0
            inside = {path.removeprefix(f"{folder}/"): text for path, text in texts.items() if path.startswith(folder)}
            from ctxbench.sandbox.docker.tars import archive

            into.write(archive({f"x/{path}": text.encode() for path, text in inside.items() if keep(path)}, ended=True))
            return bool(inside)

        monkeypatch.setattr(container, "look", lambda image, report: contents)
        monkeypatch.setattr("ctxbench.sandbox.docker.tars.copy_out", copy_out)
        monkeypatch.setattr("ctxbench.sandbox.docker.engine.connected", _Engine)

    return holding


class _Engine:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def test_a_set_accounts_for_every_task_and_hides_the_harness_copies(
    tmp_path: Path, copied: Callable[..., None]
) -> None:
    copied()
    home, said = Home(tmp_path / "home"), list[str]()
    about = {"imported_from": "codereval", "unusable": {"no_task": 2}, "remarks": ["before"]}
    made = import_image(tasks(tmp_path, "python"), home, "set", image="i", report=said.append, about=about)
    manifest = made.manifest
    assert manifest["unusable"] == {"no_task": 2, "no_test_file": 1} and manifest["totals"] == {"tasks": 5, "kept": 4}
    assert manifest["remarks"] == ["before", protocol.REMARK] and manifest["image"]["id"] == CONTENTS.id
    assert any("nobody/elsewhere" in line and ": no_test_file" in line for line in said)
    mini = manifest["repositories"]["owner---mini"]
    assert (mini["left_out"], mini["files"], mini["kept"]) == ({"hygiene": 3}, 3, 3)
    by_name = {sample.name: sample for sample in made.samples}
    assert set(by_name) == {"Cart.total", "rounded", "keys", "longest"}
    assert by_name["Cart.total"].repo == "owner---mini" and by_name["longest"].repo == "nobody---alone"
    assert made.references[by_name["longest"].id].tests == ("standalone/alone-words-longest.py",)
    suite = suite_of(home, made, "owner---mini")
    assert sorted(suite.environment.tree) == [
        f"owner---mini/mini/{name}.py"
        for name in (
            "__init__",
            "names",
            "prices",
            *(f"prices_{task}_passk_validte" for task in ("names_of", "rounded", "total")),
        )
    ]
    assert list(suite_of(home, made, "nobody---alone").environment.tree) == ["standalone/alone-words-longest.py"]
    # What strategies may search: no copy of an answer that the harness keeps, and no standalone test.
    seen = {repo: each.files for repo, each in sets.snapshots(home, made).items()}
    assert seen == {"owner---mini": ("mini/__init__.py", "mini/names.py", "mini/prices.py")}
    # The same again is the same set.
    again = import_image(tasks(tmp_path, "python"), home, "set", image="i", about=about)
    assert again.digest == made.digest


def test_a_changed_checkout_is_refused(tmp_path: Path, copied: Callable[..., None]) -> None:
    copied()
    home = Home(tmp_path / "home")
    made = import_image(tasks(tmp_path, "python"), home, "set", image="i")
    root = home.repos / made.manifest["repositories"]["owner---mini"]["checkout"]
    file = root / "mini/names.py"
    file.chmod(0o644)
    file.write_text("NAME = 'other'\n")
    with pytest.raises(InputFault, match="import the set again with --image"):
        suite_of(home, made, "owner---mini")


def test_a_java_set_takes_the_sources_alone(tmp_path: Path, copied: Callable[..., None]) -> None:
    copied(**{"java/mini-master/target/classes/org/mini/Text.class": "no text"})
    home = Home(tmp_path / "home")
    made = import_image(tasks(tmp_path, "java"), home, "set", image="i")
    entry = made.manifest["repositories"]["mini-master"]
    # The harness's test programs beside the sources are no strategy's to see.
    assert (entry["files"], entry["left_out"], entry["kept"]) == (2, {"hygiene": 2}, 2)
    assert not list(home.repos.rglob("*.class"))
    assert suite_of(home, made, "mini-master").environment.image == CONTENTS.id


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({"repos/owner---mini/mini/prices_rounded_passk_validte.py": "def other(): pass\n"}, "broken_test"),
        ({"repos/owner---mini/mini/prices.py": "def unlike(): pass\n"}, "no_function"),
    ],
)
def test_a_task_whose_files_do_not_fit_is_told(
    tmp_path: Path, copied: Callable[..., None], changed: dict[str, str], outcome: str
) -> None:
    copied(**changed)
    made = import_image(tasks(tmp_path, "python"), Home(tmp_path / "home"), "set", image="i")
    assert outcome in {fate["outcome"] for fate in made.manifest["tasks"].values()}
    assert made.manifest["unusable"][outcome] >= 1


def test_an_image_that_judges_nothing_makes_no_set(tmp_path: Path, copied: Callable[..., None]) -> None:
    copied(replace(CONTENTS, tests=frozenset()))
    with pytest.raises(InputFault, match="can judge no task .no_test_file 5."):
        import_image(tasks(tmp_path, "python"), Home(tmp_path / "home"), "set", image="i")


def test_what_is_missing_is_told_for_each_task(tmp_path: Path, copied: Callable[..., None]) -> None:
    copied(replace(CONTENTS, javac="", python=""))
    found = check("i", tasks(tmp_path, "java"))
    assert len(found.missing) == 4 and sum(NO_INTERPRETER in line for line in found.missing) == 2
    copied()
    found = check("i", tasks(tmp_path, "python"))
    assert found.missing == ("620000000000000000000005 nobody/elsewhere: no_test_file",)
    assert "4 of 5 tasks have a test" in found.present
    assert not any("official version" in line for line in found.present)


class _Pool:
    """Answers as a container of an image would."""

    image = "i"

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def run(self, job: Job) -> Outcome:
        return self.outcome


def test_what_the_image_says_is_read() -> None:
    said = """\
=== python
/usr/bin/python 2.7.18
/opt/python/3.7.1/bin/python 3.7.1
nonsense
/opt/python/3.9.1/bin/python 3.9.1
=== javac
/usr/lib/jvm/java-11/bin/javac javac 11.0.2
/usr/lib/jvm/java-8/bin/javac javac 1.8.0_292
=== folders
.
./standalone
./b---c
./a---b
=== tests
./a---b/x_f_passk_validte.py
=== projects
.
=== roots
=== classes
=== jars
/root/.m2/a.jar
"""
    found = container._contents(_Pool(ended(said)), "sha256:1")
    assert (found.python, found.python_version) == ("/opt/python/3.9.1/bin/python", "3.9.1")
    assert (found.java, found.java_version) == ("/usr/lib/jvm/java-8/bin/java", "1.8.0_292")
    assert found.folders == ("a---b", "b---c") and found.projects == () and found.jars == ("/root/.m2/a.jar",)
    for outcome in (ended(said, 1), ended(said, truncated=True)):
        with pytest.raises(MachineFault, match="looking at the image"):
            container._contents(_Pool(outcome), "sha256:1")

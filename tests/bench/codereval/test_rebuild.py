"""Rebuilding CoderEval's tasks: each is kept or gets a reason, and every kept task is certified."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.codereval import records
from ctxbench.bench.codereval.rebuild import by_project, certify, rebuild
from ctxbench.bench.codereval.records import record_of
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.formats.importing import read_tasks
from ctxbench.bench.functions.build import verify
from ctxbench.bench.functions.choose import MOST_TESTS
from ctxbench.bench.functions.mining import TestRun
from ctxbench.bench.home import Home
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import manifest as manifests
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repository import view
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Call, Ended, Job, Outcome, Sandbox
from tests.bench.codereval.asked import Asked, tasks
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import FILES, TEST_FILE, in_process
from tests.helpers.repositories import manifest_of
from tests.helpers.sandboxes import lock_wheels
from tests.helpers.trees import write_tree

DOUBLE = Asked("double", "def double(x):", "Return twice x.", level="file_runnable")
ROOT = Asked("root", "def root(x):", "Return the root of x.", path="src/shop.py", project="ME---Shop")
PUT = Asked("put", "def put(self, item):", "Put an item into the cart.", path="old/place.py", level="class_runnable")
LOST = {
    Asked("flaky", "def flaky(x):", "Return x the first time only."): "flaky",
    Asked("nothing", "def nothing(x):", "Return None, as an empty body does."): "blank_passed",
    Asked("broken", "def broken(x):", "Work in the whole suite only."): "reference_failed",
    Asked("unused", "def unused(x):", "Never be called."): "no_covering_test",
    Asked("absent", "def absent(x):", "Be nowhere."): "no_function",
    Asked("double", "def double(x, y):", "Return twice x.", path="src/shop.py"): "other_signature",
    Asked("far", "def far():", "Be in no file.", path="gone.py"): "no_file",
    Asked("a", "def a():", "Say a.", project="no/body"): records.NO_MANIFEST,
    Asked("b", "def b():", "Say b.", project="me/untested"): records.NO_TESTS,
    Asked("c", "def c():", "Say c.", project="me/away"): records.UNREACHABLE,
    Asked("d", "def d():", "Say d.", project="me/sick"): records.SUITE_FAILED,
    Asked("e", "def e():", "Say e.", project="me/endless"): records.SUITE_FAILED,
}
_TESTS = '[tests]\npaths = ["tests"]\n'


def repository(folder: Path, name: str, tree: Path, tests: str = _TESTS) -> RepoManifest:
    folder.mkdir(parents=True, exist_ok=True)
    source = f'[[source]]\nkind = "local"\npath = "{tree}"\n{tests}'
    return manifest_of(folder, source, name=name, version="1", head=f'codereval = ["me/{name}"]\n')


def repositories(folder: Path) -> list[RepoManifest]:
    tree = write_tree(folder / "shop-tree", FILES)
    return [
        repository(folder, "shop", tree),
        repository(folder, "untested", tree, tests=""),
        repository(folder, "away", folder / "nowhere"),
        *(
            repository(folder, name, write_tree(folder / "one", {"a.py": "1\n"}), f'[tests]\npaths = ["{name}"]\n')
            for name in ("sick", "endless")
        ),
    ]


def box(job: Job) -> Outcome | None:
    """Answer for the repositories whose tests cannot be run."""
    paths = job.action.arguments.get("paths") if isinstance(job.action, Call) else None
    if paths == ["sick"]:
        raise SandboxLost("the box is gone")
    return Outcome(ended=Ended.TIMED_OUT) if paths == ["endless"] else None


def make(
    folder: Path,
    asked: Sequence[Asked],
    sandbox: FakeSandbox | None = None,
    *,
    said: list[str] | None = None,
    name: str = "ce",
    **changes: object,
) -> SampleSet:
    options = {"manifests": repositories(folder), "lock": lambda *_: ("pytest==9.2.0",), "force": True, **changes}
    return rebuild(
        tasks(folder / "files", asked),
        Home(folder / "home"),
        name,
        sandbox=sandbox or in_process(),
        report=(said if said is not None else []).append,
        **options,  # type: ignore[arg-type]
    )


def test_every_task_is_kept_or_has_its_reason(tmp_path: Path) -> None:
    said: list[str] = []
    asked = [PUT, *LOST, DOUBLE, ROOT]
    made = make(tmp_path, asked, in_process(more=box), said=said)
    told = made.manifest["tasks"]
    assert list(told) == [one.id for one in asked], "in the order of the files"
    assert {one.id: told[one.id]["outcome"] for one in asked} == {
        **{one.id: reason for one, reason in LOST.items()},
        **{one.id: records.KEPT for one in (DOUBLE, ROOT, PUT)},
    }
    assert [sample.id for sample in made.samples] == [PUT.id, DOUBLE.id, ROOT.id]
    for one, reason in LOST.items():
        assert [line for line in said if line.startswith(f"{one.id} {one.project} {one.name}: {reason}")], said
    shop = made.manifest["projects"]["me/shop"]
    assert shop["tasks"] == 9 and shop["kept"] == 2 and shop["flaky"] == 1 and sum(shop.values()) == 18
    assert made.manifest["projects"]["ME---Shop"] == {"tasks": 1, "kept": 1}
    assert made.manifest["unusable"] == Counter(LOST.values())
    assert made.manifest["totals"] == {"tasks": 15, "kept": 3} and list(made.manifest["repositories"]) == ["shop"]
    rebuilt, away, failed = made.manifest["remarks"][-3:]
    assert "3 of 15 CoderEval tasks" in rebuilt and "the tasks of away are missing" in away
    assert "the tasks of endless, sick are missing: their tests could not be run" in failed
    assert told[PUT.id]["how"] == "other-file" and told[DOUBLE.id]["judged_by"] == "project"
    assert told[DOUBLE.id]["tests"] == [f"{TEST_FILE}::test_double"]


def test_a_sample_is_coderevals_task_in_the_real_file(tmp_path: Path) -> None:
    made = make(tmp_path, [DOUBLE, PUT])
    double, put = made.samples
    assert (double.id, double.benchmark, double.subkind) == (DOUBLE.id, "codereval", "file_runnable")
    assert (double.repo, double.path, double.name) == ("shop", "shop.py", "double")
    assert (double.signature, double.docstring) == (DOUBLE.signature, DOUBLE.docstring)
    assert FILES["shop.py"] == f"{double.prefix}    return x * RATE\n{double.suffix}"
    assert made.references[double.id].target == 'def double(x):\n    """Return twice x."""\n    return x * RATE'
    assert (put.name, put.hidden) == ("Cart.put", ("tests/",))
    assert "answer of the model" not in str(made.samples) + str(made.references)
    shown = view(sets.snapshots(Home(tmp_path / "home"), made)["shop"], double.query(), (), double.hidden)
    assert shown.files() == ("shop.py",) and "x * RATE" not in shown.read("shop.py")


def test_a_resumed_rebuild_repeats_nothing_and_workers_do_not_change_the_set(tmp_path: Path) -> None:
    left = 7

    def lose(job: Job) -> Outcome | None:
        nonlocal left
        left -= 1
        if left < 0:
            raise SandboxLost("the engine is gone")
        return None

    with pytest.raises(MachineFault, match="run the same command again"):
        make(tmp_path, [DOUBLE, ROOT, PUT], in_process(more=lose))
    assert sets.names(Home(tmp_path / "home")) == ()
    sandbox = in_process()
    made = make(tmp_path, [DOUBLE, ROOT, PUT], sandbox, workers=3)
    # One job compiles the tests. The others judge.
    assert 1 < len(sandbox.jobs) <= 1 + 8, "coverage and the first certificate are kept"
    again = in_process()
    assert make(tmp_path, [DOUBLE, ROOT, PUT], again, name="again").digest == made.digest and again.jobs == []


def test_facts_about_the_imported_files_stay_in_the_manifest(tmp_path: Path) -> None:
    about = {
        "imported_from": "codereval",
        "unusable": {"no_prompt": 2},
        "remarks": ["no_reference: of the tasks as they were read"],
    }
    made = make(tmp_path, [DOUBLE, next(iter(LOST))], about=about)
    assert made.manifest["unusable"] == {"flaky": 1, "no_prompt": 2}
    assert made.manifest["imported_from"] == "codereval" and "1 of 2 CoderEval tasks" in made.manifest["remarks"][0]


def test_a_rebuild_that_keeps_no_task_is_a_fault(tmp_path: Path) -> None:
    lost = {reason: one for one, reason in LOST.items()}
    with pytest.raises(InputFault, match=r"no task can be rebuilt \(blank_passed 1, no_manifest 1\)"):
        make(tmp_path, [lost["blank_passed"], lost[records.NO_MANIFEST]])
    with pytest.raises(MachineFault, match="no source can be reached"):
        make(tmp_path, [lost[records.UNREACHABLE]])


def test_a_project_has_one_repository_and_the_users_takes_precedence(tmp_path: Path) -> None:
    shop = repositories(tmp_path)[0]
    twin = repository(tmp_path / "twin", "shop", tmp_path)
    with pytest.raises(InputFault, match="shop and shop both represent CoderEval's project me/shop"):
        by_project([shop, twin])
    shipped = by_project()[PYTHON, "pexip/os-python-cachetools"]
    assert shipped.name == "codereval-cachetools"
    (tmp_path / "mine.toml").write_text(
        (tmp_path / "shop.toml")
        .read_text()
        .replace('"shop"', '"mine"')
        .replace("me/shop", "Pexip/os-python-cachetools")
    )
    own = manifests.load(str(tmp_path / "mine.toml"))
    assert by_project([own])[PYTHON, "pexip/os-python-cachetools"] is own


def test_different_tests_change_the_digest_of_the_set(tmp_path: Path) -> None:
    digests = set()
    for number, body in enumerate(("assert double(2) == 4", "assert double(2) == 4  # seen again", None)):
        files = {**FILES, TEST_FILE: FILES[TEST_FILE].replace("assert double(2) == 4", body)} if body else FILES
        shop = repository(tmp_path / str(number), "shop", write_tree(tmp_path / f"tree{number}", files))
        digests.add(make(tmp_path / str(number), [DOUBLE], manifests=[shop]).digest)
    assert len(digests) == 2, "equal tests, equal sets"


def runs(count: int, *, seconds: float = 0.1) -> dict[str, TestRun]:
    return {f"t.py::test_{number:02}": TestRun(passed=True, seconds=seconds, breadth=number) for number in range(count)}


def test_tests_that_the_reference_fails_are_left_out() -> None:
    held = runs(4)
    tried: list[tuple[str, ...]] = []

    def certificate(tests: tuple[str, ...]) -> tuple[str, str]:
        tried.append(tests)
        bad = [test for test in tests if test in ("t.py::test_01", "t.py::test_03")]
        if bad:
            return "reference_failed", f"{len(bad)} of {len(tests)} tests did not pass: {bad[0]}: failed in call"
        return "certified", ""

    found = certify(dict.fromkeys(held, frozenset({1})), held, certificate)
    assert (found.outcome, found.tests, found.covering) == (records.KEPT, ("t.py::test_00", "t.py::test_02"), 4)
    assert [len(tests) for tests in tried] == [4, 3, 2]


def test_if_an_empty_body_passes_other_tests_are_tried() -> None:
    held = runs(3 * MOST_TESTS)
    tried: list[tuple[str, ...]] = []

    def certificate(tests: tuple[str, ...]) -> tuple[str, str]:
        tried.append(tests)
        return ("certified" if "t.py::test_59" in tests else "blank_passed"), ""

    found = certify(dict.fromkeys(held, frozenset({1})), held, certificate)
    assert found.outcome == records.KEPT and len(tried) == 3 and "t.py::test_59" in found.tests
    assert len({test for tests in tried for test in tests}) == 60, "none is tried twice"
    none = certify(dict.fromkeys(held, frozenset({1})), held, lambda tests: ("blank_passed", ""))
    assert (none.outcome, none.tests, none.covering) == ("blank_passed", (), 60)


def test_failing_or_slow_tests_do_not_judge() -> None:
    failed = {"t.py::a": TestRun(passed=False, seconds=0.1, breadth=1), **runs(1, seconds=9.0)}
    found = certify(dict.fromkeys(failed, frozenset({1})), failed, lambda tests: ("certified", ""))
    assert (found.outcome, found.detail) == (
        records.NO_COVERING_TEST,
        "2 tests run the function, but none passes quickly",
    )
    slow = runs(8, seconds=3.0)
    found = certify(dict.fromkeys(slow, frozenset({1})), slow, lambda tests: ("certified", ""))
    assert found.outcome == records.TOO_SLOW
    assert certify({}, {}, lambda tests: ("certified", "")).outcome == records.NO_COVERING_TEST


OURS = """
from shop import Cart, unused


def test_unused():
    assert [unused(x) for x in (0, 1, -3)] == [3, 4, 0]


def test_double_too():
    from shop import double
    assert double(5) == 10
"""


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.network
def test_a_task_file_is_rebuilt_end_to_end_in_a_real_box(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    tree = write_tree(tmp_path / "tree", FILES)
    write_tree(tmp_path / "ours", {"test_ours.py": OURS})
    shop = repository(tmp_path, "shop", tree, _TESTS + 'added = "ours"\n')
    unused, nothing = (next(one for one in LOST if one.name == name) for name in ("unused", "nothing"))
    home = Home(tmp_path / "home")
    made = rebuild(
        tasks(tmp_path / "files", [DOUBLE, ROOT, unused, nothing]),
        home,
        "ce",
        sandbox=bubblewrap_sandbox,
        lock=lock_wheels,
        workers=2,
        manifests=[shop],
    )
    told = {one["name"]: one for one in made.manifest["tasks"].values()}
    assert [sample.name for sample in made.samples] == ["double", "root", "unused"]
    assert told["nothing"]["outcome"] == "blank_passed" and told["nothing"]["covering"] == 1
    assert [told[name]["judged_by"] for name in ("double", "root", "unused")] == ["both", "project", "ours"]
    assert made.samples[2].hidden == ("ctxbench_tests/", "tests/")
    (tmp_path / "ours" / "test_ours.py").unlink()
    found = verify(home, made, bubblewrap_sandbox, workers=2, report=print, tick=lambda _: None)
    assert (found.references_passed, found.blanks_passed, found.machine_faults) == (3, 0, 0), "the set brings its tests"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.network
def test_tasks_of_two_projects_are_rebuilt(tmp_path: Path, shared: Path, bubblewrap_sandbox: Sandbox) -> None:
    names = ("PanGu-Coder.Python.Raw_Input.jsonl_out.jsonl.gz", "CEPythonRaw.jsonl")
    read = read_tasks("codereval", [str(shared / "codereval" / name) for name in names]).tasks
    wanted = ("pexip/os-python-cachetools", "cpburnz/python-sql-parameters")
    first, second = ([task for task in read if record_of(task).project == project] for project in wanted)
    assert (len(read), len(first), len(second)) == (230, 14, 4)
    # Each task is judged several times, so use only some tasks of the larger project.
    asked = [*first[::7], *second]
    made = rebuild(asked, Home(tmp_path / "home"), "ce", sandbox=bubblewrap_sandbox, lock=lock_wheels, workers=2)
    assert {project: made.manifest["projects"][project]["kept"] for project in wanted} == {wanted[0]: 2, wanted[1]: 4}
    assert made.manifest["located"] == {"exact": 5, "inherited-docstring": 1} and made.manifest["unusable"] == {}
    assert all(made.references[sample.id].tests for sample in made.samples)

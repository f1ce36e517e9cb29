"""Adopting a repository: its source is resolved, its manifest is tried and corrected, then written or refused."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.adoption.adopt import Adoption, _test_doubts, adopt, check_ref, resolve
from ctxbench.bench.adoption.declared import declared
from ctxbench.bench.adoption.trial import AdoptionTools, Trial
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.files import sha256_file
from ctxbench.bench.functions.mining import Search
from ctxbench.bench.home import Home
from ctxbench.bench.judging import suites
from ctxbench.bench.repositories import manifest, pypi
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.repositories.sources import GitSource, LocalSource, PypiSource, Unreachable
from ctxbench.sandbox.errors import SandboxUnavailable
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import FILES, in_process
from tests.helpers.repositories import git
from tests.helpers.trees import write_tree

LOCK = ("pytest==9.2.0",)
SHOP: Mapping[str, str] = {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.4"\nlicense = "MIT"\n',
    "till.py": "from shop import double\n\n\ndef ring(amount):\n    return double(amount) + double(1)\n",
    **FILES,
}
UNDATED = "the release date is unknown; write the day as `released` (for an unchanged clone, the day of the commit)"
ONLY = "the tests ran only in fake; to check them elsewhere, repeat the command with another --sandbox"
Asked = list[tuple[str, ...]]


class Trying:
    """Adopts one folder, and records requirements and messages."""

    def __init__(self, folder: Path, files: Mapping[str, str] = SHOP) -> None:
        self.home, self.folder = Home(folder / "home"), folder / "manifests"
        self.tree = write_tree(folder / "shop", files)
        self.required: Asked = []
        self.said: list[str] = []
        self.lock_fault: Callable[[Sequence[str]], str] = lambda _: ""

    def lock(self, requirements: Sequence[str], project: str) -> tuple[str, ...]:
        self.required.append(tuple(sorted(item for item in requirements if not item.startswith(("pytest>", "cov")))))
        fault = self.lock_fault(requirements)
        if fault:
            raise SandboxUnavailable(f"wheels cannot be fetched: {fault}", where="x", cure="y")
        return (*LOCK, *(f"{item}==1" for item in sorted(requirements) if item.isalpha()))

    def adopt(self, sandbox: FakeSandbox | None, beside: FakeSandbox | None = None, **options: Any) -> Adoption:
        bench = AdoptionTools(sandbox=lambda: sandbox, lock=self.lock, beside=lambda: beside) if sandbox else None
        return adopt(str(self.tree), self.home, self.folder, bench, report=self.said.append, **options)


@pytest.fixture
def trying(tmp_path: Path) -> Trying:
    return Trying(tmp_path)


def covering(job: Job) -> Mapping[str, Any] | None:
    """Return the arguments of a job that runs the whole suite, or None for other jobs."""
    assert isinstance(job.action, Call)
    return job.action.arguments if job.action.function.endswith(":cover") else None


def outcome(result: Mapping[str, Any] | None, output: str = "") -> Outcome:
    return Outcome(ended=Ended.EXITED, exit_code=0, result=result, output=output, seconds=0.1)


def broken(*places: tuple[str, str]) -> Outcome:
    """Return the outcome of a suite whose files cannot be imported."""
    empty: dict[str, Any] = {"tests": [], "sets": [], "lines": {}, "modules": [], "imports": {}}
    return outcome({"exit": 2, "broken": [list(place) for place in places], **empty})


def test_adopting_a_folder_writes_a_correct_manifest_with_remarks(trying: Trying) -> None:
    adoption = trying.adopt(in_process())
    assert adoption.path == trying.folder / "shop.toml" and adoption.doubts == (UNDATED, ONLY)
    adopted = manifest.load(str(adoption.path))
    assert adopted == adoption.manifest
    assert (adopted.version, adopted.license, adopted.language) == ("1.4", "MIT", "python")
    assert adopted.tests is not None and adopted.tests.paths == ("tests",)
    assert adopted.tests.lock[: len(LOCK)] == LOCK
    # No index has a wheel of a local folder.
    assert not adopted.tests.wheel
    text = adoption.path.read_text()
    assert "# 6 lines can become samples." in text and "# 6 of 6 tests passed." in text
    assert "# 6 of 7 documented functions are covered by tests that can judge them." in text


def test_adopting_again_runs_no_tests_and_needs_force_to_replace(trying: Trying) -> None:
    first = trying.adopt(in_process()).path.read_text()
    sandbox = in_process()
    with pytest.raises(InputFault, match="exists already") as caught:
        trying.adopt(sandbox)
    assert "--force" in caught.value.cure and not sandbox.jobs
    assert trying.adopt(sandbox, force=True).path.read_text() == first
    assert not sandbox.jobs and "shop: using the cached coverage of 6 tests" in trying.said
    assert trying.adopt(sandbox, name="till").path.name == "till.toml"


def test_without_a_sandbox_no_tests_run(tmp_path: Path) -> None:
    adoption = Trying(tmp_path).adopt(None)
    assert (adoption.manifest.tests, adoption.lines) == (None, 6)
    assert "# The tests were not run." in adoption.path.read_text()


def test_missing_requirements_are_added_and_the_tests_run_again(trying: Trying) -> None:
    missing = [("tests/test_shop.py", "E   ModuleNotFoundError: No module named 'yaml'")]
    answers = [broken(*missing), None]
    adoption = trying.adopt(in_process(more=lambda job: answers.pop(0) if covering(job) and answers else None))
    assert trying.required == [(), ("PyYAML",)]
    assert adoption.manifest.tests is not None and adoption.manifest.tests.requirements == ("PyYAML",)
    assert "shop: trying again with requirements PyYAML" in trying.said
    assert adoption.doubts == (UNDATED, "requirements added because tests failed without them: PyYAML", ONLY)


def test_files_that_cannot_be_imported_are_left_out_with_the_cause(trying: Trying) -> None:
    def answer(job: Job) -> Outcome | None:
        arguments = covering(job)
        left_out = arguments is not None and "tests/test_old.py" in arguments["deselect"]
        return (
            None if arguments is None or left_out else broken(("tests/test_old.py", "x\nE   ImportError: no such name"))
        )

    adoption = trying.adopt(in_process(more=answer))
    assert adoption.manifest.tests is not None and adoption.manifest.tests.deselect == ("tests/test_old.py",)
    assert adoption.doubts == (
        UNDATED,
        "tests/test_old.py cannot be imported here and is left out: ImportError: no such name",
        ONLY,
    )
    assert trying.required == [(), ("pytest<9",), ("pytest<8",)], "older ones are tried before"


FAILURES = """
=================================== FAILURES ===================================
__________________________________ test_root ___________________________________
tests/test_shop.py:9: in test_root
    assert root(9) == 3
E   ConnectionError: nothing
E   is reached
=========================== short test summary info ============================
"""


def failing(*names: str) -> Callable[[Job], Outcome | None]:
    """Return a function that answers as if the named tests failed."""
    fake = in_process()

    def answer(job: Job) -> Outcome | None:
        if covering(job) is None:
            return None
        result = fake.answer(job).result
        assert isinstance(result, dict)
        result["tests"] = [
            [test, "failed" if test.endswith(names) else state, took] for test, state, took in result["tests"]
        ]
        return outcome(result | {"exit": 1}, FAILURES)

    return answer


def test_failing_tests_are_counted_and_named_with_their_last_error_line(trying: Trying) -> None:
    adoption = trying.adopt(in_process(more=failing("_root")))
    assert adoption.doubts == (
        UNDATED,
        ONLY,
        "1 of 6 tests failed here and will not judge completions: tests/test_shop.py::test_root (is reached)",
    )
    assert "# 5 of 6 tests passed (1 failed)." in adoption.path.read_text()
    again = trying.adopt(in_process(more=lambda _: pytest.fail("run again")), force=True)
    assert again.doubts == adoption.doubts, "causes are kept"


def test_if_no_test_runs_the_tests_table_is_commented_out(trying: Trying) -> None:
    adoption = trying.adopt(in_process(more=lambda job: outcome(None, "Segmentation fault") if covering(job) else None))
    assert adoption.trial is not None and adoption.trial.search is None and adoption.manifest.tests is None
    assert "Segmentation fault" in adoption.doubts[-1]
    text = adoption.path.read_text()
    assert "# [tests]\n" in text and '# paths = ["tests"]\n' in text and "\n[tests]" not in text


def test_a_requirement_missing_from_the_index_is_dropped_with_a_doubt(tmp_path: Path) -> None:
    files = {**SHOP, "pyproject.toml": SHOP["pyproject.toml"] + '[dependency-groups]\ntest = ["oddity>2", "six"]\n'}
    trying = Trying(tmp_path, files)
    trying.lock_fault = lambda required: "No matching distribution found for oddity>2" if "oddity>2" in required else ""
    adoption = trying.adopt(in_process())
    assert trying.required == [("oddity>2", "six"), ("six",)]
    assert adoption.doubts[1] == "requirements left out, because the index has no wheel for this Python: oddity>2"


@pytest.mark.parametrize("fault", ["Invalid requirement: 'of-another>dev'", "ResolutionImpossible: for help"])
def test_unsatisfiable_requirements_leave_a_manifest_without_tests(trying: Trying, fault: str) -> None:
    trying.lock_fault = lambda _: fault
    adoption = trying.adopt(in_process())
    assert adoption.manifest.tests is None and "\n# [tests]\n" in adoption.path.read_text()
    assert "no test ran" in adoption.doubts[-1] and fault in adoption.doubts[-1]


def test_an_unreachable_index_ends_adoption_without_a_manifest(trying: Trying) -> None:
    trying.lock_fault = lambda _: "the index does not answer"
    with pytest.raises(MachineFault, match="does not answer"):
        trying.adopt(in_process())
    assert not trying.folder.exists()


def test_an_archive_without_a_version_in_its_name_is_adopted_under_its_hash(trying: Trying, tmp_path: Path) -> None:
    trying.tree = Path(shutil.make_archive(str(tmp_path / "main"), "gztar", tmp_path, "shop"))
    adoption = trying.adopt(None)
    assert (adoption.path.name, adoption.lines) == ("main.toml", 6)
    assert adoption.manifest.version == sha256_file(trying.tree)[:12]


def test_a_file_that_is_not_an_archive_is_refused(trying: Trying) -> None:
    trying.tree = trying.tree / "till.py"
    with pytest.raises(InputFault, match="not a complete archive"):
        trying.adopt(None)


def test_a_repository_without_samples_is_refused_and_no_manifest_written(tmp_path: Path) -> None:
    trying = Trying(tmp_path, {"lonely.py": "x = 1\n"})
    with pytest.raises(InputFault, match="no usable lines and no usable functions"):
        trying.adopt(in_process())
    assert not trying.folder.exists()


def test_if_every_test_fails_the_tests_table_is_commented_out(tmp_path: Path) -> None:
    adoption = Trying(tmp_path).adopt(in_process(more=failing("")))
    assert adoption.manifest.tests is None and "# [tests]\n" in adoption.path.read_text()
    assert adoption.doubts[-2].startswith("6 of 6 tests failed here and ")
    assert "tests/test_shop.py::test_root (is reached)" in adoption.doubts[-2]
    assert adoption.doubts[-1] == "no test passed, so [tests] is commented out"


def test_a_requirement_that_could_not_be_tried_is_a_doubt(trying: Trying) -> None:
    trying.lock_fault = lambda required: "the index does not answer" if "PyYAML" in required else ""
    causes = FAILURES.replace("is reached", "ModuleNotFoundError: No module named 'yaml'")
    answer = failing("_root")
    fake = in_process(more=lambda job: replace(result, output=causes) if (result := answer(job)) else None)
    adoption = trying.adopt(fake)
    assert adoption.trial is not None and adoption.trial.passed == 5
    assert adoption.doubts[1].startswith("the tests could not be run with requirements PyYAML: ")
    assert "does not answer" in adoption.doubts[1]


@pytest.mark.parametrize(("second", "cause"), [(None, "cannot be collected"), (Ended.TIMED_OUT, "take longer than")])
def test_if_all_test_files_are_left_out_the_import_errors_are_the_cause(
    tmp_path: Path, second: Ended | None, cause: str
) -> None:
    def answer(job: Job) -> Outcome | None:
        arguments = covering(job)
        if arguments is None:
            return None
        if not arguments["deselect"]:
            return broken(("tests/test_shop.py", "E   ImportError: no such name"))
        nothing = broken()
        assert isinstance(nothing.result, dict)
        return replace(nothing, result=nothing.result | {"exit": 5}, ended=second or Ended.EXITED)

    adoption = Trying(tmp_path).adopt(in_process(more=answer))
    assert adoption.trial is not None and cause in str(adoption.trial.fault)
    assert "left out: ImportError: no such name" in adoption.doubts[1]


@pytest.mark.parametrize("name", ["My Shop", "../shop"])
def test_an_invalid_manifest_name_is_refused_before_anything_is_fetched(trying: Trying, name: str) -> None:
    with pytest.raises(InputFault, match="lower-case letters"):
        trying.adopt(in_process(), name=name)
    assert not trying.home.repos.exists() and not trying.folder.exists()


def test_an_invalid_version_is_replaced_by_zero(tmp_path: Path) -> None:
    files = {**SHOP, "pyproject.toml": '[project]\nname = "shop"\nversion = "as it comes"\n'}
    assert Trying(tmp_path, files).adopt(None).manifest.version == "0"


def test_a_long_running_suite_reports_its_progress(trying: Trying, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suites, "PULSE", 0.01)
    waiting = lambda job: time.sleep(0.2) if covering(job) else None  # noqa: E731
    trying.adopt(in_process(more=waiting))
    assert any(line.startswith("still running after 0 s of at most 900 s") for line in trying.said)
    said = len(trying.said)
    time.sleep(0.05)
    assert len(trying.said) == said


def test_files_left_out_by_the_miner_are_a_doubt() -> None:
    search = Search(candidates=(), hidden=(), counts={"tests_passed": 2}, left_out="3 test files left out: x")
    doubts = _test_doubts(Trial(TestSuite(), search))
    assert doubts[0] == "3 test files left out: x" and doubts[1].startswith("no documented function is covered")


OF_PYTEST = "E   ImportError: cannot import name 'notset' from '_pytest.monkeypatch'"


@pytest.mark.parametrize(("runs_with", "required"), [("pytest<9", 2), ("pytest<8", 3)])
def test_an_older_pytest_is_tried_before_files_are_left_out(trying: Trying, runs_with: str, required: int) -> None:
    def answer(job: Job) -> Outcome | None:
        is_broken = covering(job) is not None and runs_with not in trying.required[-1]
        return broken(("tests/test_shop.py", OF_PYTEST)) if is_broken else None

    adoption = trying.adopt(in_process(more=answer))
    assert adoption.manifest.tests is not None and adoption.manifest.tests.deselect == ()
    assert adoption.manifest.tests.requirements == (runs_with,) and len(trying.required) == required
    assert f"requirements added because tests failed without them: {runs_with}" in adoption.doubts


def test_an_older_pytest_is_used_only_if_more_tests_pass(trying: Trying) -> None:
    adoption = trying.adopt(in_process(more=failing("_root", "_double", "_put", "_nothing")))
    assert trying.required == [(), ("pytest<9",), ("pytest<8",)]
    assert adoption.manifest.tests is not None and adoption.manifest.tests.requirements == ()


def test_the_fault_of_a_trial_with_more_requirements_is_kept(tmp_path: Path) -> None:
    files = {**SHOP, "pyproject.toml": SHOP["pyproject.toml"] + '[dependency-groups]\ndev = ["PyYAML>=6"]\n'}
    trying = Trying(tmp_path, files)
    trying.lock_fault = lambda required: "six conflicts with it" if "PyYAML>=6" in required else ""
    missing = broken(("tests/test_shop.py", "E   ModuleNotFoundError: No module named 'yaml'"))
    answers = [missing, None]
    adoption = trying.adopt(in_process(more=lambda job: answers.pop(0) if covering(job) and answers else None))
    assert adoption.trial is not None and adoption.trial.passed
    assert any(doubt.startswith("the tests could not be run with requirements PyYAML>=6") for doubt in adoption.doubts)


def test_results_that_differ_between_back_ends_are_a_doubt(trying: Trying) -> None:
    beside = in_process(more=failing("_root"))
    beside.name = "other"
    adoption = trying.adopt(in_process(), beside)
    assert adoption.doubts[1:] == (
        "6 tests pass in fake, 5 in other; these tests differ: tests/test_shop.py::test_root",
    )
    assert "The tests ran in fake and in other." in adoption.remarks
    alike = in_process()
    alike.name = "alike"
    assert trying.adopt(in_process(), alike, force=True).doubts == (UNDATED,)
    beside.answer, beside.name = lambda _: outcome(None, "killed"), "third"
    assert trying.adopt(in_process(), beside, force=True).doubts[1].startswith("the tests could not be run in third")


def test_a_clone_without_changes_is_adopted_with_its_commit_and_day(trying: Trying, tmp_path: Path) -> None:
    (trying.tree / "link").symlink_to("shop.py")
    part = write_tree(tmp_path / "part", {"x.py": ""})
    for folder in (part, trying.tree):
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "x", "--date", "2020-01-02T03:04:05Z")
    git(trying.tree, "submodule", "--quiet", "add", str(part), "deep/part")
    git(trying.tree, "commit", "--quiet", "-m", "y")
    commit = git(trying.tree, "rev-parse", "HEAD")
    adopted = trying.adopt(in_process())
    assert adopted.manifest.sources == (GitSource(url=trying.tree.as_uri(), commit=commit),)
    day = git(trying.tree, "show", "--no-patch", "--format=%cs", commit)
    assert (str(adopted.manifest.released), adopted.manifest.version) == (day, commit[:12])
    assert adopted.doubts[0].endswith("so tests that need them fail: 1 link, submodule deep/part")
    assert "the source is a clone on this machine" in adopted.doubts[1]
    (trying.tree / "more.py").write_text("x = 1\n")
    changed = trying.adopt(None, name="changed")
    assert isinstance(changed.manifest.sources[0], LocalSource) and UNDATED in changed.doubts
    assert changed.doubts[0].endswith("1 link")


def test_commands_in_a_clones_git_configuration_do_not_run(trying: Trying, tmp_path: Path) -> None:
    git(trying.tree, "init", "--quiet")
    git(trying.tree, "add", ".")
    git(trying.tree, "commit", "--quiet", "-m", "x")
    for name, command in (("core.fsmonitor", "touch"), ("filter.x.clean", "cat; touch"), ("diff.external", "touch")):
        git(trying.tree, "config", name, f"{command} {tmp_path / 'ran'}")
    (trying.tree / ".git" / "info" / "attributes").write_text("* filter=x\n")
    for file in trying.tree.rglob("*.py"):
        file.touch()
    assert isinstance(trying.adopt(None).manifest.sources[0], GitSource)
    assert not (tmp_path / "ran").exists()
    git(trying.tree, "status")
    assert (tmp_path / "ran").exists(), "such a clone runs something where git itself is asked"


COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAMES = [
    ("pypi:Flask_SQLAlchemy==3.1", "flask_sqlalchemy"),
    ("debian:libcommons-cli-java", "commons-cli"),
    ("debian:opencsv=5.6", "opencsv"),
    (f"git+https://example.org/owner/Demo.git@{COMMIT}", "demo"),
]
WRONG = [
    ("pypi:demo", "pip index versions"),
    ("pypi:demo>=1", "pypi:NAME==VERSION"),
    ("git+https://example.org/x@main", "git ls-remote"),
    ("debian:Demo", "source package"),
    ("no/such/folder", "give pypi:NAME==VERSION"),
]


@pytest.mark.parametrize(("ref", "name"), NAMES)
def test_a_manifest_is_named_after_its_source(ref: str, name: str) -> None:
    assert check_ref(ref) == name


@pytest.mark.parametrize(("ref", "cure"), WRONG)
def test_an_invalid_source_is_refused_with_the_right_form(ref: str, cure: str) -> None:
    with pytest.raises(InputFault, match="is incomplete|is not a source") as caught:
        check_ref(ref)
    assert cure in caught.value.cure


def test_folders_and_archives_are_resolved_to_local_sources(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "My Repo").mkdir()
    folder = resolve(str(tmp_path / "My Repo"), home, print)
    assert (folder.name, folder.version, folder.source) == ("my-repo", "", LocalSource(path=tmp_path / "My Repo"))
    archive = tmp_path / "demo-2.0rc1.tar.gz"
    archive.write_bytes(b"x")
    packed = resolve(str(archive), home, print)
    assert (packed.name, packed.version) == ("demo", "2.0rc1")
    assert packed.source == LocalSource(path=archive, sha256=sha256_file(archive))


def test_a_commit_is_resolved_without_a_network(tmp_path: Path) -> None:
    origin = resolve(f"git+https://example.org/owner/demo@{COMMIT}", Home(tmp_path), print)
    assert (origin.version, origin.source) == (
        COMMIT[:12],
        GitSource(url="https://example.org/owner/demo", commit=COMMIT),
    )


def test_a_release_is_pinned_by_its_hash_in_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdist = tmp_path / "demo-1.0.tar.gz"
    sdist.write_bytes(b"x")
    monkeypatch.setattr(pypi, "configured", lambda: pypi.Configuration(indices=(), links=(str(tmp_path),)))
    origin = resolve("pypi:demo==1.0", Home(tmp_path), print)
    assert origin.source == PypiSource(name="demo", version="1.0", sha256=sha256_file(sdist))
    with pytest.raises(Unreachable, match="no sdist of version 3") as caught:
        resolve("pypi:demo==3", Home(tmp_path), print)
    assert "pip index versions demo" in caught.value.cure


def test_upload_dates_are_read_from_the_index() -> None:
    page = pypi.Page(
        "https://example.org/simple/demo/",
        "application/vnd.pypi.simple.v1+json",
        b'{"files": [{"filename": "demo-1.0.tar.gz", "url": "x", "hashes": {}, "upload-time": "2024-05-06T07:08:09Z"},'
        b' {"filename": "demo-2.0.tar.gz", "url": "y", "hashes": {}, "upload-time": 7}]}',
    )
    assert [offer.uploaded for offer in pypi._parse(page)] == [date(2024, 5, 6), None]


def test_deeply_nested_groups_are_read_once() -> None:
    groups = "".join(f'g{n} = [{{include-group = "g{n + 1}"}}, {{include-group = "g{n + 1}"}}]\n' for n in range(300))
    extras = "".join(f'e{n} = ["x[e{n + 1}]", "x[e{n + 1}]"]\n' for n in range(300))
    files = {
        "pyproject.toml": '[project]\nname = "x"\n[project.optional-dependencies]\n'
        f'{extras}e300 = ["six"]\n[dependency-groups]\n{groups}g300 = ["six"]\n',
        "pom.xml": "<license>" * 20_000,
        **{f"requirements/{n}.txt": f"-r {n + 1}.txt\n-r {n + 1}.txt\n" for n in range(1100)},
        "requirements/1100.txt": "six\n",
    }
    found = declared(files)
    assert {found.groups[name] for name in ("g0", "e0", "requirements/0.txt")} == {("six",)}

"""Building and verifying sets of function samples, over a back end that runs in this process."""

import fcntl
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.functions.build import build, verify
from ctxbench.bench.functions.certify import JOBS
from ctxbench.bench.functions.choose import MEASURING
from ctxbench.bench.home import Home
from ctxbench.bench.judging.judge import PUBLISHED_REUSE
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.sources import PypiSource
from ctxbench.bench.repository import view
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Kind
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.mining import FILES, TEST_FILE, TESTS, covered, in_process, local_manifest

LOCK = ("pytest==9.2.0",)
CERTIFIED = {"demo/shop.py::Cart.put", "demo/shop.py::double", "demo/shop.py::root"}


def make(tmp_path: Path, sandbox: FakeSandbox | None = None, *, name: str = "set", **changes: object) -> SampleSet:
    home = Home(tmp_path / "home")
    manifests = [local_manifest(tmp_path)]
    options = {"lock": lambda *_: LOCK, **changes}
    return build(manifests, home, name, sandbox=sandbox or in_process(), **options)  # type: ignore[arg-type]


def test_only_functions_that_their_tests_certify_become_samples(tmp_path: Path) -> None:
    said: list[str] = []
    made = make(tmp_path, report=said.append)
    assert {sample.id for sample in made.samples} == CERTIFIED
    assert "demo/shop.py::nothing: blank_passed" in said
    assert any(line.startswith("demo/shop.py::broken: reference_failed: 1 of 1 tests did not pass") for line in said)
    entry = made.manifest["repositories"]["demo"]
    assert entry["drops"] == {"blank_passed": 1, "flaky": 1, "not_covered": 1, "reference_failed": 1}
    counted = {key: entry[key] for key in ("functions", "documented", "covered", "candidates", "tried", "kept")}
    assert counted == {"functions": 9, "documented": 7, "covered": 6, "candidates": 6, "tried": 6, "kept": 3}
    assert entry["levels"] == {"slib_runnable": 1, "class_runnable": 1, "file_runnable": 1}
    assert made.manifest["kind"] == "function" and made.manifest["totals"]["kept"] == 3
    assert entry["tests"]["lock"] == list(LOCK) and entry["tests"]["paths"] == ["tests"]


def test_boxes_are_reused_while_only_references_and_mutants_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox, reuses = in_process(), list[int]()
    opened = sandbox.open

    def open_pool(*names: Any, reuse: int = 1, **more: Any) -> Any:
        reuses.append(reuse)
        return opened(*names, reuse=reuse, **more)

    monkeypatch.setattr(sandbox, "open", open_pool)
    made = make(tmp_path, sandbox)
    assert reuses == [1, PUBLISHED_REUSE], "the whole suite once, under coverage; then what certifies"
    verify(Home(tmp_path / "home"), made, sandbox, workers=1, report=print, tick=lambda _: None)
    assert reuses == [1, PUBLISHED_REUSE, PUBLISHED_REUSE]


def test_a_sample_is_the_file_around_the_body(tmp_path: Path) -> None:
    made = make(tmp_path)
    home = Home(tmp_path / "home")
    for sample in made.samples:
        text, reference = FILES[sample.path], made.references[sample.id]
        assert sample.kind is Kind.FUNCTION and sample.suffix is not None and sample.span is not None
        assert text.startswith(sample.prefix) and text.endswith(sample.suffix)
        body = text.removeprefix(sample.prefix).removesuffix(sample.suffix)
        assert body.strip() and body.strip() not in sample.prefix
        lines = text.split("\n")[slice(*sample.span)]
        assert [line.strip() for line in lines] == [line.strip() for line in reference.target.split("\n")]
        assert reference.target.startswith("def ") and sample.signature and sample.docstring
        assert sample.hidden == ("tests/",) and all(test.startswith(TEST_FILE) for test in reference.tests)
        shown = view(sets.snapshots(home, made)["demo"], sample.query(), sample.masked, sample.hidden)
        assert shown.files() == ("shop.py",), "tests are hidden"
        assert shown.read("shop.py") == sample.prefix + sample.suffix


def test_a_set_is_the_same_for_any_number_of_workers(tmp_path: Path) -> None:
    digests = {make(tmp_path, name=f"set{workers}", workers=workers).digest for workers in (1, 2, 5)}
    assert len(digests) == 1


def test_the_samples_of_a_repository_do_not_depend_on_other_repositories(tmp_path: Path) -> None:
    first, second = (local_manifest(tmp_path, name=name) for name in ("first", "second"))

    def built(*manifests: RepoManifest) -> SampleSet:
        home = Home(tmp_path / f"home{len(manifests)}")
        return build(manifests, home, "set", sandbox=in_process(), lock=lambda *_: LOCK, per_repo=2)

    both, alone = built(first, second), built(second)
    assert len(alone.samples) == 2
    assert alone.samples == tuple(sample for sample in both.samples if sample.repo == "second")
    assert alone.references == {sample.id: both.references[sample.id] for sample in alone.samples}
    assert alone.manifest["repositories"] == {"second": both.manifest["repositories"]["second"]}


def test_fewer_samples_are_a_prefix_of_more_and_cost_less(tmp_path: Path) -> None:
    more = make(tmp_path / "more")
    sandbox = in_process()
    fewer = make(tmp_path / "fewer", sandbox, per_repo=1)
    assert fewer.samples == more.samples[:1]
    tried = fewer.manifest["repositories"]["demo"]["tried"]
    # A function takes four jobs, two for its mutants, and two more if its blank passes. One function is started ahead.
    dropped = fewer.manifest["repositories"]["demo"]["drops"].get("blank_passed", 0)
    assert len(sandbox.jobs) <= 1 + (4 + MEASURING) * (tried + 1) + 2 * dropped + JOBS
    other = make(tmp_path / "other", per_repo=1, seed=3)
    assert other.manifest["seed"] == 3


def test_files_with_tests_are_hidden_whatever_their_names(tmp_path: Path) -> None:
    documented = 'def value():\n    """Documented, but of a test."""\n    return 7\n'
    checks = [f"checks/check_{what}.py" for what in ("broken", "skipped", "slow")]

    def more(job: Job) -> Outcome | None:
        """Answer with the coverage of a suite that also runs docstring examples."""
        if not _is_cover(job):
            return None
        result = covered(TESTS, FILES["shop.py"], {})
        rows = [*result["tests"], [f"{checks[1]}::check", "skipped", 0.0], ["shop.py::shop.double", "passed", 0.01]]
        broken = [[checks[0], "No module named 'server'"]]
        return suite(**{**result, "tests": rows, "broken": broken})

    manifest = local_manifest(tmp_path, {**FILES, **dict.fromkeys([*checks, "checking.py"], documented)})
    assert manifest.tests is not None
    manifest = replace(manifest, tests=replace(manifest.tests, deselect=(checks[2],)))
    home = Home(tmp_path / "home")
    made = build([manifest], home, "set", sandbox=in_process(more=more), lock=lambda *_: LOCK)
    assert {sample.id for sample in made.samples} == CERTIFIED
    assert {sample.hidden for sample in made.samples} == {(*checks, "tests/")}
    entry = made.manifest["repositories"]["demo"]
    assert (entry["source_files"], entry["left_out_test"]) == (2, 4)


CLOCK = {"tests/clock.py": "import time\ndef took():\n    return time.perf_counter()\n"}
ROOT = f"{TEST_FILE}::test_root"


def timed(tests: dict[str, str], failed: Collection[str] = ()) -> Outcome:
    """Return the coverage of a suite: `test_root` runs a line that reads a clock, and the `failed` tests failed."""
    result = covered(tests, FILES["shop.py"], {})
    rows = [[name, "failed" if name.partition("::")[2] in failed else said, 0.01] for name, said, _ in result["tests"]]
    lines = {"tests/clock.py": {"3": len(result["sets"])}, **result["lines"]}
    clocks = [*result["sets"], str(list(tests).index("test_root"))]
    return suite(**{**result, "tests": rows, "sets": clocks, "lines": lines})


def test_tests_that_read_a_clock_are_marked_and_counted(tmp_path: Path) -> None:
    sandbox = in_process(more=lambda job: timed(TESTS) if _is_cover(job) else None)
    home = Home(tmp_path / "home")
    made = build([local_manifest(tmp_path, {**FILES, **CLOCK})], home, "set", sandbox=sandbox, lock=lambda *_: LOCK)
    clocks = {name: reference.clocks for name, reference in made.references.items() if reference.clocks}
    assert clocks == {"demo/shop.py::root": (ROOT,)}
    assert sets.load(home, "set").references == made.references
    entry = made.manifest["repositories"]["demo"]
    assert (entry["kept_clocks_only"], entry["kept_clocks_too"], entry["tests_dropped"]) == (1, 0, {})


@pytest.mark.parametrize("passes", [True, False])
def test_a_failed_test_that_reads_a_clock_runs_again_alone(tmp_path: Path, passes: bool) -> None:
    home = Home(tmp_path / "home")
    runs: list[tuple[list[str], bool]] = []

    def busy(job: Job) -> Outcome | None:
        """Fail two tests of the suite. If `passes`, the test that reads a clock passes when it runs alone."""
        if not _is_cover(job):
            return None
        assert isinstance(job.action, Call)
        runs.append((job.action.arguments["paths"], _is_alone(home)))
        if len(runs) == 1:
            return timed(TESTS, ["test_root", "test_double"])
        return timed({"test_root": TESTS["test_root"]}, [] if passes else ["test_root"])

    manifest = local_manifest(tmp_path, {**FILES, **CLOCK})
    made = build([manifest], home, "set", sandbox=in_process(more=busy), lock=lambda *_: LOCK)
    assert runs == [(["tests"], False), ([ROOT], True)]
    assert ("demo/shop.py::root" in made.references) == passes and "demo/shop.py::double" not in made.references
    if passes:
        assert made.references["demo/shop.py::root"].clocks == (ROOT,), "what it ran alone is what it runs"
    again = build([manifest], home, "again", sandbox=in_process(more=busy), lock=lambda *_: LOCK)
    assert len(runs) == 2 and again.samples == made.samples, "both runs are kept"


def _is_alone(home: Home) -> bool:
    place = home.cache / "judging.room"
    if not place.exists():
        return False
    with place.open() as room:
        try:
            fcntl.flock(room, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_function_with_only_slow_tests_is_counted_as_too_slow(tmp_path: Path) -> None:
    def slow(job: Job) -> Outcome | None:
        if not _is_cover(job):
            return None
        result = covered(TESTS, FILES["shop.py"], {})
        rows = [[name, said, 5.0 if name == ROOT else 0.01] for name, said, _ in result["tests"]]
        return suite(**{**result, "tests": rows})

    entry = make(tmp_path, in_process(more=slow)).manifest["repositories"]["demo"]
    assert entry["drops"]["too_slow"] == entry["drops"]["not_covered"] == 1 and entry["covered"] == 6


def test_a_resumed_build_reuses_coverage_and_certificates(tmp_path: Path) -> None:
    left = 16

    def lose(job: Job) -> Outcome | None:
        nonlocal left
        left -= 1
        if left < 0:
            raise SandboxLost("the engine is gone", cure="start it")
        return None

    with pytest.raises(MachineFault, match="the engine is gone.*run the same command again"):
        make(tmp_path, in_process(more=lose))
    assert sets.names(Home(tmp_path / "home")) == ()
    sandbox = in_process()
    make(tmp_path, sandbox)
    assert not any(_is_cover(job) for job in sandbox.jobs), "coverage is kept"
    first = in_process()
    make(tmp_path / "elsewhere", first)
    assert len(sandbox.jobs) < len(first.jobs) - 1, "certificates are kept"
    torn = next((tmp_path / "home" / "cache" / "certificates").iterdir())
    torn.write_bytes(torn.read_bytes()[:-5])
    assert {sample.id for sample in make(tmp_path, name="after").samples} == CERTIFIED


def _is_cover(job: Job) -> bool:
    return isinstance(job.action, Call) and job.action.function.endswith(":cover")


def suite(output: str = "", **result: Any) -> Outcome:
    empty: dict[str, Any] = {"tests": [], "broken": [], "sets": [], "lines": {}, "modules": [], "imports": {}}
    return Outcome(ended=Ended.EXITED, exit_code=0, result={**empty, **result}, output=output)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(ended=Ended.TIMED_OUT), "take longer than"),
        (Outcome(ended=Ended.EXITED, exit_code=1, output="no module named x"), "no module named x"),
        (suite("no such folder", exit=4), "status 4: no such folder"),
        (
            suite("2 errors", exit=2, broken=[["tests/a.py", "E   no module x"], ["tests/b.py", "E   no module y"]]),
            "tests/a.py, tests/b.py cannot be collected; .* `requirements`, or list the files under `deselect`",
        ),
    ],
)
def test_a_suite_that_does_not_run_is_the_manifests_fault(tmp_path: Path, outcome: Outcome, said: str) -> None:
    reports: list[str] = []
    with pytest.raises(InputFault, match=said) as caught:
        make(tmp_path, in_process(more=lambda job: outcome if _is_cover(job) else None), report=reports.append)
    assert "demo" in str(caught.value)
    broken = outcome.result["broken"] if isinstance(outcome.result, dict) else []
    assert [line for line in reports if "collected" in line] == [
        f"demo: {where} cannot be collected: {' '.join(what.split())}" for where, what in broken
    ]
    assert not (tmp_path / "home" / "cache" / "coverage").exists(), "a failed run is not kept"


def test_an_invalid_build_is_refused_before_any_job_runs(tmp_path: Path) -> None:
    sandbox, home = in_process(), Home(tmp_path / "home")
    one = local_manifest(tmp_path)
    for manifests, said in (([one, one], "listed twice"), ([replace(one, tests=None)], "no \\[tests\\]")):
        with pytest.raises(InputFault, match=said):
            build(manifests, home, "set", sandbox=sandbox, lock=lambda *_: LOCK)
    with pytest.raises(InputFault, match="--per-repo"):
        build([one], home, "set", sandbox=sandbox, lock=lambda *_: LOCK, per_repo=0)
    assert sandbox.jobs == [] and sandbox.prepared == []


@pytest.mark.parametrize(
    ("reason", "fault", "cure"),
    [
        ("No matching distribution found for kit==2", InputFault, "write `wheel = false` in [tests]"),
        ("No matching distribution found for six==1", InputFault, "a copy of the manifest without `lock`"),
        ("No matching distribution found for other==1", MachineFault, "choose another version"),
    ],
)
def test_a_missing_wheel_is_reported_with_the_change_to_the_manifest(
    tmp_path: Path, reason: str, fault: type[Exception], cure: str
) -> None:
    def lock(requirements: object, project: str) -> tuple[str, ...]:
        assert project == "kit==2"
        raise SandboxUnavailable(f"wheels cannot be fetched: {reason}", cure="choose another version")

    local = local_manifest(tmp_path)
    assert local.tests is not None
    manifest = replace(
        local,
        version="2",
        sources=(*local.sources, PypiSource(name="kit", version="2", sha256="0" * 64)),
        tests=replace(local.tests, lock=("six==1",)),
    )
    with pytest.raises(fault) as caught:
        build([manifest], Home(tmp_path / "home"), "set", sandbox=in_process(), lock=lock)
    assert cure in str(caught.value)


def test_a_repository_without_a_sample_is_refused(tmp_path: Path) -> None:
    def time_out(job: Job) -> Outcome | None:
        return None if _is_cover(job) else Outcome(ended=Ended.TIMED_OUT)

    with pytest.raises(InputFault, match="reference_timed_out 6"):
        make(tmp_path, in_process(more=time_out))


def test_verifying_passes_all_references_and_fails_all_blanks(tmp_path: Path) -> None:
    made, ticks, said = make(tmp_path), list[int](), list[str]()
    found = verify(Home(tmp_path / "home"), made, in_process(), workers=2, report=said.append, tick=ticks.append)
    assert (found.references_passed, found.blanks_passed, len(found.checked)) == (3, 0, 3)
    assert found.faults == () and said == [] and sum(ticks) == 3
    assert [each.id for each in found.checked] == [sample.id for sample in made.samples]


def test_verifying_reports_failed_references_and_lost_boxes(tmp_path: Path) -> None:
    made, said = make(tmp_path), list[str]()
    first, second, third = (made.references[sample.id] for sample in made.samples)
    wrong = {
        first.id: replace(first, target=first.target.replace("return", "return not")),
        second.id: replace(second, tests=()),
        third.id: third,
    }
    home = Home(tmp_path / "home")
    changed = sets.save(home, "wrong", made.samples, wrong.values(), made.manifest)
    found = verify(home, changed, in_process(), workers=1, report=said.append, tick=lambda _: None)
    assert [(where, what) for where, what, _ in found.faults] == [(first.id, "reference"), (second.id, "reference")]
    assert "FAILED" in said[0] and "NO_TESTS" in said[1]

    def lose(job: Job) -> Outcome | None:
        raise SandboxLost("gone")

    found = verify(home, made, in_process(more=lose), workers=1, report=said.append, tick=lambda _: None)
    assert len(found.faults) == 6, "a lost box is no good blank either"


def test_a_set_of_lines_cannot_be_verified(tmp_path: Path) -> None:
    made = make(tmp_path)
    lines = [replace(sample, kind=Kind.LINE) for sample in made.samples]
    home = Home(tmp_path / "home")
    changed = sets.save(home, "lines", lines, made.references.values(), made.manifest)
    with pytest.raises(InputFault, match="--kind function"):
        verify(home, changed, in_process(), workers=1, report=print, tick=lambda _: None)

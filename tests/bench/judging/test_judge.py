import base64
import contextlib
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging import python as guest
from ctxbench.bench.judging import suites
from ctxbench.bench.judging.judge import MOST_CHARACTERS, PUBLISHED_REUSE, Judge
from ctxbench.bench.judging.python import PythonSuite
from ctxbench.bench.judging.suites import added_texts, entry, laid, read_tree, suite_of, tree_digest
from ctxbench.bench.judging.types import MOST_FLAGS, Verdict
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.samples import SampleSet
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import Call, Ended, Job, Outcome
from tests.bench.judging import told
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.trees import write_tree
from tests.sandbox.forgeries import shop

SUITE = TestSuite(requirements=("attrs",), pythonpath=".", paths=("tests",), deselect=("x",), notes="n")
LOCK = ("attrs==1", "pytest==9.2.0")


def make(tmp_path: Path, **changes: Any) -> tuple[Home, SampleSet]:
    home = Home(tmp_path / "home")
    root = write_tree(home.repos / "shop" / "1", shop.TREE)
    tests = entry(SUITE, LOCK, "shop==1", root) | changes
    # A judge uses the checkout as it is and does not compare snapshots.
    repository = {"language": "python", "checkout": "shop/1", "snapshot": "none", "tests": tests}
    manifest = {"repositories": {"shop": repository}}
    untested = replace(shop.sample(), id="shop/untested")
    references = [shop.reference(), replace(shop.reference(), id="shop/untested", tests=())]
    return home, sets.save(home, "demo", [shop.sample(), untested], references, manifest, force=True)


class Boxes(FakeSandbox):
    """Answers judging jobs and supplies bytecode. It is thread-safe if `judging` is."""

    def __init__(self, judging: Callable[[Job], Outcome], bytecode: Mapping[str, bytes] = MappingProxyType({})) -> None:
        super().__init__(self._answer)
        self.judging = judging
        self.bytecode = {path: base64.b64encode(zlib.compress(held)).decode() for path, held in bytecode.items()}

    def _answer(self, job: Job) -> Outcome:
        return told.outcome(self.bytecode) if _compiles(job) else self.judging(job)

    @property
    def judged(self) -> list[Job]:
        return [job for job in self.jobs if not _compiles(job)]


def _compiles(job: Job) -> bool:
    return isinstance(job.action, Call) and job.action.function == guest.COMPILE


TOTAL = shop.TARGETS["total"]
RIGHT = TOTAL.replace("sum(prices)", "sum([*prices])")


def passing(job: Job) -> Outcome:
    """Answer as a box would: the tests pass if the text is the reference."""
    assert isinstance(job.action, Call)
    said = job.action.arguments
    drawn = [type(told.CANARIES[0])(**each) for each in said["canaries"]]
    events = told.events(said["tests"], drawn)
    if job.files[shop.PATH] != shop.TREE[shop.PATH]:
        events[2][3:5] = ["failed", True]
    return told.outcome(told.result(events, nonce=said["nonce"]))


@contextlib.contextmanager
def judging(tmp_path: Path, answer: Callable[[Job], Outcome] = passing, **more: Any) -> Iterator[tuple[Judge, Boxes]]:
    home, made = make(tmp_path)
    fake = Boxes(answer)
    with Judge(home, made, fake, **{"width": 1, **more}) as judge:
        yield judge, fake


def test_the_reference_passes_and_the_blank_fails(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    fake = Boxes(passing)
    with Judge(home, made, fake, width=2) as judge:
        assert fake.prepared == [] and fake.opened == 0
        good = judge.judge(shop.sample(), TOTAL)
        blank = judge.judge(shop.sample(), suite_of(home, made, "shop").blank(shop.sample()))
        assert fake.opened == 1 and len(fake.prepared) == 1
    assert (good.verdict, good.tests_run) == (Verdict.PASSED, 6)
    assert blank.verdict is Verdict.FAILED
    assert fake.opened == 0


def test_every_job_has_its_own_secret(tmp_path: Path) -> None:
    with judging(tmp_path) as (judge, fake):
        for _ in range(3):
            judge.judge(shop.sample(), TOTAL)
    nonces = {job.action.arguments["nonce"] for job in fake.judged if isinstance(job.action, Call)}
    assert len(nonces) == 3


def test_an_outcome_of_another_job_is_tampering(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    kept: list[Outcome] = []

    def replay(job: Job) -> Outcome:
        kept.append(passing(job))
        return kept[0]

    with Judge(home, made, Boxes(replay), width=1) as judge:
        assert judge.judge(shop.sample(), TOTAL).verdict is Verdict.PASSED
        assert judge.judge(shop.sample(), TOTAL).reason.startswith("tampered")


@pytest.mark.parametrize(
    ("text", "reason"), [("I am sorry.", "defines no function 'total'"), (TOTAL + "#" * MOST_CHARACTERS, "")]
)
def test_an_unusable_or_oversized_text_fails_without_a_box(tmp_path: Path, text: str, reason: str) -> None:
    with judging(tmp_path) as (judge, fake):
        found = judge.judge(shop.sample(), text)
    assert found.verdict is Verdict.FAILED and reason in found.reason
    assert fake.judged == []


def test_a_closed_judge_opens_no_box(tmp_path: Path) -> None:
    with judging(tmp_path) as (judge, fake):
        pass
    with pytest.raises(MachineFault, match="closed"):
        judge.judge(shop.sample(), TOTAL)
    assert fake.opened == 0


def test_a_sample_without_tests_has_the_verdict_no_tests(tmp_path: Path) -> None:
    with judging(tmp_path) as (judge, _):
        assert judge.judge(replace(shop.sample(), id="shop/untested"), TOTAL).verdict is Verdict.NO_TESTS


def raising(error: Exception) -> Callable[..., Any]:
    def answer(*_: object, **__: object) -> Any:
        raise error

    return answer


def test_a_lost_box_is_broken_and_the_next_job_is_tried(tmp_path: Path) -> None:
    lost = SandboxLost("the engine went away", where="docker", cure="start it")
    with judging(tmp_path, raising(lost)) as (judge, fake):
        found = judge.judge(shop.sample(), TOTAL)
        assert (found.verdict, found.reason) == (Verdict.BROKEN, "docker: the engine went away; start it")
        fake.judging = passing
        assert judge.judge(shop.sample(), TOTAL).verdict is Verdict.PASSED


def test_boxes_are_reused_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, made = make(tmp_path)
    fake = Boxes(passing)
    settings: list[dict[str, Any]] = []
    opened = fake.open
    monkeypatch.setattr(fake, "open", lambda *names, **more: settings.append(more) or opened(*names, **more))
    for more in ({}, {"reuse": PUBLISHED_REUSE}):
        with Judge(home, made, fake, width=1, **more) as judge:
            judge.judge(shop.sample(), TOTAL)
            judge.failing(shop.sample(), shop.reference(), TOTAL)
    assert [setting["reuse"] for setting in settings] == [1, PUBLISHED_REUSE]


@pytest.mark.parametrize("step", ["prepare", "open"])
def test_an_unavailable_sandbox_is_a_machine_fault_in_one_line(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = SandboxUnavailable("no engine answers", where="docker", cure="start it")
    monkeypatch.setattr(Boxes, step, raising(fault))
    with judging(tmp_path) as (judge, _), pytest.raises(MachineFault) as caught:
        judge.judge(shop.sample(), TOTAL)
    assert str(caught.value) == "docker: no engine answers; start it"


def test_the_image_depends_on_the_lock_and_not_on_the_width(tmp_path: Path) -> None:
    home, made = make(tmp_path / "a")
    other_home, other = make(tmp_path / "b", lock=["attrs==2", "pytest==9.2.0"])
    with (
        Judge(home, made, Boxes(passing), width=1) as judge,
        Judge(home, made, Boxes(passing), width=8) as again,
        Judge(other_home, other, Boxes(passing), width=1) as another,
    ):
        image = judge.image(shop.sample())
        assert image == again.image(shop.sample()) != another.image(shop.sample())
        assert len(image) == 64


def test_many_threads_share_one_pool(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    fake = Boxes(passing)
    barrier = threading.Barrier(4)

    def judged(_: int) -> Verdict:
        barrier.wait()
        return judge.judge(shop.sample(), TOTAL).verdict

    with Judge(home, made, fake, width=2) as judge, ThreadPoolExecutor(4) as threads:
        assert set(threads.map(judged, range(8))) == {Verdict.PASSED}
        assert fake.opened == 1 and len(fake.judged) == 8


def test_a_suite_is_restored_from_the_sets_manifest(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    wanted = PythonSuite(SUITE, LOCK, "shop==1", shop.TREE)
    assert suite_of(home, made, "shop").environment == wanted.environment


def test_missing_tests_and_checkouts_are_reported_with_a_cure(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    with pytest.raises(InputFault, match="has no tests for 'other'; .*--kind function"):
        suite_of(home, made, "other")
    (home.repos / "shop/1/tests/conftest.py").write_text("# changed")
    with pytest.raises(InputFault, match="have changed since the sample set 'demo' was built; remove this folder"):
        suite_of(home, made, "shop")
    with pytest.raises(InputFault, match="'shop' has not been fetched; run `ctxbench repo fetch shop`"):
        suite_of(Home(tmp_path / "nowhere"), made, "shop")


def test_an_imported_set_without_tests_is_refused_with_a_cure(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    for source, cure in (("codereval", "import the set again with --rebuild"), ("repoeval", "--kind function")):
        manifest = {"imported_from": source, "repositories": {"shop": {"language": "python"}}}
        with pytest.raises(InputFault, match=f"has no tests for 'shop'; .*{cure}"):
            suite_of(home, replace(made, manifest=manifest), "shop")


def test_a_manifest_with_wrong_types_is_refused(tmp_path: Path) -> None:
    home, made = make(tmp_path, lock="pytest")
    with pytest.raises(InputFault, match="lock is not a list of strings; build the set again"):
        suite_of(home, made, "shop")


def test_added_tests_are_read_from_the_sets_own_copy(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    with pytest.raises(InputFault, match="the folder contains no test"):
        added_texts(folder)
    (folder / "test_more.py").write_text("def test_more():\n    pass\n")
    held = entry(replace(SUITE, added=folder), LOCK, "shop==1", make(tmp_path / "a")[0].repos / "shop" / "1")
    home, made = make(tmp_path / "b", **held)
    shutil.rmtree(folder)
    suite = suite_of(home, made, "shop")
    assert suite.environment.tree["ctxbench_tests/test_more.py"] == b"def test_more():\n    pass\n"
    assert {**shop.TREE, "ctxbench_tests/test_more.py": b""}.keys() == suite.environment.tree.keys()
    home, made = make(tmp_path / "c", **{**held, "added": {"test_more.py": "def test_other():\n    pass\n"}})
    with pytest.raises(InputFault, match="have changed since the sample set 'demo' was built"):
        suite_of(home, made, "shop")
    home, made = make(tmp_path / "d", added={"test_more.py": 1})
    with pytest.raises(InputFault, match="added is not a table of strings"):
        suite_of(home, made, "shop")
    with pytest.raises(InputFault, match="already has a folder ctxbench_tests/"):
        laid({"ctxbench_tests/a.py": b""}, {"b.py": ""})


def test_a_tree_omits_links_and_compiled_files_and_has_a_size_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in ("a.py", "b/c.py", "b/c.pyc", "__pycache__/a.pyc", ".git/config"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("12345")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    found = read_tree(tmp_path)
    assert found == {"a.py": b"12345", "b/c.py": b"12345"}
    assert tree_digest(found) == tree_digest(dict(reversed(found.items()))) != tree_digest({"a.py": b""})
    monkeypatch.setattr(suites, "MAX_BYTES", 9)
    with pytest.raises(InputFault, match="larger than"):
        read_tree(tmp_path)


def test_a_job_that_ran_out_of_time_is_a_timeout(tmp_path: Path) -> None:
    with judging(tmp_path, lambda job: Outcome(ended=Ended.TIMED_OUT)) as (judge, _):
        assert judge.judge(shop.sample(), TOTAL).verdict is Verdict.TIMED_OUT


def test_flags_are_added_to_the_verdict_and_do_not_change_it(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    reached = RIGHT + "\n\nimport gc\n"

    def box(job: Job) -> Outcome:
        return passing(replace(job, files={shop.PATH: shop.TREE[shop.PATH]}))

    with Judge(home, made, Boxes(box), width=1) as judge:
        found = judge.judge(shop.sample(), reached)
        assert (found.verdict, found.flags) == (Verdict.PASSED, ("line 8: imports gc",))
        assert judge.judge(shop.sample(), RIGHT).flags == ()
        many = "\n".join(f"import gc.part{number}" for number in range(20))
        assert len(judge.judge(shop.sample(), f"{RIGHT}\n{many}\n").flags) == MOST_FLAGS
    with Judge(home, made, Boxes(passing), width=1) as judge:
        failed = judge.judge(shop.sample(), reached)
        assert (failed.verdict, failed.flags) == (Verdict.FAILED, ("line 8: imports gc",))


def test_another_version_of_the_judge_has_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with judging(tmp_path) as (judge, _):
        now = judge.image(shop.sample())
    monkeypatch.setattr("ctxbench.bench.judging.judge.VERSION", 1)
    with judging(tmp_path) as (judge, _):
        assert judge.image(shop.sample()) != now


class Busy:
    """Answers as a box in which some tests fail the first times. Records how many jobs run at once."""

    def __init__(self, *failing: tuple[int, ...]) -> None:
        self.failing, self.lock = list(failing), threading.Lock()
        self.running, self.beside = 0, list[int]()
        self.begun, self.release = threading.Semaphore(0), threading.Event()

    def __call__(self, job: Job) -> Outcome:
        assert isinstance(job.action, Call)
        said = job.action.arguments
        with self.lock:
            self.running += 1
            self.beside.append(self.running)
        self.begun.release()
        if "hold" in job.files[shop.PATH].decode():
            assert self.release.wait(60)
        failing = self.failing.pop(0) if self.failing and "hold" not in job.files[shop.PATH].decode() else ()
        drawn = [type(told.CANARIES[0])(**each) for each in said["canaries"]]
        events = told.events(said["tests"], drawn)
        for test in failing:
            events[2 + 3 * test][3:5] = ["failed", True]
        with self.lock:
            self.running -= 1
        return told.outcome(told.result(events, nonce=said["nonce"]))


def timed(tmp_path: Path, *clocks: int) -> tuple[Home, SampleSet]:
    """Return a set in which some tests of the first sample read a clock."""
    home, made = make(tmp_path)
    first = made.references[shop.sample().id]
    references = [
        replace(first, clocks=tuple(first.tests[number] for number in clocks)),
        made.references["shop/untested"],
    ]
    return home, sets.save(home, "timed", made.samples, references, made.manifest)


@pytest.mark.parametrize(
    ("clocks", "failing", "verdict", "twice"),
    [
        ((0, 1), [(0,)], Verdict.PASSED, True),
        ((0, 1), [(0, 1), (1,)], Verdict.FAILED, True),
        ((0,), [(0, 1)], Verdict.FAILED, False),
        ((), [(0,)], Verdict.FAILED, False),
        ((0, 1), [], Verdict.PASSED, False),
    ],
)
def test_a_completion_that_fails_only_clock_tests_is_judged_again(
    tmp_path: Path, clocks: tuple[int, ...], failing: list[tuple[int, ...]], verdict: Verdict, twice: bool
) -> None:
    home, made = timed(tmp_path, *clocks)
    busy = Busy(*failing)
    with Judge(home, made, Boxes(busy), width=1) as judge:
        found = judge.judge(shop.sample(), RIGHT)
    assert found.verdict is verdict and len(busy.beside) == 1 + twice
    assert bool(found.earlier) == twice
    assert not twice or found.earlier.startswith("FAILED: ")


def test_a_clock_test_must_detect_a_fault_alone_too(tmp_path: Path) -> None:
    home, made = timed(tmp_path, 0, 1)
    reference, tests = made.references[shop.sample().id], shop.reference().tests
    busy = Busy((0, 1, 2), (1,))
    with Judge(home, made, Boxes(busy), width=1) as judge:
        assert judge.failing(shop.sample(), reference, RIGHT) == {tests[1], tests[2]}
        assert len(busy.beside) == 2
        assert judge.failing(shop.sample(), reference, RIGHT) == frozenset() and len(busy.beside) == 3


@pytest.mark.parametrize("ended", [Ended.TIMED_OUT, Ended.KILLED])
def test_a_trial_that_a_busy_machine_may_have_ended_is_repeated(tmp_path: Path, ended: Ended) -> None:
    home, made = make(tmp_path)
    reference, busy, ends = shop.reference(), Busy((0,)), [ended, ended, ended]

    def answer(job: Job) -> Outcome:
        return Outcome(ended=ends.pop(), output="") if ends else busy(job)

    with Judge(home, made, Boxes(answer), width=1) as judge:
        assert judge.failing(shop.sample(), reference, RIGHT) is None and len(ends) == 1
        assert judge.failing(shop.sample(), reference, RIGHT) == {reference.tests[0]}


def test_a_judge_that_is_not_lenient_judges_once(tmp_path: Path) -> None:
    home, made = timed(tmp_path, 0, 1)
    with Judge(home, made, Boxes(Busy((0,))), width=1) as judge:
        found = judge.judge(shop.sample(), RIGHT, lenient=False)
    assert found.verdict is Verdict.FAILED and found.failed == shop.reference().tests[:1]


def test_a_second_judgement_runs_alone_in_the_home(tmp_path: Path) -> None:
    home, made = timed(tmp_path, 0, 1)
    busy = Busy((0,))
    with (
        ThreadPoolExecutor(2) as threads,
        Judge(home, made, Boxes(busy), width=2) as judge,
        # Another process would open its own judge on the same home.
        Judge(home, made, Boxes(busy), width=2) as other,
    ):
        long = threads.submit(other.judge, shop.sample(), RIGHT + "# hold\n")
        assert busy.begun.acquire(timeout=60)
        short = threads.submit(judge.judge, shop.sample(), RIGHT)
        assert busy.begun.acquire(timeout=60)
        assert not short.done() and busy.beside == [1, 2]
        busy.release.set()
        assert long.result().verdict is Verdict.PASSED and short.result().verdict is Verdict.PASSED
    assert busy.beside == [1, 2, 1]


def test_jobs_get_the_bytecode_except_of_the_file_that_they_change(tmp_path: Path) -> None:
    home, made = make(tmp_path)
    tests, target = "tests/__pycache__/test_prices.cpython-311-pytest-9.2.0.pyc", "shop/__pycache__/prices.311.pyc"
    assert shop.PATH == "shop/prices.py"
    fake = Boxes(passing, {tests: b"rewritten", target: b"the answer", "shop/other.py": b"no bytecode"})
    for _ in range(2):  # the second judge finds it in the cache
        with Judge(home, made, fake, width=1) as judge:
            for _ in range(2):
                assert judge.judge(shop.sample(), TOTAL).verdict is Verdict.PASSED
    assert [dict(job.files) for job in fake.judged] == [{tests: b"rewritten", shop.PATH: shop.TREE[shop.PATH]}] * 4
    (compiling,) = [job for job in fake.jobs if _compiles(job)]
    assert isinstance(compiling.action, Call) and not compiling.files
    assert compiling.action.arguments == {
        "paths": ["tests/test_carts.py", "tests/test_prices.py"],
        "arguments": [],
    }


@pytest.mark.parametrize("answer", [None, [], {"tests/__pycache__/a.pyc": "%"}, {"tests/__pycache__/a.pyc": "YQ=="}])
def test_without_bytecode_the_verdict_is_the_same(tmp_path: Path, answer: Any) -> None:
    home, made = make(tmp_path)
    fake = FakeSandbox(lambda job: told.outcome(answer) if _compiles(job) else passing(job))
    with Judge(home, made, fake, width=1) as judge:
        assert judge.judge(shop.sample(), TOTAL).verdict is Verdict.PASSED
    assert [dict(job.files) for job in fake.jobs] == [{}, {shop.PATH: shop.TREE[shop.PATH]}]

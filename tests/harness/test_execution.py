"""Verdicts on functions, each judged only once, and programs of strategies, each in its own box."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.bench.judging.types import Judgement, Verdict
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.run.batching import Stopped
from ctxbench.harness.run.execution import (
    GIVE_UP,
    OUTPUT,
    OUTPUT_KEPT,
    SECONDS,
    Executor,
    open_executor,
    open_tools,
    sample_digest,
    verdict_key,
)
from ctxbench.harness.store import Store, open_store
from ctxbench.harness.store.write import StoredVerdict
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import Command, Ended, Job, Outcome
from ctxbench.strategies.api import Execution
from tests.helpers import sandboxes
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.functions import FakeJudge, make_function_set
from tests.helpers.sandboxes import BACK_ENDS

EXITED = Outcome(ended=Ended.EXITED, exit_code=0, output="4\n")


@pytest.fixture
def sample_set(home: Home) -> SampleSet:
    return make_function_set(home)


class Bench:
    def __init__(self, home: Home, sample_set: SampleSet, store: Store) -> None:
        self.home, self.set, self.store = home, sample_set, store
        self.sample = sample_set.samples[0]
        self.right = sample_set.references[self.sample.id].target

    def open(self, judge: FakeJudge, *, width: int = 2, sandbox: str | None = None) -> Any:
        return open_executor(
            width, home=self.home, store=self.store, sample_set=self.set, sandbox=sandbox, judges=judge.open
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.store.reading() as connection:
            return [tuple(row) for row in connection.execute(sql(query))]


@pytest.fixture
def bench(home: Home, sample_set: SampleSet, store: Store) -> Bench:
    return Bench(home, sample_set, store)


def test_a_verdict_is_stored_with_its_image_sandbox_and_costs(bench: Bench) -> None:
    judge = FakeJudge(bench.set)
    with bench.open(judge, sandbox="bubblewrap") as executor:
        verdict = executor.verdict(bench.sample, bench.right)
    assert (verdict.verdict, verdict.tests_run, verdict.peak_bytes, verdict.sandbox) == (
        "PASSED",
        1,
        1 << 33,
        "bubblewrap",
    )
    assert bench.rows("SELECT verdict, image, sandbox, tests_run, seconds, peak_bytes FROM verdict") == [
        ("PASSED", "image-kit0", "bubblewrap", 1, 0.5, 1 << 33)
    ]
    assert judge.closed == 1


def test_a_stored_verdict_is_not_judged_again(bench: Bench) -> None:
    judge = FakeJudge(bench.set)
    for _ in range(2):
        with bench.open(judge) as executor:
            first, again = (executor.verdict(bench.sample, bench.right) for _ in range(2))
            assert first == again
    assert len(judge.asked) == 1 and judge.images == {"kit0": 2}


def test_a_verdict_key_covers_everything_that_decides_the_verdict(bench: Bench) -> None:
    sample, other = bench.set.samples[:2]
    digest = sample_digest(bench.set, sample)
    keys = {
        verdict_key(digest, "a", "image"),
        verdict_key(digest, "b", "image"),
        verdict_key(digest, "a", "another image"),
        verdict_key(sample_digest(bench.set, other), "a", "image"),
        verdict_key(sample_digest(_changed(bench.set, "tests"), sample), "a", "image"),
        verdict_key(sample_digest(_changed(bench.set, "snapshot"), sample), "a", "image"),
    }
    assert len(keys) == 6
    assert sample_digest(_changed(bench.set, "cure"), sample) == digest


def _changed(sample_set: SampleSet, field: str) -> SampleSet:
    entries = {repo: {**entry, field: "other"} for repo, entry in sample_set.manifest["repositories"].items()}
    manifest = {**sample_set.manifest, "repositories": entries}
    return SampleSet(sample_set.name, sample_set.digest, sample_set.samples, sample_set.references, manifest)


def test_equal_concurrent_requests_are_judged_once(bench: Bench) -> None:
    judge = FakeJudge(bench.set, delay=0.2)
    with bench.open(judge, width=4) as executor, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: executor.verdict(bench.sample, bench.right), range(8)))
    assert len(judge.asked) == 1 and len(set(found)) == 1 and len(found) == 8


def test_at_most_width_completions_are_judged_at_once(bench: Bench) -> None:
    judge = FakeJudge(bench.set, delay=0.02)
    with bench.open(judge, width=3) as executor:
        begun = [executor.submit(bench.sample, f"{bench.right}\n# {n}") for n in range(20)]
        assert {executor.wait(one).verdict for one in begun} == {"PASSED"}
    assert judge.most == 3 and len(judge.asked) == 20 and judge.images == {"kit0": 1}


def test_two_processes_store_one_verdict(bench: Bench) -> None:
    judges = [FakeJudge(bench.set, delay=0.1, answer=lambda *_, n=n: _judged(reason=str(n))) for n in range(2)]

    def work(judge: FakeJudge) -> StoredVerdict:
        with (
            open_store(bench.home.database) as store,
            Bench(bench.home, bench.set, store).open(judge, width=1) as executor,
        ):
            return executor.verdict(bench.sample, "x")

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(work, judges)
    assert first == second
    assert len(bench.rows("SELECT * FROM verdict")) == 1


def _judged(verdict: Verdict = Verdict.FAILED, **changes: Any) -> Judgement:
    return Judgement(verdict=verdict, **changes)


@pytest.mark.parametrize("lost", [None, SandboxLost("its box went away", where="box 7"), MachineFault("no box")])
def test_a_broken_verdict_is_a_fault_and_is_judged_again(bench: Bench, lost: Exception | None) -> None:
    def answer(*_: object) -> Judgement:
        if lost is not None:
            raise lost
        return _judged(Verdict.BROKEN, reason="three boxes were lost")

    with bench.open(FakeJudge(bench.set, answer=answer)) as executor, pytest.raises(MachineFault) as caught:
        executor.verdict(bench.sample, bench.right)
    assert (str(lost) if lost else "three boxes were lost") in str(caught.value)
    assert bench.sample.id in str(caught.value) and "doctor" in str(caught.value)
    assert bench.rows("SELECT * FROM verdict") == []
    with bench.open(FakeJudge(bench.set)) as executor:
        assert executor.verdict(bench.sample, bench.right).verdict == "PASSED"


def test_a_repository_that_breaks_repeatedly_is_given_up_and_others_continue(bench: Bench) -> None:
    def answer(sample: Sample, text: str) -> Judgement:
        return _judged(Verdict.BROKEN if sample.repo == "kit0" else Verdict.PASSED)

    judge = FakeJudge(bench.set, answer=answer)
    with bench.open(judge, width=1) as executor:
        begun = [executor.submit(sample, str(n)) for n in range(10) for sample in bench.set.samples[2:4]]
        faults = [one for one in begun if one.exception()]
    assert {sample.repo for sample in bench.set.samples[2:4]} == {"kit0", "kit1"}
    assert len(faults) == 10 and sum("kit0" in id_ for id_, _ in judge.asked) == GIVE_UP
    assert f"ended without a verdict {GIVE_UP} times in a row" in str(faults[-1].exception())


def test_occasional_broken_verdicts_do_not_give_up_a_repository(bench: Bench) -> None:
    judge = FakeJudge(bench.set, answer=lambda _, text: _judged(Verdict.PASSED if int(text) % 3 else Verdict.BROKEN))
    with bench.open(judge, width=1) as executor:
        begun = [executor.submit(bench.sample, str(n)) for n in range(12)]
        assert sum(one.exception() is None for one in begun) == 8
    assert len(judge.asked) == 12


def test_an_image_that_cannot_be_built_is_tried_once(bench: Bench) -> None:
    def image(sample: Sample) -> str:
        if sample.repo == "kit0":
            raise SandboxUnavailable("no wheel fits", where="numpy", cure="choose another version")
        return "image"

    judge = FakeJudge(bench.set, image=image)
    with bench.open(judge) as executor:
        for sample in (*bench.set.samples[:3], *bench.set.samples[:3]):
            with pytest.raises(MachineFault, match="numpy: no wheel fits; choose another version"):
                executor.verdict(sample, "x")
        assert executor.verdict(bench.set.samples[-1], "x").verdict == "FAILED"
    assert judge.images == {"kit0": 1, "kit1": 1}


def test_a_bug_in_the_judge_is_not_reported_as_a_machine_fault(bench: Bench) -> None:
    def answer(*_: object) -> Judgement:
        raise ZeroDivisionError

    with bench.open(FakeJudge(bench.set, answer=answer)) as executor, pytest.raises(ZeroDivisionError):
        executor.verdict(bench.sample, "x")


def test_long_output_is_cut_in_the_middle(bench: Bench) -> None:
    output = f"first {'x' * 100_000} last"
    with bench.open(FakeJudge(bench.set, answer=lambda *_: _judged(output=output, reason="two\nlines"))) as executor:
        verdict = executor.verdict(bench.sample, "x")
    assert verdict.reason == "two lines"
    assert verdict.output.startswith("first") and verdict.output.endswith("last") and "omitted" in verdict.output
    assert len(verdict.output) < OUTPUT_KEPT + 100


def test_invalid_characters_are_replaced_before_judging(bench: Bench) -> None:
    judge = FakeJudge(bench.set, answer=lambda *_: _judged(output="\0\ud800", reason="\ud800"))
    with bench.open(judge) as executor:
        first = executor.verdict(bench.sample, "a\ud800\0")
        assert executor.verdict(bench.sample, "a?\ufffd") == first
    assert judge.asked == [(bench.sample.id, "a?\ufffd")]


def test_an_interrupt_releases_waiting_threads(bench: Bench) -> None:
    """An interrupt ends running tests with their box, drops waiting ones and leaves no thread."""
    threads = threading.active_count()
    judge = FakeJudge(bench.set, delay=60)
    caught: list[BaseException] = []
    waiting: list[threading.Thread] = []

    def ask(executor: Executor, text: str) -> None:
        try:
            executor.verdict(bench.sample, text)
        except MachineFault as fault:
            caught.append(fault)

    with pytest.raises(KeyboardInterrupt), bench.open(judge, width=2) as executor:
        waiting += [threading.Thread(target=ask, args=(executor, str(n))) for n in range(6)]
        for thread in waiting:
            thread.start()
        while len(judge.asked) < 2:
            threading.Event().wait(0.01)
        raise KeyboardInterrupt
    for thread in waiting:
        thread.join(10)
    assert len(caught) == 6 and sum(isinstance(one, Stopped) for one in caught) == 4
    assert threading.active_count() == threads and bench.rows("SELECT * FROM verdict") == []
    with pytest.raises(Stopped):
        executor.verdict(bench.sample, "later")


def run(
    answer: Outcome | Callable[[Job], Outcome], program: str = "print(2 + 2)", **how: float
) -> tuple[Execution, Job]:
    sandbox = FakeSandbox(answer if callable(answer) else lambda _: answer)
    with open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=lambda *_: sandbox) as execute:
        done = execute(program, **how)
    assert sandbox.opened == 0
    return done, sandbox.jobs[0]


def test_a_program_runs_as_a_file_in_an_isolated_interpreter() -> None:
    done, job = run(EXITED)
    assert done == Execution(finished=True, output="4")
    assert job.action == Command(argv=("python3", "-I", "program.py")) and job.seconds == 10.0
    assert job.files == {"program.py": b"print(2 + 2)"}
    assert run(EXITED, "x = '\ud800'")[1].files == {"program.py": b"x = '?'"}, "text that is no text is no fault"


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(ended=Ended.EXITED, exit_code=1, output="NameError: x\n"), "NameError: x"),
        (Outcome(ended=Ended.TIMED_OUT, output="begun\n"), "begun\ntimed out after 10 seconds"),
        (Outcome(ended=Ended.KILLED, signal=6), "killed by signal 6"),
        (Outcome(ended=Ended.KILLED, signal=9, out_of_memory=True), "killed: out of memory"),
        (Outcome(ended=Ended.WRECKED), "killed: the program broke the sandbox"),
    ],
)
def test_a_program_that_fails_is_reported_as_unfinished(outcome: Outcome, said: str) -> None:
    assert run(outcome)[0] == Execution(finished=False, output=said)


@pytest.mark.parametrize(("asked", "given"), [(2.5, 2.5), (3600.0, SECONDS), (float("nan"), SECONDS), (-1.0, SECONDS)])
def test_a_program_runs_for_at_most_a_minute(asked: float, given: float) -> None:
    assert run(EXITED, seconds=asked)[1].seconds == given


def test_a_lost_box_is_a_machine_fault() -> None:
    def lost(_: Job) -> Outcome:
        raise SandboxLost("the box is gone", cure="run it again")

    with pytest.raises(MachineFault, match="the box is gone"):
        run(lost)


def test_a_huge_program_is_not_sent() -> None:
    sandbox = FakeSandbox(lambda _: EXITED)
    with open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=lambda *_: sandbox) as execute:
        done = execute("#" * (1 << 21))
    assert not done.finished and "over the limit" in done.output and not sandbox.jobs


def test_a_missing_back_end_is_reported_when_tools_are_opened() -> None:
    def missing(*_: object) -> FakeSandbox:
        raise SandboxUnavailable("no sandbox here", cure="install bubblewrap")

    with (
        pytest.raises(SandboxUnavailable, match="install bubblewrap"),
        open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=missing),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("name", BACK_ENDS)
def test_programs_run_in_separate_real_boxes(name: str) -> None:
    back_end = sandboxes.real(name)
    with open_tools(1, home=Home(Path("/nowhere")), sandbox=name, opens=lambda *_: back_end) as execute:
        assert execute("print(2 + 2)") == Execution(finished=True, output="4")
        failed = execute("def f(x):\n    return x / 0\nf(1)\n")
        assert not failed.finished and failed.output.endswith("ZeroDivisionError: division by zero")
        assert execute("while True: pass", seconds=1.0).output == "timed out after 1 seconds"
        assert execute("open('left', 'w').close()").finished
        assert execute("import os; print(os.path.exists('left'))").output == "False"
        assert "unreachable" in execute("import socket; socket.create_connection(('1.1.1.1', 80), 2)").output
        assert not execute("import bench").finished and not execute("import pytest").finished
        assert len(execute("print('x' * 10**6)").output) < OUTPUT + 200

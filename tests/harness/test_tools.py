from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxbench.bench.errors import MachineFault
from ctxbench.bench.home import Home
from ctxbench.harness.run.programs import OUTPUT, SECONDS, open_tools
from ctxbench.sandbox.errors import SandboxLost, SandboxUnavailable
from ctxbench.sandbox.types import Command, Ended, Job, Outcome
from ctxbench.strategies.api import Execution
from tests.helpers import sandboxes
from tests.helpers.fake_sandbox import FakeSandbox
from tests.helpers.sandboxes import BACK_ENDS

EXITED = Outcome(ended=Ended.EXITED, exit_code=0, output="4\n")


def run(
    answer: Outcome | Callable[[Job], Outcome], program: str = "print(2 + 2)", **how: float
) -> tuple[Execution, Job]:
    sandbox = FakeSandbox(answer if callable(answer) else lambda _: answer)
    with open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=lambda *_: sandbox) as execute:
        done = execute(program, **how)
    assert sandbox.opened == 0
    return done, sandbox.jobs[0]


def test_a_program_is_a_file_that_an_isolated_interpreter_runs() -> None:
    done, job = run(EXITED)
    assert done == Execution(finished=True, output="4")
    assert job.action == Command(argv=("python3", "-I", "program.py")) and job.seconds == 10.0
    assert job.files == {"program.py": b"print(2 + 2)"}


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(ended=Ended.EXITED, exit_code=1, output="NameError: x\n"), "NameError: x"),
        (Outcome(ended=Ended.TIMED_OUT, output="begun\n"), "begun\ntimed out after 10 seconds"),
        (Outcome(ended=Ended.KILLED, signal=6), "killed by signal 6"),
        (Outcome(ended=Ended.KILLED, signal=9, out_of_memory=True), "killed: out of memory"),
        (Outcome(ended=Ended.WRECKED), "killed: it took the sandbox down"),
    ],
)
def test_what_did_not_end_well_did_not_finish(outcome: Outcome, said: str) -> None:
    assert run(outcome)[0] == Execution(finished=False, output=said)


@pytest.mark.parametrize(("asked", "given"), [(2.5, 2.5), (3600.0, SECONDS), (float("nan"), SECONDS), (-1.0, SECONDS)])
def test_no_program_runs_longer_than_a_minute(asked: float, given: float) -> None:
    assert run(EXITED, seconds=asked)[1].seconds == given


def test_a_lost_box_is_the_machines_fault() -> None:
    def lost(_: Job) -> Outcome:
        raise SandboxLost("the box is gone", cure="run it again")

    with pytest.raises(MachineFault, match="the box is gone"):
        run(lost)


def test_text_that_is_no_text_is_no_fault() -> None:
    assert run(EXITED, "x = '\ud800'")[1].files == {"program.py": b"x = '?'"}


def test_a_huge_program_is_not_sent() -> None:
    sandbox = FakeSandbox(lambda _: EXITED)
    with open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=lambda *_: sandbox) as execute:
        done = execute("#" * (1 << 21))
    assert not done.finished and "over the limit" in done.output and not sandbox.jobs


def test_a_missing_back_end_is_told_when_it_is_opened() -> None:
    def missing(*_: object) -> FakeSandbox:
        raise SandboxUnavailable("no sandbox here", cure="install bubblewrap")

    with (
        pytest.raises(SandboxUnavailable, match="install bubblewrap"),
        open_tools(1, home=Home(Path("/nowhere")), sandbox=None, opens=missing),
    ):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("name", BACK_ENDS)
def test_programs_run_in_real_boxes_that_know_nothing_of_each_other(name: str) -> None:
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

"""Boxes that are killed, stopped or wrecked under a job: no outcome is lost, and none is made up."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable

import pytest

from ctxbench.sandbox import link
from ctxbench.sandbox.errors import SandboxLost
from ctxbench.sandbox.types import Command, Ended, Job, Limits, Outcome, Sandbox
from tests.helpers.sandboxes import BACK_ENDS, real
from tests.sandbox.attacks import host
from tests.sandbox.robust import box_of, container_of, environment, guests, sleeper, sleepers, token, until

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return each back end in turn."""
    return real(request.param)


def during(run: Callable[[], Outcome], harm: Callable[[], object]) -> Outcome:
    """Do harm while a job runs; return its outcome."""
    found: list[Outcome | BaseException] = []

    def work() -> None:
        try:
            found.append(run())
        except BaseException as error:  # noqa: BLE001 - it is raised again where it belongs
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        harm()
    finally:
        thread.join(120)
    assert found, "the job did not come back"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def kill_container(pid: int) -> None:
    subprocess.run(["docker", "kill", container_of(pid)], check=True, capture_output=True)


def remove_container(pid: int) -> None:
    subprocess.run(["docker", "rm", "-f", container_of(pid)], check=True, capture_output=True)


def kill_guest(pid: int) -> None:
    os.kill(box_of(pid), signal.SIGKILL)


def kill_launcher(pid: int) -> None:
    """Kill the bwrap that waits outside: the parent of the box's first process."""
    with open(f"/proc/{box_of(pid)}/stat") as file:
        os.kill(int(file.read().rpartition(")")[2].split()[1]), signal.SIGKILL)


HARMS = [
    ("docker", kill_container),
    ("docker", remove_container),
    ("docker", kill_guest),
    ("bubblewrap", kill_launcher),
    ("bubblewrap", kill_guest),
]


@pytest.mark.parametrize(("name", "harm"), HARMS, ids=lambda value: getattr(value, "__name__", value))
def test_a_job_whose_box_is_killed_is_run_again(name: str, harm: Callable[[int], None]):
    mark = token()
    sandbox = real(name)
    sandbox.prepare(environment(mark), print)
    with sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        outcome = during(lambda: pool.run(sleeper(1.5)), lambda: harm(until(lambda: sleepers(mark))[0]))
        assert (outcome.ended, outcome.exit_code, outcome.output) == (Ended.EXITED, 0, "slept\n")
        assert pool.run(sleeper(0)).output == "slept\n"
    until(lambda: not host.processes(mark))


def test_a_box_that_hangs_is_given_up_and_its_job_run_again(real_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    mark = token()
    monkeypatch.setattr(link, "GRACE_SECONDS", 2.0)
    real_sandbox.prepare(environment(mark), print)
    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        harm = lambda: os.kill(box_of(until(lambda: sleepers(mark))[0]), signal.SIGSTOP)  # noqa: E731
        outcome = during(lambda: pool.run(sleeper(0.5, limit=2.0)), lambda: stop_everything(mark, harm))
        assert outcome.output == "slept\n"
    until(lambda: not host.processes(mark))


def stop_everything(mark: str, harm: Callable[[], object]) -> None:
    """Stop the guest, and the supervisor too, which would else go on without it."""
    harm()
    stopped = box_of(sleepers(mark)[0])
    space = os.readlink(f"/proc/{stopped}/ns/pid")
    for pid in host.processes(mark):
        if pid != stopped and os.readlink(f"/proc/{pid}/ns/pid") == space:
            os.kill(pid, signal.SIGSTOP)


def test_a_box_that_is_lost_again_and_again_is_the_machines_fault(real_sandbox: Sandbox):
    mark = token()
    real_sandbox.prepare(environment(mark), print)
    done = threading.Event()

    def kill_all() -> None:
        while not done.wait(0.01):
            for pid in guests(mark):
                with_suppressed_kill(pid)

    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        killer = threading.Thread(target=kill_all)
        killer.start()
        try:
            with pytest.raises(SandboxLost):
                pool.run(sleeper(0.5))
        finally:
            done.set()
            killer.join()
        assert pool.run(sleeper(0)).output == "slept\n"
    until(lambda: not host.processes(mark))


def with_suppressed_kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def test_only_a_job_that_wrecks_its_box_is_called_a_wreck(real_sandbox: Sandbox):
    """The job is the one that we kill boxes for: it alone, three times; the probe afterwards lives."""
    mark = token()
    real_sandbox.prepare(environment(mark), print)
    done = threading.Event()

    def kill_its_boxes() -> None:
        while not done.wait(0.01):
            for pid in sleepers(mark):
                try:
                    with_suppressed_kill(box_of(pid))
                except (LookupError, OSError):
                    continue

    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        killer = threading.Thread(target=kill_its_boxes)
        killer.start()
        try:
            assert pool.run(sleeper(20)).ended == Ended.WRECKED
        finally:
            done.set()
            killer.join()
        job = Job(action=Command(argv=("python3", "-c", "print(6 * 7)")))
        assert pool.run(job).output == "42\n"
    until(lambda: not host.processes(mark))

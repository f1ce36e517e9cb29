"""The process that opened a pool is killed or interrupted, the disk is full: nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctxbench.sandbox import leftovers
from ctxbench.sandbox.types import Limits, Sandbox
from tests.helpers.sandboxes import BACK_ENDS, cache, real
from tests.sandbox.attacks import host
from tests.sandbox.robust import ROOT, container_of, driver, environment, sleeper, sleepers, token, until

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return each back end in turn."""
    return real(request.param)


def prepared(sandbox: Sandbox) -> str:
    """Make the image; return the token of one test."""
    mark = token()
    sandbox.prepare(environment(mark), print)
    return mark


def containers(mark: str) -> set[str]:
    return {container_of(pid) for pid in host.processes(mark)}


def known(container: str) -> bool:
    done = subprocess.run(["docker", "inspect", container], capture_output=True, check=False)
    return done.returncode == 0


def groups(pid: int) -> list[Path]:
    """Return the control groups of a process's boxes."""
    top = Path("/sys/fs/cgroup")
    return [path for path in (*top.glob("ctxbench*"), *top.glob("*/ctxbench*")) if f"{pid}-" in path.name]


def removed(pid: int) -> bool:
    """Remove the control groups that `ctxbench doctor --clean` would, once their processes are gone."""
    for leftover in leftovers.find(cache()):
        if str(pid) in leftover.what:
            with contextlib.suppress(OSError):
                leftover.remove()
    return groups(pid) == []


def test_a_killed_harness_leaves_no_process_and_no_container(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        boxes = containers(mark) if real_sandbox.name == "docker" else set()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        until(lambda: not host.processes(mark))
        until(lambda: not any(known(box) for box in boxes))
        until(lambda: removed(process.pid))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_an_interrupted_harness_ends_its_boxes_itself(real_sandbox: Sandbox, number: signal.Signals):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        boxes = containers(mark) if real_sandbox.name == "docker" else set()
        os.kill(process.pid, number)
        process.wait(30)
        until(lambda: not host.processes(mark), 10)
        if number == signal.SIGINT:
            assert process.stderr is not None
            assert process.stderr.read().splitlines()[-1] == "KeyboardInterrupt"
            assert groups(process.pid) == []
        until(lambda: not any(known(box) for box in boxes))


def test_a_killed_harness_does_no_harm_to_the_next(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        os.kill(process.pid, signal.SIGKILL)
        with real_sandbox.open(environment(mark), limits=Limits(), width=2, reuse=9) as pool:
            assert [pool.run(sleeper(0)).output for _ in range(4)] == ["slept\n"] * 4
    until(lambda: not host.processes(mark))


_FULL = """
import sys
from pathlib import Path
from ctxbench.sandbox.errors import SandboxError
from ctxbench.sandbox.registry import open_sandbox
from ctxbench.sandbox.types import Environment
folder = Path(sys.argv[1])
environment = Environment(name="full", library={f"m{n}.py": b"#" * 40_000 for n in range(20)})
try:
    open_sandbox("bubblewrap", folder).prepare(environment, lambda line: None)
except SandboxError as error:
    print(error)
left = [str(path) for path in folder.rglob("*") if path.suffix == ".part"]
print("left:", left)
"""


def test_a_full_disk_is_a_fault_in_one_line_and_leaves_nothing_half_made(tmp_path: Path):
    real("bubblewrap")
    small = tmp_path / "small"
    small.mkdir()
    script = 'mount -t tmpfs -o size=700k none "$1" && exec "$2" -c "$3" "$1"'
    argv = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        str(small),
        sys.executable,
        _FULL,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    told, left = done.stdout.splitlines()
    assert "No space left on device" in told
    assert left == "left: []"


def test_a_full_working_folder_is_the_jobs_fault_and_no_other_jobs(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    from ctxbench.sandbox.errors import SandboxError
    from ctxbench.sandbox.types import Command, Job

    big = Job(action=Command(argv=("python3", "-c", "print('never')")), files={"big": b"x" * (48 << 20)})
    limits = Limits(disk=16 << 20)
    with real_sandbox.open(environment(mark), limits=limits, width=1, reuse=9) as pool:
        with pytest.raises(SandboxError, match="No space left"):
            pool.run(big)
        for _ in range(3):
            assert pool.run(sleeper(0)).output == "slept\n"
    assert sleepers(mark) == []

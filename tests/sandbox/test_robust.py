"""Lost boxes, a killed harness, a full disk and many jobs: no job is lost, and no leftovers remain.

`benchmarks.sandbox` runs ten times as many jobs.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.sandbox import leftovers, link
from ctxbench.sandbox.errors import SandboxError, SandboxLost
from ctxbench.sandbox.ownership import owner
from ctxbench.sandbox.types import Call, Command, Ended, Environment, Job, Limits, Outcome, Pool, Sandbox
from tests.helpers.sandboxes import BACK_ENDS, cache, real
from tests.sandbox.attacks import host
from tests.sandbox.robust import (
    ROOT,
    box_of,
    container_of,
    driver,
    environment,
    guests,
    sleeper,
    sleepers,
    token,
    until,
)

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return real(request.param)


def during(run: Callable[[], Outcome], harm: Callable[[], object]) -> Outcome:
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
    """Kill the bwrap process outside the box: the parent of the box's first process."""
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
def test_a_job_whose_box_is_killed_is_retried(name: str, harm: Callable[[int], None]):
    sandbox = real(name)
    mark = prepared(sandbox)
    with sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        outcome = during(lambda: pool.run(sleeper(1.5)), lambda: harm(until(lambda: sleepers(mark))[0]))
        assert (outcome.ended, outcome.exit_code, outcome.output) == (Ended.EXITED, 0, "slept\n")
        assert pool.run(sleeper(0)).output == "slept\n"
    until(lambda: not host.processes(mark))


def test_a_job_whose_box_hangs_is_retried(real_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    mark = prepared(real_sandbox)
    monkeypatch.setattr(link, "GRACE_SECONDS", 2.0)
    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        harm = lambda: os.kill(box_of(until(lambda: sleepers(mark))[0]), signal.SIGSTOP)  # noqa: E731
        outcome = during(lambda: pool.run(sleeper(0.5, limit=2.0)), lambda: stop_everything(mark, harm))
        assert outcome.output == "slept\n"
    until(lambda: not host.processes(mark))


def stop_everything(mark: str, harm: Callable[[], object]) -> None:
    """Stop the guest and the supervisor, which would otherwise continue without the guest."""
    harm()
    stopped = box_of(sleepers(mark)[0])
    space = os.readlink(f"/proc/{stopped}/ns/pid")
    for pid in host.processes(mark):
        if pid != stopped and os.readlink(f"/proc/{pid}/ns/pid") == space:
            os.kill(pid, signal.SIGSTOP)


@contextlib.contextmanager
def killing(victims: Callable[[], Iterable[int]]) -> Iterator[None]:
    done = threading.Event()

    def kill_all() -> None:
        while not done.wait(0.01):
            for pid in victims():
                with contextlib.suppress(LookupError, OSError):
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_all)
    killer.start()
    try:
        yield
    finally:
        done.set()
        killer.join()


def boxes_of_sleepers(mark: str) -> Iterator[int]:
    for pid in sleepers(mark):
        with contextlib.suppress(LookupError, OSError):
            yield box_of(pid)


def test_boxes_that_are_lost_repeatedly_raise_sandbox_lost(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        with killing(lambda: guests(mark)), pytest.raises(SandboxLost):
            pool.run(sleeper(0.5))
        assert pool.run(sleeper(0)).output == "slept\n"
    until(lambda: not host.processes(mark))


def test_only_a_job_that_wrecks_its_box_is_a_wreck(real_sandbox: Sandbox):
    """The test kills only the boxes of the sleeping job, three times. The pool's probe and the next job succeed."""
    mark = prepared(real_sandbox)
    with real_sandbox.open(environment(mark), limits=Limits(), width=1, reuse=9) as pool:
        with killing(lambda: boxes_of_sleepers(mark)):
            assert pool.run(sleeper(20)).ended == Ended.WRECKED
        job = Job(action=Command(argv=("python3", "-c", "print(6 * 7)")))
        assert pool.run(job).output == "42\n"
    until(lambda: not host.processes(mark))


JOBS, WARM = 500, 200
REUSE, WIDTH = 100, 2
_LIBRARY = {"echo.py": b"def run(given):\n    return given['n'] * 2\n"}


def growth(mark: str) -> dict[str, int]:
    """Return the resource counts that must not grow with the number of jobs."""
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    seen = host.Seen()
    seen.look(mark)
    # A pool starts each worker on demand: the last one only when all others are busy.
    workers = sum(thread.name.startswith("sandbox") for thread in threading.enumerate())
    return {
        "resident KiB": resident,
        "descriptors": len(os.listdir("/proc/self/fd")),
        "workers": workers,
        "other threads": len(os.listdir("/proc/self/task")) - workers,
        "processes": len(host.processes(mark)),
        "containers": len(seen.containers),
        "temporary": len(host.leftovers()),
    }


def settled(mark: str) -> dict[str, int]:
    """Wait until only idle boxes are left, then return the counts."""
    until(lambda: len(host.processes(mark)) <= WIDTH + 1)
    return growth(mark)


def grown(mark: str, before: dict[str, int]) -> dict[str, int]:
    """Return the counts that grew. The check waits a while, because the kernel lists ended threads a moment longer."""
    with contextlib.suppress(AssertionError):
        until(lambda: not _more(before, settled(mark)), 5)
    return _more(before, settled(mark))


def _more(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    # Docker's SDK keeps up to ten idle connections.
    most = {name: max(number, WIDTH + 1) for name, number in before.items()}
    most |= {"resident KiB": before["resident KiB"] + 4 * 1024, "descriptors": before["descriptors"] + 10}
    return {name: number for name, number in after.items() if number > most[name]}


def test_resource_use_does_not_grow_with_the_number_of_jobs(real_sandbox: Sandbox):
    mark = token()
    environment = Environment(name="many", library=_LIBRARY, variables=(("CTXBENCH_ATTACK", mark),))
    real_sandbox.prepare(environment, print)
    with real_sandbox.open(environment, limits=Limits(), width=WIDTH, reuse=REUSE) as pool:
        run(pool, WARM)
        before = settled(mark)
        run(pool, JOBS)
        assert grown(mark, before) == {}, before
    until(lambda: not host.processes(mark))
    if shutil.which("docker"):
        asked = ["docker", "ps", "-aq", "--filter", f"label=ctxbench.owner={owner()}"]
        assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == ""


def run(pool: Pool, count: int) -> None:
    def one(number: int) -> object:
        return pool.run(Job(action=Call(function="echo:run", arguments={"n": number}))).result

    with ThreadPoolExecutor(WIDTH) as workers:
        assert list(workers.map(one, range(count))) == [2 * number for number in range(count)]


def prepared(sandbox: Sandbox) -> str:
    mark = token()
    sandbox.prepare(environment(mark), print)
    return mark


def containers(mark: str) -> set[str]:
    return {container_of(pid) for pid in host.processes(mark)}


def known(container: str) -> bool:
    done = subprocess.run(["docker", "inspect", container], capture_output=True, check=False)
    return done.returncode == 0


def groups(label: str) -> list[Path]:
    """Return the control groups of a process's boxes by the process's `owner` label, since a PID can be reused."""
    top, name = Path("/sys/fs/cgroup"), f"ctxbench-box-{label.replace(':', '-')}-*"
    return [*top.glob(name), *top.glob(f"*/{name}")]


def removed(label: str) -> bool:
    """Remove the control groups that `ctxbench doctor --clean` would remove; return whether none is left."""
    for leftover in leftovers.find(cache()):
        if any(str(group) in leftover.what for group in groups(label)):
            with contextlib.suppress(OSError):
                leftover.remove()
    return groups(label) == []


def test_a_killed_harness_leaves_no_process_or_container(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        boxes, label = containers(mark) if real_sandbox.name == "docker" else set(), owner(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
        until(lambda: not host.processes(mark))
        until(lambda: not any(known(box) for box in boxes))
        until(lambda: removed(label))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_an_interrupted_harness_ends_its_own_boxes(real_sandbox: Sandbox, number: signal.Signals):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        boxes, label = containers(mark) if real_sandbox.name == "docker" else set(), owner(process.pid)
        assert real_sandbox.name == "docker" or os.geteuid() != 0 or groups(label)
        os.kill(process.pid, number)
        process.wait(30)
        until(lambda: not host.processes(mark), 10)
        if number == signal.SIGINT:
            assert process.stderr is not None
            assert process.stderr.read().splitlines()[-1] == "KeyboardInterrupt"
            assert groups(label) == []
        until(lambda: not any(known(box) for box in boxes))
        until(lambda: removed(label))


def test_a_killed_harness_does_not_harm_the_next_one(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    with driver(real_sandbox.name, mark, 60) as process:
        label = owner(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        with real_sandbox.open(environment(mark), limits=Limits(), width=2, reuse=9) as pool:
            assert [pool.run(sleeper(0)).output for _ in range(4)] == ["slept\n"] * 4
    until(lambda: not host.processes(mark))
    until(lambda: removed(label))


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


def test_a_full_disk_is_a_one_line_error_without_partial_files(tmp_path: Path):
    real("bubblewrap")
    small = tmp_path / "small"
    small.mkdir()
    script = 'mount -t tmpfs -o size=700k none "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", small, sys.executable, _FULL]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    told, left = done.stdout.splitlines()
    assert "No space left on device" in told
    assert left == "left: []"


def test_a_full_working_folder_fails_only_its_own_job(real_sandbox: Sandbox):
    mark = prepared(real_sandbox)
    big = Job(action=Command(argv=("python3", "-c", "print('never')")), files={"big": b"x" * (48 << 20)})
    limits = Limits(disk=16 << 20)
    with real_sandbox.open(environment(mark), limits=limits, width=1, reuse=9) as pool:
        with pytest.raises(SandboxError, match="No space left"):
            pool.run(big)
        for _ in range(3):
            assert pool.run(sleeper(0)).output == "slept\n"
    assert sleepers(mark) == []

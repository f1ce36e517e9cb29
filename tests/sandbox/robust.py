"""Helpers for robustness tests: an environment whose processes are recognized on the host, and a driver program."""

import contextlib
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ctxbench.sandbox.types import Command, Environment, Job
from tests.sandbox.attacks import host

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
import sys
from pathlib import Path
from ctxbench.sandbox.types import Limits
from tests.helpers.sandboxes import cache
from ctxbench.sandbox.registry import open_sandbox
from tests.sandbox.robust import environment, sleeper
name, token, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
with open_sandbox(name, cache()).open(environment(token), limits=Limits(), width=1, reuse=9) as pool:
    print("open", flush=True)
    print(pool.run(sleeper(seconds)).ended, flush=True)
"""


def environment(token: str) -> Environment:
    """Return an environment without requirements. Its processes have the token in an environment variable."""
    return Environment(name="robust", variables=(("CTXBENCH_ATTACK", token),))


def sleeper(seconds: float, *, limit: float = 30.0) -> Job:
    code = f"import time; time.sleep({seconds}); print('slept')"
    return Job(action=Command(argv=("python3", "-c", code)), seconds=limit)


def token() -> str:
    """Return a random token that identifies the processes of one test."""
    return secrets.token_hex(8)


def until(look: Callable[[], T], seconds: float = 30.0) -> T:
    """Call `look` until it returns a true value, and return that value. Fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing came of {look} in {seconds} s"
        time.sleep(0.02)
    return found


def guests(mark: str) -> list[int]:
    """Return the host's process IDs of the first processes of boxes."""
    return [pid for pid in host.processes(mark) if _inner(pid) == 1]


def sleepers(mark: str) -> list[int]:
    found = []
    for pid in host.processes(mark):
        with contextlib.suppress(OSError):
            if b"time.sleep" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def box_of(pid: int) -> int:
    """Return the process ID of the guest in the same box as a job's process."""
    space = os.readlink(f"/proc/{pid}/ns/pid")
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.readlink(f"/proc/{name}/ns/pid") == space and _inner(int(name)) == 1:
                return int(name)
    raise LookupError(f"the box of {pid} is gone")


def container_of(pid: int) -> str:
    found = re.search(r"[0-9a-f]{64}", Path(f"/proc/{pid}/cgroup").read_text())
    assert found, f"{pid} is in no container"
    return found[0]


def _inner(pid: int) -> int:
    with contextlib.suppress(OSError, AttributeError):
        line = re.search(r"^NSpid:(.*)$", Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(line[1].split()[-1])  # type: ignore[index]
    return 0


@contextlib.contextmanager
def driver(name: str, mark: str, seconds: float, **more: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program that opens a pool and runs one sleeping job, and wait until the job runs."""
    argv = [sys.executable, "-c", DRIVER, name, mark, str(seconds)]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT, **more}
    with subprocess.Popen(argv, start_new_session=True, **settings) as process:
        try:
            until(lambda: sleepers(mark) or process.poll() is not None)
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            yield process
        finally:
            process.kill()

"""Many jobs through one pool: nothing grows. `benchmarks.sandbox` does the same with ten times as many."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.sandbox.types import Call, Environment, Job, Limits, Pool, Sandbox
from tests.helpers.sandboxes import BACK_ENDS, real
from tests.sandbox.attacks import host
from tests.sandbox.robust import token, until

pytestmark = pytest.mark.slow
JOBS, WARM = 1000, 300
REUSE, WIDTH = 100, 2
_LIBRARY = {"echo.py": b"def run(given):\n    return given['n'] * 2\n"}


@pytest.fixture(params=BACK_ENDS)
def real_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return each back end in turn."""
    return real(request.param)


def growth(mark: str) -> dict[str, int]:
    """Return what must not grow with the number of jobs."""
    status = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    seen = host.Seen()
    seen.look(mark)
    # A pool starts its workers when it first needs them, the last when all others happen to be at work.
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
    """Wait until only waiting boxes are left, then look."""
    until(lambda: len(host.processes(mark)) <= WIDTH + 1)
    return growth(mark)


def test_nothing_grows(real_sandbox: Sandbox):
    mark = token()
    environment = Environment(name="many", library=_LIBRARY, variables=(("CTXBENCH_ATTACK", mark),))
    real_sandbox.prepare(environment, print)
    with real_sandbox.open(environment, limits=Limits(), width=WIDTH, reuse=REUSE) as pool:
        run(pool, WARM)
        before = settled(mark)
        run(pool, JOBS)
        after = settled(mark)
    assert after["resident KiB"] - before["resident KiB"] < 8 * 1024, (before, after)
    # Docker's SDK keeps up to ten idle connections for later.
    assert after["descriptors"] <= before["descriptors"] + 10, (before, after)
    for name in ("workers", "other threads", "processes", "containers", "temporary"):
        assert after[name] <= max(before[name], WIDTH + 1), (name, before, after)
    until(lambda: not host.processes(mark))
    if shutil.which("docker"):
        asked = ["docker", "ps", "-aq", "--filter", f"label=ctxbench.owner={_owner()}"]
        assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == ""


def run(pool: Pool, count: int) -> None:
    """Run jobs and look at every answer."""

    def one(number: int) -> object:
        return pool.run(Job(action=Call(function="echo:run", arguments={"n": number}))).result

    with ThreadPoolExecutor(WIDTH) as workers:
        assert list(workers.map(one, range(count))) == [2 * number for number in range(count)]


def _owner() -> str:
    from ctxbench.sandbox.ownership import owner

    return owner()

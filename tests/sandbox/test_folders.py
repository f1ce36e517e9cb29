"""`sandbox.ownership`: folders are complete or absent, and each has an owner."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxbench.sandbox.ownership import abandoned, alive, once, owner, scratch, started
from tests.helpers.extras import missing

_HOLD = """
import sys, time
from pathlib import Path
from ctxbench.sandbox.ownership import scratch
with scratch(Path(sys.argv[1])) as made:
    (made / "half").write_text("")
    print(made, flush=True)
    time.sleep(600)
"""


def test_a_folder_is_built_once_by_parallel_callers(tmp_path: Path) -> None:
    calls: list[Path] = []

    def make(folder: Path) -> None:
        calls.append(folder)
        time.sleep(0.2)
        (folder / "a").write_text("x")
        assert not (tmp_path / "made").exists()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: once(tmp_path / "made", make), range(8)))
    assert len(calls) == 1 and set(found) == {tmp_path / "made"}
    assert (tmp_path / "made" / "a").read_text() == "x"
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_whose_build_failed_is_absent_and_can_be_rebuilt(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        once(tmp_path / "made", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".made.lock"]
    assert once(tmp_path / "made", lambda folder: (folder / "a").touch()).is_dir()


def test_a_scratch_folder_is_abandoned_when_its_process_has_ended(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout
    made = Path(holder.stdout.readline().strip())
    old = time.time() - 3600
    os.utime(made, (old, old))
    assert not abandoned(made)
    holder.kill()
    holder.communicate()
    assert abandoned(made)
    os.utime(made)
    assert not abandoned(made)  # a process may have just created it and not locked it yet
    with scratch(tmp_path) as own:
        os.utime(own, (old, old))
        assert not abandoned(own)
    assert not own.exists()


def test_an_owner_differs_from_a_later_process_with_its_pid() -> None:
    assert alive(owner())
    pid, start, namespace = owner().split(":")
    assert int(pid) == os.getpid() and started(os.getpid()) == int(start) > 0
    assert not alive(f"{pid}:{int(start) + 1}:{namespace}") and not alive(f"{pid}:{int(start) + 1}")
    assert alive(f"{pid}:{start}")


def test_a_zombie_owner_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    label = owner(child.pid)
    assert alive(label)
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not alive(label)
    child.wait()
    assert not alive(label)


@pytest.mark.parametrize("label", ["", "x", "1", "a:b", "1:2:3:4", ":", "-1:5"])
def test_an_invalid_owner_label_counts_as_alive(label: str) -> None:
    assert alive(label)


def test_an_owner_in_another_namespace_is_alive_while_the_namespace_exists() -> None:
    if os.geteuid() != 0:
        assert alive("1:1:77")
        missing("only root can look into other namespaces")
    assert not alive("1:1:77")
    with subprocess.Popen(["unshare", "--pid", "--fork", "sleep", "600"]) as child:
        deadline = time.monotonic() + 10
        inner: list[Path] = []
        while not inner and time.monotonic() < deadline:
            inner = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _parent(entry) == child.pid]
        namespace = (inner[0] / "ns/pid").stat().st_ino
        assert alive(f"1:1:{namespace}")
        os.kill(int(inner[0].name), signal.SIGKILL)
    assert not alive(f"1:1:{namespace}")


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0

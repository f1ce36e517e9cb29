"""Files of control groups of both versions, in a folder that replaces the kernel's file system.

One test uses a real group, to check whose fault a lack of memory is.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctxbench.sandbox.bubblewrap import BubblewrapSandbox, cgroups
from ctxbench.sandbox.errors import MachineShort
from ctxbench.sandbox.types import MIB, Command, Ended, Environment, Job, Limits


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_version_1_limits_socket_buffers_separately(root: Path) -> None:
    for kind in ("memory", "pids", "cpu"):
        (root / kind).mkdir()
    memory, pids, cpu = cgroups.make(Limits(memory=400, processes=9, cpus=0.5)).folders
    held = {path.name: path.read_text() for path in memory.iterdir()}
    assert held == {
        "memory.limit_in_bytes": "400",
        "memory.memsw.limit_in_bytes": "400",
        "memory.kmem.tcp.limit_in_bytes": "100",
    }
    assert (pids / "pids.max").read_text() == "13" and (cpu / "cpu.cfs_quota_us").read_text() == "50000"


def test_version_2_sets_all_limits_in_one_group(root: Path) -> None:
    (root / "cgroup.controllers").touch()
    (folder,) = cgroups.make(Limits(memory=400, processes=9, cpus=0.5)).folders
    held = {path.name: path.read_text() for path in folder.iterdir()}
    assert held == {"memory.max": "400", "memory.swap.max": "0", "pids.max": "13", "cpu.max": "50000 100000"}
    assert cgroups.ControlGroup((folder,)).counters == [(str(folder), str(root))]


def test_a_kernel_without_socket_limits_still_has_the_other_limits(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("memory", "pids", "cpu"):
        (root / kind).mkdir()
    write = Path.write_text

    def refuse(path: Path, text: str, **more: str) -> int:
        if "kmem.tcp" in path.name:
            raise FileNotFoundError(path)
        return write(path, text, **more)

    monkeypatch.setattr(Path, "write_text", refuse)
    memory = cgroups.make(Limits(memory=400)).folders[0]
    assert (memory / "memory.limit_in_bytes").read_text() == "400"


def test_a_group_that_was_busy_is_removed_with_the_next_box(root: Path) -> None:
    (root / "cgroup.controllers").touch()
    busy = cgroups.make(Limits())
    (folder,) = busy.folders
    busy.remove(seconds=0.0)
    assert folder.is_dir(), "like a group with processes that are still dying, it cannot be removed"
    for path in folder.iterdir():
        path.unlink()
    cgroups.make(Limits())
    assert not folder.exists()


class InnerGroup(cgroups.ControlGroup):
    """A group inside another group, with its counters at the usual place in the box."""

    @property
    def counters(self) -> list[tuple[str, str]]:
        return [(str(self.folders[0]), str(cgroups.ROOT / ("" if cgroups.version() == 2 else "memory")))]


@contextlib.contextmanager
def narrow(memory: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put all boxes into one group with this memory limit, to simulate a small machine."""
    second = cgroups.version() == 2
    name = "memory.max" if second else "memory.limit_in_bytes"
    outer = cgroups.ROOT / ("" if second else "memory") / f"ctxbench-test-{os.getpid()}"
    inner: list[InnerGroup] = []

    def make(limits: Limits) -> InnerGroup:
        folder = outer / str(len(inner))
        folder.mkdir()
        (folder / name).write_text(str(limits.memory))
        inner.append(InnerGroup((folder,)))
        return inner[-1]

    outer.mkdir()
    try:
        (outer / name).write_text(str(memory))
        if second:
            (outer / "cgroup.subtree_control").write_text("+memory")
        monkeypatch.setattr(cgroups, "make", make)
        yield
    finally:
        for group in inner:
            group.remove()
        outer.rmdir()


@pytest.mark.slow
def test_a_job_killed_below_its_own_limit_is_a_machine_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_root: Callable[[], None]
) -> None:
    as_root()
    boxes, environment, limits = BubblewrapSandbox(tmp_path), Environment(name="empty"), Limits(memory=128 * MIB)
    boxes.prepare(environment, lambda _: None)
    greedy = Job(action=Command(argv=("python3", "-c", f"len(b'x' * {100 * MIB})")))
    beyond = Job(action=Command(argv=("python3", "-c", f"len(b'x' * {200 * MIB})")))
    with boxes.open(environment, limits=limits) as pool:
        assert pool.run(greedy).exit_code == 0
        outcome = pool.run(beyond)
        assert (outcome.ended, outcome.signal, outcome.out_of_memory) == (Ended.KILLED, 9, True)
    with narrow(80 * MIB, monkeypatch), boxes.open(environment, limits=limits) as pool:
        with pytest.raises(MachineShort):
            pool.run(greedy)
        assert pool.run(Job(action=Command(argv=("true",)))).exit_code == 0

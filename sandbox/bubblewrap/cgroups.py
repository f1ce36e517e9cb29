"""Control groups (versions 1 and 2) limit a box's total memory, processes and processor time. They need root."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from ctxbench.sandbox.ownership import alive, owner
from ctxbench.sandbox.types import Limits

ROOT = Path("/sys/fs/cgroup")
_PREFIX = "ctxbench-box-"
_PERIOD = 100_000
"""Scheduling period, in microseconds."""
_SPARE = 4
"""Number of ctxbench's own processes in a group: bwrap, the guest and its helpers."""
_numbers = itertools.count()
_V1 = ("memory", "pids", "cpu")
_busy: set[Path] = set()


class ControlGroup:
    """One box's control groups. Without folders, nothing is limited or counted."""

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        self.folders = folders

    @property
    def counters(self) -> list[tuple[str, str]]:
        """Pairs (folder on this machine, folder in the box), from which the guest reads its limits and counters."""
        if version() == 2:
            return [(str(folder), str(ROOT)) for folder in self.folders]
        return [
            (str(folder), str(folder.parent)) for folder in self.folders if folder.parent.name in ("memory", "pids")
        ]

    def processes(self) -> set[int]:
        """Return the pids of the group's processes."""
        pids: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError):
                pids |= {int(line) for line in (folder / "cgroup.procs").read_text().split()}
        return pids

    def kill(self) -> None:
        """Kill all processes of the group."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def killed_for_memory(self) -> bool:
        """Return whether the kernel killed a process of the box because memory ran out."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with contextlib.suppress(OSError):
                    rows = dict(line.split() for line in (folder / name).read_text().splitlines())
                    return rows.get("oom_kill", "0") != "0"
        return False

    def remove(self, seconds: float = 5.0) -> None:
        """Remove the groups, waiting up to `seconds` until they are empty. Groups still in use are removed later."""
        deadline = time.monotonic() + seconds
        for folder in self.folders:
            while folder.is_dir():
                try:
                    folder.rmdir()
                except OSError:
                    if time.monotonic() > deadline:
                        _busy.add(folder)
                        break
                    time.sleep(0.005)


def version() -> int:
    """Return the version of control groups that this machine has: 2, 1 (with limits of memory), or 0 for none."""
    if (ROOT / "cgroup.controllers").is_file():
        return 2
    return 1 if (ROOT / "memory").is_dir() else 0


def make(limits: Limits) -> ControlGroup:
    """Create control groups for a box, and return those that the kernel allowed; none without root."""
    if os.geteuid() != 0:
        return ControlGroup()
    _remove_busy()
    name = f"{_PREFIX}{owner().replace(':', '-')}-{next(_numbers)}"
    which = version()
    if which == 2:
        folder = ROOT / name
        return ControlGroup((folder,)) if _set(folder, _settings_v2(limits)) else ControlGroup()
    settings = _settings_v1(limits)
    folders = [ROOT / kind / name for kind in _V1 if which and _set(ROOT / kind / name, settings[kind])]
    return ControlGroup(tuple(folders))


@atexit.register
def _remove_busy() -> None:
    for folder in tuple(_busy):
        with contextlib.suppress(OSError):
            folder.rmdir()
        if not folder.is_dir():
            _busy.discard(folder)


def usable() -> bool:
    """Return whether control groups of boxes can be created here. The check creates and removes a group."""
    group = make(Limits())
    has_counters = bool(group.counters)
    group.remove()
    return has_counters


def _settings_v2(limits: Limits) -> list[tuple[str, str, bool]]:
    """Return settings as (file, value, whether the group is useless without the setting)."""
    return [
        ("memory.max", str(limits.memory), True),
        ("memory.swap.max", "0", False),
        ("pids.max", str(limits.processes + _SPARE), True),
        ("cpu.max", f"{int(limits.cpus * _PERIOD)} {_PERIOD}", False),
    ]


def _settings_v1(limits: Limits) -> dict[str, list[tuple[str, str, bool]]]:
    return {
        "memory": [
            ("memory.limit_in_bytes", str(limits.memory), True),
            ("memory.memsw.limit_in_bytes", str(limits.memory), False),
            # Socket buffers are counted separately, and only if they have a limit.
            ("memory.kmem.tcp.limit_in_bytes", str(limits.memory // 4), False),
        ],
        "pids": [("pids.max", str(limits.processes + _SPARE), True)],
        "cpu": [
            ("cpu.cfs_period_us", str(_PERIOD), True),
            ("cpu.cfs_quota_us", str(int(limits.cpus * _PERIOD)), True),
        ],
    }


def _set(folder: Path, settings: list[tuple[str, str, bool]]) -> bool:
    try:
        if not folder.parent.is_dir():
            return False
        folder.mkdir()
    except OSError:
        return False
    for name, text, needed in settings:
        try:
            (folder / name).write_text(text, encoding="ascii")
        except OSError:
            if needed:
                folder.rmdir()
                return False
    return True


def remove_abandoned(folder: Path) -> None:
    """Remove a control group and kill its remaining processes.

    Raises:
        OSError: if the group cannot be removed.
    """
    group = ControlGroup((folder,))
    group.kill()
    group.remove()
    if folder.exists():
        folder.rmdir()


def abandoned() -> Iterator[Path]:
    """Yield the folders of control groups whose ctxbench process no longer exists."""
    for folder in sorted({*ROOT.glob(f"{_PREFIX}*"), *ROOT.glob(f"*/{_PREFIX}*")}):
        label = folder.name.removeprefix(_PREFIX).rpartition("-")[0].replace("-", ":")
        if folder.is_dir() and not folder.is_symlink() and not alive(label):
            yield folder

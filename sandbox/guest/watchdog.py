"""Ends jobs that take too much of what no kernel limit covers: sockets, locks and, without a control group, memory.

If a control group, version 1 or 2, is visible inside the box, its counters show whether memory ran out.

The watchdog looks every `SECONDS`. It cannot see pages of shared anonymous mappings, or of unlinked files in memory
that no process maps any more. If memory runs out, the kernel kills a job's processes first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_SLACK = 2
"""A limit up to this many times ours counts as the box's own; a larger one is the machine's."""
_NEAR = 32
"""A peak within 1/32 of a limit has reached it: no request for memory is that large."""


class MemoryGroup:
    """The memory control group of a box."""

    def __init__(self, version: int, folder: Path) -> None:
        """Read the group's files in `folder`."""
        self.version, self._folder = version, folder
        self._events = folder / ("memory.events" if version == 2 else "memory.oom_control")

    def kills(self) -> int:
        """Return how many of the group's processes the kernel ever killed for lack of memory; 0 if unknown."""
        return _count(self._events, b"oom_kill ")

    def hits(self) -> int:
        """Return how often the group's processes reached its limit with no memory left to free; 0 if unknown."""
        return _count(self._events, b"oom ")

    def was_full(self, hits: int) -> bool:
        """Return whether the group reached its limit since `hits` was counted. If not, the machine caused the kills.

        Version 1 counts no hits. It also stops counting failed requests if memory with swap has the same limit. So
        its peak is compared with the limit, but the peak may be that of an earlier job.
        """
        if self.version == 2:
            return self.hits() > hits
        sizes = [
            (_number(self._folder / f"{kind}.max_usage_in_bytes"), _number(self._folder / f"{kind}.limit_in_bytes"))
            for kind in ("memory", "memory.memsw")  # memsw exists only if swap is counted
        ]
        peaks = [(peak, limit) for peak, limit in sizes if peak is not None and limit is not None]
        return not peaks or any(peak >= limit - limit // _NEAR for peak, limit in peaks)


class Machine:
    """A count of the processes that the kernel killed on the whole machine, for a box that cannot see its own group."""

    def __init__(self, events: Path = Path("/proc/vmstat")) -> None:
        """Read `events`, which has a line ``oom_kill N``."""
        self._events = events

    def kills(self) -> int:
        """Return how many of the machine's processes the kernel ever killed for lack of memory; 0 if unknown."""
        return _count(self._events, b"oom_kill ")

    def hits(self) -> int:
        """Return 0, because the machine has no limit."""
        return 0

    def was_full(self, hits: int) -> bool:
        """Return False, because the machine has no limit."""
        return False


def memory_group(limit: int, root: Path = _ROOT) -> MemoryGroup | None:
    """Return the group that limits this box's memory to at most twice `limit` bytes; None if none is visible."""
    for version, folder, name in ((2, root, "memory.max"), (1, root / "memory", "memory.limit_in_bytes")):
        if _holds(folder / name, limit):
            return MemoryGroup(version, folder)
    return None


def holds_processes(limit: int, root: Path = _ROOT) -> bool:
    """Return whether a group limits the number of this box's processes, to at most twice `limit`."""
    return any(_holds(file, limit) for file in (root / "pids.max", root / "pids/pids.max"))


def _count(file: Path, name: bytes) -> int:
    """Return the number on a file's line of that name; 0 without one."""
    with contextlib.suppress(OSError, ValueError):
        # It is read twice for every job: the layers of a text file would cost more than the reading.
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = b""
            while part := os.read(handle, 1 << 14):
                text += part
        finally:
            os.close(handle)
        return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(name))
    return 0


def _number(file: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii"))
    return None


def _holds(file: Path, limit: int) -> bool:
    number = _number(file)
    return number is not None and number <= _SLACK * limit


SECONDS = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LOCKS = 4096
"""Maximum number of locks of ranges of files: the kernel counts them in no control group, and has no other limit."""
_LOCK_SECONDS = 1.0
"""Seconds between two counts of locks: while they are listed, no process on the machine can take a lock."""


class Watchdog:
    """A watchdog of one job. It checks the memory of untrusted processes, and counts the box's sockets and locks."""

    def __init__(self, sockets: int, memory: int | None) -> None:
        """Limit the box's sockets, and the sum of its processes' resident bytes; `memory` is None if a group limits it.

        A socket's buffers are outside the box's control group in version 1. In both versions so are the buffers of a
        connection that has not been accepted, which needs no descriptor. So the sockets themselves are counted.
        """
        self._sockets, self._memory = sockets, memory
        self._trusted = {os.getppid(), os.getpid()}
        self._locks_at = time.monotonic() + _LOCK_SECONDS
        self.killed = False

    def look(self) -> None:
        """Kill the whole job for too many sockets or locks, or its largest process for too much memory."""
        if _sockets() > self._sockets or self._too_many_locks():
            self._kill(self._untrusted())
        elif self._memory is not None:
            self._look_at_memory(self._memory)

    def _too_many_locks(self) -> bool:
        if time.monotonic() < self._locks_at:
            return False
        self._locks_at = time.monotonic() + _LOCK_SECONDS
        return _locks(_LOCKS) > _LOCKS

    def _look_at_memory(self, limit: int) -> None:
        sizes = {pid: _resident(pid) for pid in self._untrusted()}
        if sum(sizes.values()) <= limit:
            return
        # Forked processes share pages, which were counted for each of them: measure exactly before a kill. Measure
        # twice, because a process that ends meanwhile leaves its share to those measured later.
        for _ in range(2):
            sizes = {pid: _proportional(pid) for pid in self._untrusted()}
            if sum(sizes.values()) <= limit:
                return
        self._kill([max(sizes, key=lambda pid: sizes[pid])])

    def _untrusted(self) -> list[int]:
        return [pid for pid in _processes() if pid not in self._trusted]

    def _kill(self, processes: list[int]) -> None:
        self.killed = True
        for pid in processes:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _sockets(table: str = "/proc/net/sockstat") -> int:
    """Return the number of sockets in the box's network, including those without a descriptor."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        handle = os.open(table, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(handle, 64).split(None, 3)[2])
        finally:
            os.close(handle)
    return 0


def _locks(most: int, table: str = "/proc/locks") -> int:
    """Return how many locks of files the box's processes have, or a number above `most`."""
    count = 0
    with contextlib.suppress(OSError):
        handle = os.open(table, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while count <= most and (part := os.read(handle, 1 << 16)):
                # Locks of open files, rather than processes, are listed for everybody; the filter refuses them.
                count += part.count(b"\n") - part.count(b"OFDLCK")
        finally:
            os.close(handle)
    return count


def _processes() -> list[int]:
    names = os.listdir("/proc")  # noqa: PTH208 - faster; it runs twenty times a second
    return [int(name) for name in names if name.isdecimal()]


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)

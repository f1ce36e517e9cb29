"""Counters of the kernel's control groups inside a box, version 1 or 2; none where no group is visible."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_SLACK = 2
"""A limit up to this many times ours is taken for the box's own; larger ones are the machine's."""
_NEAR = 32
"""A peak that lacks less than this part of a limit has come up to it: no request for memory is so large."""


class MemoryGroup:
    """The memory control group that a box is in."""

    def __init__(self, version: int, folder: Path) -> None:
        """Read the group's files in `folder`."""
        self.version, self._folder = version, folder
        self._events = folder / ("memory.events" if version == 2 else "memory.oom_control")

    def kills(self) -> int:
        """Return how many of its processes were ever killed for want of memory, by whomever; 0 if that is not told."""
        return _count(self._events, b"oom_kill ")

    def hits(self) -> int:
        """Return how often its processes wanted more than its limit and there was nothing to let go."""
        return _count(self._events, b"oom ")

    def was_full(self, hits: int) -> bool:
        """Return whether its own limit was hit since `hits` was so many: else its kills were the machine's.

        Version 1 counts no hits, and no longer its failed requests where memory with swap has the same limit; it
        keeps the peak, which may be that of an earlier job.
        """
        if self.version == 2:
            return self.hits() > hits
        sizes = [
            (_number(self._folder / f"{kind}.max_usage_in_bytes"), _number(self._folder / f"{kind}.limit_in_bytes"))
            for kind in ("memory", "memory.memsw")  # the second is there only where swap is counted
        ]
        peaks = [(peak, limit) for peak, limit in sizes if peak is not None and limit is not None]
        return not peaks or any(peak >= limit - limit // _NEAR for peak, limit in peaks)


class Machine:
    """The machine, in place of a box's own group where none is seen: it counts the kills of all its processes."""

    def __init__(self, events: Path = Path("/proc/vmstat")) -> None:
        """Read `events`, which has a line ``oom_kill N``."""
        self._events = events

    def kills(self) -> int:
        """Return how many processes were ever killed for want of memory; 0 if that is not told."""
        return _count(self._events, b"oom_kill ")

    def hits(self) -> int:
        """Return 0: it has no limit."""
        return 0

    def was_full(self, hits: int) -> bool:
        """Return False: it has no limit."""
        return False


def memory_group(limit: int, root: Path = _ROOT) -> MemoryGroup | None:
    """Return the group that holds this box's memory to `limit` bytes, None if none is seen to."""
    for version, folder, name in ((2, root, "memory.max"), (1, root / "memory", "memory.limit_in_bytes")):
        if _holds(folder / name, limit):
            return MemoryGroup(version, folder)
    return None


def holds_processes(limit: int, root: Path = _ROOT) -> bool:
    """Return whether a group holds the number of this box's processes to `limit`."""
    return any(_holds(file, limit) for file in (root / "pids.max", root / "pids/pids.max"))


def _count(file: Path, name: bytes) -> int:
    """Return the number on a file's line of that name, 0 if there is none."""
    with contextlib.suppress(OSError, ValueError):
        # Twice for every job: the layers of a text file would cost more than the reading.
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

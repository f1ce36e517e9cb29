"""Counters of the kernel's control groups inside a box, version 1 or 2; none where no group is visible."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_SLACK = 2
"""A limit up to this many times ours is taken for the box's own; larger ones are the machine's."""


class MemoryGroup:
    """The memory control group that a box is in."""

    def __init__(self, version: int, events: Path) -> None:
        """Read `events`, which has a line ``oom_kill N``."""
        self.version, self._events = version, events

    def kills(self) -> int:
        """Return how many processes were killed for want of memory, ever; 0 if that cannot be read."""
        with contextlib.suppress(OSError, ValueError):
            # Twice for every job: the layers of a text file would cost more than the reading.
            handle = os.open(self._events, os.O_RDONLY | os.O_CLOEXEC)
            try:
                lines = os.read(handle, 1 << 14).splitlines()
            finally:
                os.close(handle)
            return sum(int(line.split()[1]) for line in lines if line.startswith(b"oom_kill "))
        return 0


def memory_group(limit: int, root: Path = _ROOT) -> MemoryGroup | None:
    """Return the group that holds this box's memory to `limit` bytes, None if none is seen to."""
    for version, limit_file, events in (
        (2, root / "memory.max", root / "memory.events"),
        (1, root / "memory/memory.limit_in_bytes", root / "memory/memory.oom_control"),
    ):
        if _holds(limit_file, limit):
            return MemoryGroup(version, events)
    return None


def holds_processes(limit: int, root: Path = _ROOT) -> bool:
    """Return whether a group holds the number of this box's processes to `limit`."""
    return any(_holds(file, limit) for file in (root / "pids.max", root / "pids/pids.max"))


def _holds(file: Path, limit: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii")) <= _SLACK * limit
    return False

"""Ends the largest process of a job that uses too much memory, where no control group does.

It looks every `SECONDS`. What it does not see: pages of shared anonymous mappings and of unlinked files
in memory that no process maps any more. The kernel's own killer takes a job's processes first of all.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

SECONDS = 0.05
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watchdog:
    """Holds the processes of a box, but for trusted ones, to a sum of resident bytes."""

    def __init__(self, limit: int) -> None:
        """Hold them to `limit` bytes; the processes that there are now are trusted."""
        self._limit, self._trusted = limit, set(_processes())
        self.killed = False

    def trust(self, pid: int) -> None:
        """Leave one more process alone."""
        self._trusted.add(pid)

    def look(self) -> None:
        """Kill the largest process if all of them together are too large."""
        sizes = {pid: _resident(pid) for pid in _processes() if pid not in self._trusted}
        if sum(sizes.values()) <= self._limit:
            return
        # Forked processes share pages, which were counted for each: look closer before anything is killed.
        sizes = {pid: _proportional(pid, size) for pid, size in sizes.items()}
        if sum(sizes.values()) > self._limit:
            self.killed = True
            with contextlib.suppress(OSError):
                os.kill(max(sizes, key=lambda pid: sizes[pid]), signal.SIGKILL)


def _processes() -> list[int]:
    names = os.listdir("/proc")  # noqa: PTH208 - twenty times a second
    return [int(name) for name in names if name.isdecimal()]


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
    return 0


def _proportional(pid: int, otherwise: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return otherwise

"""Names the process that something belongs to, so that what a dead one left can be told from what is in use."""

from __future__ import annotations

import os
from pathlib import Path


def owner(pid: int | None = None) -> str:
    """Return ``<pid>:<start time>`` of a process, this one by default; a number used again differs in the time."""
    number = os.getpid() if pid is None else pid
    return f"{number}:{started(number)}"


def alive(label: str) -> bool:
    """Return whether the process that `owner` named is still there; an unreadable label counts as alive."""
    pid, _, start = label.partition(":")
    if not (pid.isdigit() and start.isdigit()):
        return True
    if not Path("/proc/self/stat").exists():
        return _signalled(int(pid))
    return started(int(pid)) == int(start)


def started(pid: int) -> int:
    """Return when a process began, in clock ticks since boot; 0 if it is gone, or where there is no ``/proc``."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The second field is the program's name, which may hold blanks and brackets.
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

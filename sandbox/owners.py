"""Name the process that something belongs to, so that leftovers of a dead one are not taken for things in use."""

from __future__ import annotations

import os
from pathlib import Path

_FIRST = 0xEFFFFFFC
"""The namespace that every process of a machine can be seen from; the kernel gives it this number."""


def owner(pid: int | None = None) -> str:
    """Return ``<pid>:<start time>:<pid namespace>`` of a process, this one by default.

    A number used again differs in the time, that of a process in a container in the namespace.
    """
    number = os.getpid() if pid is None else pid
    return f"{number}:{started(number)}:{_namespace('self')}"


def alive(label: str) -> bool:
    """Return whether the process that `owner` named is still there; an unreadable label counts as alive."""
    parts = label.split(":")
    if len(parts) not in (2, 3) or not all(part.isdigit() for part in parts):
        return True
    pid, start = parts[:2]
    if parts[2:] not in ([], [str(_namespace("self"))]):
        return _inhabited(int(parts[2]))
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


def _namespace(process: str) -> int:
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return 0


def _inhabited(namespace: int) -> bool:
    """Return whether a pid namespace has a process, or may have one that cannot be seen from here."""
    if os.geteuid() != 0 or _namespace("self") != _FIRST:
        return True
    return any(_namespace(entry.name) == namespace for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True

"""The guest without a sandbox, for trusted test jobs only, isolated only by Landlock and the filter.

``python -m tests.helpers.bare_guest FOLDER [no-landlock]``. Here the guest is not the first process, so it may kill
only its own descendants.
"""

import contextlib
import ctypes
import functools
import os
import signal
import sys
from pathlib import Path

from ctxbench.sandbox.guest import confine, landlock, server, watchdog

_PR_SET_CHILD_SUBREAPER = 36


def _end_descendants() -> None:
    while children := Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)


def _descendants(guest: int) -> list[int]:
    """Return the guest's processes. The watchdog must see nothing else of this machine, not even sockets or locks."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError, ValueError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
    found = {guest}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


if __name__ == "__main__":
    if "no-landlock" in sys.argv:
        landlock.abi = lambda: 0
    watchdog._processes = functools.partial(_descendants, os.getpid())
    watchdog._sockets = lambda: 0
    watchdog._locks = lambda most: 0
    server._connected = lambda: False
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server.end_the_rest = _end_descendants
    shared = Path(sys.argv[1], "shm")
    shared.mkdir()
    server.SHARED_MEMORY = confine.SHARED_MEMORY = str(shared)
    confine._readable = lambda: ["/"]
    work = Path(sys.argv[1], "work")
    work.mkdir()
    sys.exit(server.live(str(work)))

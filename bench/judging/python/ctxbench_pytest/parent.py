"""Runs in the box, without foreign code: starts the child that runs the tests, and returns its events."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import resource
import select
import signal
import sys
import time
from typing import Any

from . import child

MAX_EVENTS = 512 * 1024
"""Maximum bytes of a child's events. A child that writes more is killed."""
_FLOOD = b'\n["flood"]\n'
_PR_SET_DUMPABLE = 4
_STEP = 0.05
_IDLE = 0.01
"""Share of a processor. A test that uses less is waiting, unless a hundred processes compete."""


def run_tests(arguments: dict[str, Any]) -> dict[str, Any]:
    """Run the tests in a child process. Return its events, its exit status or signal, and changed files."""
    _dumpable(0)
    nonce, seconds = arguments.pop("nonce"), arguments.pop("seconds")
    phase_seconds, idle = arguments.pop("each"), arguments.pop("idle")
    files = _files()
    read, write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            _dumpable(1)
            # The first limit stops the child with a signal that names the reason, the second in any case.
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
            status = child.run(_alone(write), arguments)
        finally:
            # Nothing that the tests left for the interpreter's exit may run.
            os._exit(status)
    os.close(write)
    try:
        events, status = _listen(read, pid, Patience(pid, phase_seconds, idle) if phase_seconds else None)
    finally:
        os.close(read)
    code = os.waitstatus_to_exitcode(status)
    return {
        "nonce": nonce,
        "exit": code if code >= 0 else None,
        "signal": -code if code < 0 else None,
        "events": events.decode("utf-8", "replace"),
        "changed": [path.removeprefix("./") for path, before in files.items() if before != _status(path)][:5],
    }


def _files() -> dict[str, tuple[int, int, int] | None]:
    return {
        path: _status(path) for folder, _, names in os.walk(".") for path in (os.path.join(folder, n) for n in names)
    }


def _status(path: str) -> tuple[int, int, int] | None:
    """Return a file's inode, size and change time. Only the kernel can set the change time."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_ctime_ns


def _dumpable(value: int) -> None:
    """Deny (0) or allow (1) the user's other processes access to this process's memory and files."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, value, 0, 0, 0)


def _alone(write: int) -> int:
    """Close all files, including the result's channel, except stdin, stdout and `write`. Return the new `write`."""
    place = 3
    if write != place:
        os.dup2(write, place, inheritable=False)
    os.closerange(place + 1, os.sysconf("SC_OPEN_MAX"))
    fcntl.fcntl(place, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    return place


class Patience:
    """Limits of the child's processor time and waiting time between two events."""

    def __init__(self, pid: int, phase_seconds: float, idle: float) -> None:
        """Allow `phase_seconds` of processor time, and `idle` seconds of waiting."""
        # The kernel's number for the processor clock of another process.
        self._clock = (~pid << 3) | 2
        self._each, self._idle = phase_seconds, idle
        self.renew()

    def renew(self) -> None:
        """Restart both limits after an event."""
        self._start, self._used = time.monotonic(), self._now()

    def is_over(self) -> bool:
        """Return whether the child has computed or waited too long since the last event."""
        used, waited = self._now() - self._used, time.monotonic() - self._start
        return used >= self._each or (waited >= self._idle and used < waited * _IDLE)

    def _now(self) -> float:
        with contextlib.suppress(OSError):
            return time.clock_gettime(self._clock)
        return 0.0


def _listen(read: int, pid: int, patience: Patience | None) -> tuple[bytes, int]:
    """Return the child's output and wait status. Its own children may keep the pipe open."""
    os.set_blocking(read, False)
    parts: list[bytes] = []
    size = 0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        # After the child's end its output is complete; before that more may follow.
        while piece := _piece(read):
            parts.append(piece)
            size += len(piece)
            if size > MAX_EVENTS:
                return b"".join(parts)[:MAX_EVENTS] + _FLOOD, status if ended else _kill(pid)
            if patience:
                patience.renew()
        if ended:
            return b"".join(parts), status
        if patience and patience.is_over():
            return b"".join(parts), _kill(pid)
        if piece is None:
            select.select([read], [], [], _STEP)
        else:
            time.sleep(_STEP / 10)


def _piece(read: int) -> bytes | None:
    """Return the next bytes; empty at the end of the pipe, None if nothing can be read now."""
    with contextlib.suppress(BlockingIOError):
        return os.read(read, 65536)
    return None


def _kill(pid: int) -> int:
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]

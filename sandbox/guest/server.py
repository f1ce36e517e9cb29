"""The first process of a box: it prepares the box, forks a supervisor for each job, and removes every trace of the job.

It reads only headers and the settings; processes that it forks read trees and jobs.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from . import child, confine, files, frames, landlock, permitted, watchdog
from .confine import SHARED_MEMORY, Confinement, JobLimits
from .supervisor import Supervisor

PROTOCOL = 1
_IN, _OUT = 0, 1
_WORK = "/work"
_SECONDS = 1.0
"""Seconds for the kernel to free what a job's processes used."""


class Guest:
    """The first process of a box, which serves one pool."""

    def __init__(self, settings: dict[str, Any], work: str = _WORK) -> None:
        """Take the limits of all jobs to come."""
        limits = JobLimits(**settings["limits"])
        self._group = watchdog.memory_group(limits.memory)
        self._bounds = Confinement(
            limits=limits,
            work=work,
            path=tuple(settings["path"]),
            rules=confine.rules(work),
            memory_group=self._group is not None,
            process_group=watchdog.holds_processes(limits.processes),
        )
        self._preload: list[str] = settings["preload"]
        self._used: tuple[int, int] | None = None
        self._states: dict[str, tuple[int, int]] = {}

    def prepare(self) -> dict[str, Any]:
        """Give up rights that no job may have, import what jobs need, create the folders; return the greeting."""
        filtered = _filter_calls(memory_group=self._group is not None)
        confine.bound(self._bounds)
        child.prepare(self._bounds)
        fault = self._import()
        try:
            self._remake()
        except OSError as error:
            fault = fault or f"the working folder cannot be created: {error}"
        gc.collect()
        gc.freeze()  # existing objects stay shared with every job
        return {
            "protocol": PROTOCOL,
            "fault": fault,
            "python": platform.python_version(),
            "landlock": 0 if self._bounds.rules is None else landlock.abi(),
            "seccomp": filtered,
            "memory": f"cgroup-v{self._group.version}" if self._group else "watchdog",
            "user": os.getuid(),
        }

    def _import(self) -> str:
        for name in self._preload:
            try:
                importlib.import_module(name)
            except BaseException as error:  # noqa: BLE001 - a module may raise anything; the pool gets the error
                return f"{name} cannot be imported: {type(error).__name__}: {error}"
        return ""

    def serve(self) -> str:
        """Handle frames until the stream ends; return why the box became unusable, or an empty text."""
        while (header := frames.read_header(_IN)) is not None:
            kind, length = header
            if kind == frames.TREE:
                status = _in_fork(self._unpack, length)
                if status:
                    return f"the tree's writer ended with {status}"
            elif kind == frames.JOB:
                status = _in_fork(self._supervise, length)
                trouble = f"the supervisor ended with {status}" if status else self._clean()
                frames.write(_OUT, frames.frame(frames.END, {"trouble": trouble}))
                if trouble:
                    return trouble
            else:
                return f"an unexpected frame of kind {kind!r} arrived"
        return ""

    def _unpack(self, length: int) -> None:
        head, content = frames.split(frames.read(_IN, length))
        fault = ""
        try:
            files.write(self._bounds.folder, head["files"], content)
        except (OSError, ValueError) as error:
            fault = f"the tree cannot be written: {error}"
        frames.write(_OUT, frames.frame(frames.READY, {"fault": fault}))

    def _supervise(self, length: int) -> None:
        supervisor = Supervisor(self._bounds, self._group)
        frames.write(_OUT, supervisor.run(frames.read(_IN, length)))

    def _clean(self) -> str:
        """Remove every trace of a job; return the reason if that fails."""
        end_the_rest()
        try:
            self._remake()
        except OSError as error:
            return f"a job's files cannot be removed: {error}"
        # The kernel frees a Landlock domain, which keeps the allowed folders alive, a moment after its process.
        deadline = time.monotonic() + _SECONDS
        while trouble := self._remainder():
            if time.monotonic() > deadline:
                return trouble
            time.sleep(0.001)
        return ""

    def _remainder(self) -> str:
        if self._used is not None and files.used(self._bounds.work) > self._used:
            return "some of a job's files remain"
        # If the network remembers closed connections (see `sandbox.types.NETWORK`), their ports are taken for the next
        # job.
        return "some of a job's connections remain open" if _connected() else ""

    def _remake(self) -> None:
        self._clear(self._bounds.work)
        with contextlib.suppress(FileNotFoundError):
            self._clear(SHARED_MEMORY)
        files.make(self._bounds.folders)
        if self._used is None and os.path.ismount(self._bounds.work):
            self._used = files.used(self._bounds.work)

    def _clear(self, folder: str) -> None:
        if folder not in self._states:
            self._states[folder] = files.state(folder)
        files.settle(folder, *self._states[folder])
        files.empty(folder)


def _connected(folder: str = "/proc/net") -> bool:
    """Return whether the box's network has a TCP connection, or remembers a closed one."""
    counts = _read(f"{folder}/sockstat") + _read(f"{folder}/sockstat6")
    if b"TCP: inuse 0 " in counts and b" tw 0 " in counts and (b"TCP6:" not in counts or b"TCP6: inuse 0\n" in counts):
        return False
    # These tables cost milliseconds: the kernel filters them out of the whole machine's. The first line names the
    # columns.
    return any(_read(f"{folder}/{table}").count(b"\n") > 1 for table in ("tcp", "tcp6"))


def _read(path: str) -> bytes:
    """Return the first bytes of a file; empty if it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(handle, 1024)
        finally:
            os.close(handle)
    return b""


def _filter_calls(*, memory_group: bool) -> bool:
    # Files in memory are part of no process's size, so the watchdog would not see them.
    try:
        permitted.restrict(absent=[] if memory_group else ["memfd_create"])
    except OSError:
        return False
    return True


def _in_fork(work: Callable[[int], None], length: int) -> int:
    """Run a function in a forked process, return its status; reap other processes that end meanwhile."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(length)
            code = 0
        except BaseException as error:  # noqa: BLE001 - this process must not return
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            sys.stderr.flush()
            os._exit(code)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return status


def end_the_rest() -> None:
    """Kill every process of the box but this one, in one pass that no fork escapes, and reap them."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def main() -> NoReturn:
    """Serve one pool until its stream ends.

    Raises:
        SystemExit: always; with status 1 and a line on stderr after an error, or if this is not a box's first process.
    """
    if os.getpid() != 1:
        sys.exit("sandbox.guest must be the first process of a box; here it would kill every other process")
    sys.exit(live(_WORK))


def live(work: str) -> str | None:
    """Run as a box's first process; return why it ended before its stream did, or None."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    confine.set_dumpable(False)
    header = frames.read_header(_IN)
    if header is None:
        return None
    if header[0] != frames.SETTINGS:
        return f"a frame of kind {header[0]!r} arrived before the settings"
    guest = Guest(frames.split(frames.read(_IN, header[1]))[0], work)
    frames.write(_OUT, frames.frame(frames.GREETING, guest.prepare()))
    return guest.serve() or None

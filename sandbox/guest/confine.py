"""Confines an untrusted process before it runs any code: limits resources and files, closes inherited descriptors."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import landlock

_PR_SET_DUMPABLE = 4
_HIDDEN = ("proc", "sys", "dev", "work")
"""Entries of the root that are not readable as a whole; all others are the image."""
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty"))
_VISIBLE = ("/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup")
"""Facts about the machine that programs read; ``/proc`` has only the box's processes, of which the trusted are
closed."""
_RULES = 32
"""Lowest descriptor of Landlock's rules: a job's process puts its own descriptors at the first free ones."""
_MOVES = 2
"""First version of Landlock that can allow files to be moved and linked from one folder to another."""
_PENDING = 1024
"""Maximum number of queued signals and timers: the kernel counts them for each user."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the box's own


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLimits:
    """The limits that a box itself applies; see `sandbox.types.Limits`."""

    memory: int
    file_bytes: int
    processes: int
    open_files: int
    output: int
    result: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Limits, folders and Landlock rules that confine all jobs of this box."""

    limits: JobLimits
    work: str
    """Parent of a job's three folders; see `folders`."""
    path: tuple[str, ...]
    """Subfolders of the working folder that come first on Python's import path."""
    rules: int | None
    """Descriptor of Landlock's rules, created once because none of their folders changes; None without Landlock."""
    memory_group: bool
    """Whether the kernel limits the box's memory as a whole."""
    process_group: bool
    """Whether the kernel limits the number of the box's processes."""

    @property
    def folder(self) -> str:
        """Path of a job's working folder."""
        return f"{self.work}/job"

    @property
    def folders(self) -> tuple[str, str, str]:
        """The folders created for each job: its working folder, its home, and its temporary files."""
        return self.folder, f"{self.work}/home", f"{self.work}/tmp"  # noqa: S108 - the box's own


def set_dumpable(dumpable: bool) -> None:
    """Open or close this process's memory, descriptors and environment to other processes of the same user."""
    _libc().prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def rules(work: str) -> int | None:
    """Return a descriptor of jobs' Landlock rules: read the image, write to the box's folders; None without Landlock.

    The first version of Landlock is not used: it refuses to move files between folders, so correct code would fail.

    Raises:
        OSError: if the kernel has Landlock and refuses.
    """
    if landlock.abi() < _MOVES:
        return None
    # Not a job's own three folders: the rules would keep them alive after their removal.
    ruleset = landlock.ruleset(_readable(), [work, SHARED_MEMORY, *_DEVICES], tcp=True)
    try:
        return fcntl.fcntl(ruleset, fcntl.F_DUPFD_CLOEXEC, _RULES)
    finally:
        os.close(ruleset)


def bound(bounds: Confinement) -> None:
    """Limit the resources of this process and its future children, for good. Call this once for all jobs of a box.

    Raises:
        OSError: if the kernel refuses.
    """
    for which, value in _resources(bounds):
        most = resource.getrlimit(which)[1]
        least = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(which, (least, least))


def enter(bounds: Confinement, descriptors: Sequence[int] = ()) -> None:
    """Confine this process and its future children, for good.

    The process gets its own session and keeps no descriptors but 0, 1, 2 and `descriptors`. It must have been forked
    from a process without threads, on which `bound` was called.

    Raises:
        OSError: if the kernel refuses the session, the working folder or the rules.
    """
    os.setsid()
    _close_all_but(descriptors if bounds.rules is None else [*descriptors, bounds.rules])
    with contextlib.suppress(OSError):
        handle = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(handle, b"1000")
        os.close(handle)
    os.chdir(bounds.folder)
    if bounds.rules is not None:
        landlock.enforce(bounds.rules)
        os.close(bounds.rules)


def _close_all_but(descriptors: Sequence[int]) -> None:
    start = 3
    for handle in sorted(descriptors):
        os.closerange(start, handle)
        start = handle + 1
    os.closerange(start, 1 << 16)


def _resources(bounds: Confinement) -> list[tuple[int, int]]:
    limits = bounds.limits
    resource_limits = [
        # Not 0: if the machine names a program for core files, 0 would not stop it from running, outside the box.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_SIGPENDING, _PENDING),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_MSGQUEUE, 0),
    ]
    if not bounds.process_group and own_user_namespace():
        # In its own user namespace the kernel counts the box alone, including guest and supervisor. Elsewhere it would
        # count every process of this user on the machine.
        resource_limits.append((resource.RLIMIT_NPROC, limits.processes + 2))
    if not bounds.memory_group:
        # Not the address space, of which the JVM reserves gigabytes. It is twice the limit, so that the watchdog ends a
        # program over the limit, as the kernel would; this one only bounds the overshoot.
        resource_limits.append((resource.RLIMIT_DATA, 2 * limits.memory))
    return resource_limits


def own_user_namespace(table: str = "/proc/self/uid_map") -> bool:
    """Return whether this box has its own user namespace."""
    return Path(table).read_text(encoding="ascii").split() != ["0", "0", str((1 << 32) - 1)]


def _readable() -> list[str]:
    folders = [f"/{entry.name}" for entry in os.scandir("/") if not entry.is_symlink() and entry.name not in _HIDDEN]
    return [*folders, *_DEVICES, *_VISIBLE]

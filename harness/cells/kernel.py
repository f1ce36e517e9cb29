"""Linux calls for cells: drop privileges, create namespaces (as root or in a user namespace), measure processes."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

# These numbers are the same on every architecture.
_MOUNT_SETATTR = 442
_READ_ONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
"""Flags of mounts. Mounts are read-only, so that reading a file does not change its access time."""
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_NEWNS, _NEWUTS, _NEWIPC = 0x20000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
PARENT = "/cell"
FOLDER = f"{PARENT}/tmp"  # noqa: S108 - the cell's own
"""The only writable folder in a cell: in memory, empty at first, and deleted with the cell. Landlock rules name the
parent folder, because a rule for a mount point would apply to the folder below the mount."""
_SIZE = "size=512m,nr_inodes=20000,mode=700"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_OWN_PIDS = "/proc/self/ns/pid"
_DAC_READ_SEARCH = 1 << 2
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 8, 24, 38, 47, 4
_VERSION = 0x20080522
"""Version of the kernel's capability structure: two halves of 32 bits."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROC = Path("/proc")
_STATE, _BEGAN, _PAGES = 0, 19, 21
"""Indices of fields in ``/proc/PID/stat``, counted after the name: state, start time, resident pages."""
_COUNTS = ((11, 12), (7,), (13, 14), (8,))
"""Indices of the fields for `Counts`: times and faults of the process, then those of its ended children."""
Process = tuple[int, int]
"""A process's number and start time. The number alone is not enough, because the kernel reuses numbers."""


class Namespaces:
    """The Linux namespaces of the fork server. `fork` and `furnish` set up each cell's own namespaces."""

    def __init__(self, visible: Sequence[str], hidden: Iterable[str], stage: str) -> None:
        """Enter the namespaces in a child that replaces this process, which must have no threads.

        Cells see the paths in `visible`, except those in `hidden`. The view is built in the empty folder `stage`. An
        OSError means that the kernel refused. This process may then be in an undefined state.
        """
        if not sys.platform.startswith("linux"):
            raise OSError("namespaces need Linux")
        self.own_users = _unshare_all()
        """Whether the server has its own user namespace, which contains only the current user."""
        _become_first()
        self._pids = os.open(_OWN_PIDS, os.O_RDONLY | os.O_CLOEXEC)
        _mount(None, "/", None, _REC | _PRIVATE)
        _build(visible, sorted(hidden), stage)
        current_folder = Path.cwd()
        os.chdir(stage)
        # Mount the view on top of the old root, then detach the old root.
        _check(_libc().pivot_root(b".", b"."), "pivot_root")
        _check(_libc().umount2(b".", _DETACH), "unmount of the old root")
        os.chdir(current_folder)

    def fork(self) -> int:
        """Fork a child in a new PID namespace. Return what `os.fork` returns. The child's descendants end with it.

        Raises:
            OSError: if the kernel refuses the namespace or the process.
        """
        # Return to the server's namespace first: a process can unshare its children's namespace only once.
        _check(_libc().setns(self._pids, _NEWPID), "return to the server's PID namespace")
        _check(_libc().unshare(_NEWPID), "new PID namespace")
        return os.fork()

    def furnish(self, uid: int | None) -> None:
        """Mount the cell's writable folder, in `fork`'s child. It belongs to `uid`, or to the current user for None.

        Raises:
            OSError: if the kernel refuses the mount namespace or the mount.
        """
        os.close(self._pids)
        _check(_libc().unshare(_NEWNS), "new mount namespace")
        owner = "" if uid is None else f",uid={uid},gid={uid}"
        _mount("tmpfs", FOLDER, "tmpfs", _NOSUID | _NODEV, _SIZE + owner)


def granted(attempt: Callable[[], None], fork: Callable[[], int] = os.fork) -> bool:
    """Return whether `attempt` succeeds in a child process that `fork` creates, that is, raises no exception."""
    pid = fork()
    if pid == 0:
        code = 1
        try:
            attempt()
            code = 0
        except OSError:
            pass
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def _unshare_all() -> bool:
    kinds = _NEWNS | _NEWUTS | _NEWIPC | _NEWNET | _NEWPID
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _libc().unshare(kinds) == 0:
        return False
    _check(_libc().unshare(kinds | _NEWUSER), "new user namespace")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    return True


def _become_first() -> None:
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os._exit(code if code >= 0 else 128 - code)
    _check(prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "parent-death signal")


def _build(visible: Sequence[str], hidden: Sequence[str], stage: str) -> None:
    _mount("tmpfs", stage, "tmpfs", _NOSUID | _NODEV, "size=4m,mode=755")
    bound: list[str] = []
    for path in sorted(visible):
        if not any(_within(path, other) for other in bound):
            _bind(path, stage + path)
            bound.append(path)
    Path(f"{stage}{Path.cwd()}").mkdir(parents=True, exist_ok=True)
    _cover([path for path in hidden if any(_within(path, other) or _within(other, path) for other in bound)], stage)
    _set(stage, _READ_ONLY | _NOSUID | _NODEV, recursive=True)
    _set(stage, 0, cleared=_READ_ONLY)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{stage}/dev/{name}")
        _set(f"{stage}/dev/{name}", _READ_ONLY | _NOSUID | _NOEXEC)
    Path(stage + FOLDER).mkdir(parents=True)
    _set(stage, _READ_ONLY)


def _cover(hidden: Sequence[str], stage: str) -> None:
    """Mount an empty folder or file over each existing path, to hide its content, size and times."""
    folder, file = Path(stage, ".nothing"), Path(stage, ".empty")
    folder.mkdir(0o555)
    file.touch(0o444)
    for path in hidden:
        target = Path(stage + path)
        if target.exists() and not target.is_symlink():
            _mount(str(folder if target.is_dir() else file), str(target), None, _BIND)


def _bind(source: str, target: str) -> None:
    if Path(source).is_dir():
        Path(target).mkdir(parents=True, exist_ok=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()
    _mount(source, target, None, _BIND | _REC)


def _set(path: str, attributes: int, *, cleared: int = 0, recursive: bool = False) -> None:
    values = (ctypes.c_uint64 * 4)(attributes, cleared, 0, 0)
    raw, flags = os.fsencode(path), _AT_RECURSIVE if recursive else 0
    status = _libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, raw, flags, ctypes.byref(values), ctypes.sizeof(values))
    _check(status, f"mount attributes of {path}")


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    raw = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _check(_libc().mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3]), f"mount on {target}")


def _check(result: int, what: str) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> int:
    """Call ``prctl``, and return 0 on success or -1 on failure. Outside Linux, do nothing and return 0."""
    return int(_libc().prctl(option, value, 0, 0, 0)) if sys.platform.startswith("linux") else 0


def bound_privileges() -> None:
    """Prevent programs executed by this process or its children from gaining privileges. This process keeps its own."""
    if not sys.platform.startswith("linux"):
        return
    number = 0
    while prctl(_PR_CAPBSET_DROP, number) == 0:  # fails for an ordinary user, who has no capabilities to drop
        number += 1
    prctl(_PR_CAP_AMBIENT, _CLEAR_ALL)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_privileges(uid: int | None, *, reads_all: bool = False) -> None:
    """Switch to the user and group `uid`, unless None, and on Linux drop every capability.

    With `reads_all`, this process keeps the right to read all files. Programs that it executes lose this right.

    Raises:
        OSError: if the kernel refuses.
    """
    if reads_all:
        _check(prctl(_PR_SET_KEEPCAPS, 1), "keeping of capabilities")
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if not sys.platform.startswith("linux"):
        return
    capabilities = _DAC_READ_SEARCH if reads_all else 0
    # The sets are effective, permitted and inheritable: first their low halves, then their high halves.
    head, sets = (ctypes.c_uint32 * 2)(_VERSION, 0), (ctypes.c_uint32 * 6)(capabilities, capabilities)
    _check(_libc().capset(head, sets), "capset")


class Counts(NamedTuple):
    """Processor time in clock ticks and minor page faults of a process, and of ended children that it waited for."""

    ticks: int = 0
    faults: int = 0
    childrens_ticks: int = 0
    childrens_faults: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The resources that a cell's processes use."""

    processes: Mapping[Process, Counts]
    memory: int
    """Bytes of resident memory of all processes. Memory that several processes share may be counted several times."""
    runnable: bool
    """Whether any of the processes is running or waiting for a free processor."""


def usage(pid: int, earlier: Iterable[Process] = ()) -> Usage:
    """Return the resources used by a process, the `earlier` processes that still exist, and all their descendants."""
    pages = 0
    runnable = False
    processes: dict[Process, Counts] = {}
    visited: set[int] = set()
    # Visit parents first. If a child ends meanwhile, its use is added to the parent's, and must not count twice.
    to_visit: list[tuple[int, int | None]] = [*earlier, (pid, None)]
    while to_visit:
        number, beginning = to_visit.pop()
        process = _PROC / str(number)
        with contextlib.suppress(OSError):  # the process may end meanwhile
            fields = _stat(process)
            began = int(fields[_BEGAN])
            if number in visited or beginning not in (None, began):
                continue
            visited.add(number)
            processes[number, began] = Counts(*(sum(int(fields[at]) for at in places) for places in _COUNTS))
            pages += int(fields[_PAGES])
            for thread in process.joinpath("task").iterdir():
                with contextlib.suppress(OSError):
                    runnable = runnable or _stat(thread)[_STATE] == "R"
                    children = thread.joinpath("children").read_text(encoding="ascii").split()
                    to_visit += [(int(child), None) for child in children]
    return Usage(processes, pages * _PAGE, runnable)


class Work:
    """A meter of the processor time that a cell's processes use between two measurements."""

    def __init__(self) -> None:
        self.processes: Mapping[Process, Counts] = {}
        self._unclaimed = (0, 0)

    @property
    def escapes(self) -> bool:
        """Whether a process ended without its parent collecting its time, so that some work may be uncounted."""
        return any(self._unclaimed)

    def add(self, processes: Mapping[Process, Counts]) -> float:
        """Return the processor seconds between the last measurement and `processes`, including ended children's."""
        before, self.processes = self.processes, processes
        ended = [counts for process, counts in before.items() if process not in processes]
        ticks = claimed_ticks = claimed_faults = 0
        for process, counts in processes.items():
            last = before.get(process, Counts())
            ticks += counts.ticks - last.ticks
            claimed_ticks += counts.childrens_ticks - last.childrens_ticks
            claimed_faults += counts.childrens_faults - last.childrens_faults
        owed_ticks = self._unclaimed[0] + sum(counts.ticks + counts.childrens_ticks for counts in ended)
        owed_faults = self._unclaimed[1] + sum(counts.faults + counts.childrens_faults for counts in ended)
        self._unclaimed = max(0, owed_ticks - claimed_ticks), max(0, owed_faults - claimed_faults)
        return (ticks + max(0, claimed_ticks - owed_ticks)) / _TICKS


def ended_for_memory() -> int:
    """Return how many processes the kernel has killed since boot because memory ran out; 0 if unknown."""
    with contextlib.suppress(OSError):
        _, name, counts = _PROC.joinpath("vmstat").read_bytes().partition(b"\noom_kill ")
        return int(counts.split(None, 1)[0]) if name else 0
    return 0


def _stat(process: Path) -> list[str]:
    # A process chooses its own name, which may contain ")", so search from the end.
    return process.joinpath("stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def own_memory(pid: int) -> int:
    """Return the memory of a process in bytes, including its share of shared memory; 0 if unknown."""
    with contextlib.suppress(OSError):
        for line in _PROC.joinpath(str(pid), "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0

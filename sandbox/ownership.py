"""File locks, folders that are built atomically, and labels that identify a process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOCKED, PART = ".ctxbench-", ".part"
"""Prefix and suffix of folders that are being built, each locked by its process."""
_SURELY_HELD = 60.0
"""Seconds after which a living process has certainly locked its new folder."""
_FIRST = 0xEFFFFFFC
"""Inode of a machine's first pid namespace, from which all processes are visible."""


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """In this context, lock a file against other processes and threads. Create the file if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def scratch(parent: Path, prefix: str = LOCKED, suffix: str = PART) -> Iterator[Path]:
    """Yield an empty folder in `parent`, locked while this process lives. Remove the folder at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def abandoned(folder: Path) -> bool:
    """Return whether a folder's process is dead: the folder is unlocked, though old enough to have been locked."""
    try:
        if time.time() - folder.lstat().st_mtime < _SURELY_HELD:
            return False
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return `folder`. If it is missing, `make` fills a temporary folder, which is then renamed to `folder`.

    Concurrent calls for the same folder wait for the first one.
    """
    if folder.is_dir():
        return folder
    with exclusive_lock(folder.parent / f".{folder.name}.lock"):
        if not folder.is_dir():
            with scratch(folder.parent) as aside:
                inner = aside / folder.name
                inner.mkdir(mode=0o755)
                make(inner)
                inner.rename(folder)
    return folder


def owner(pid: int | None = None) -> str:
    """Return ``<pid>:<start time>:<pid namespace>``, which identifies a process, by default this one.

    The start time distinguishes processes with the same pid, and the namespace distinguishes processes in containers.
    """
    number = os.getpid() if pid is None else pid
    return f"{number}:{started(number)}:{_namespace('self')}"


def alive(label: str) -> bool:
    """Return whether the process with this `owner` label still exists; True if this cannot be found out."""
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
    """Return a process's start in clock ticks since boot; 0 if it is gone or there is no ``/proc``."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    # The second field is the program's name, which may contain blanks and brackets.
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def _namespace(process: str) -> int:
    try:
        return Path(f"/proc/{process}/ns/pid").stat().st_ino
    except OSError:
        return 0


def _inhabited(namespace: int) -> bool:
    """Return whether a pid namespace has a process, or may have one that is invisible from here."""
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

"""Folders that exist whole or not at all, made once for all processes."""

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
"""What the name of a folder being built starts and ends with; its builder holds a lock on it."""
_SURELY_HELD = 60.0
"""Seconds after which a living process has locked the folder that it made."""


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes (and threads) on `path`, a file made if missing.

    The kernel frees it when its holder dies, so a crash leaves no lock behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Give an empty folder in `parent`, locked while this process lives, and remove it afterwards."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=LOCKED, suffix=PART, dir=parent))
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def abandoned(folder: Path) -> bool:
    """Return whether nobody holds the lock on a folder that its maker locks, and it is old enough to say so."""
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
    """Return `folder`; where it is missing, `make` fills a folder aside that is then renamed to it.

    A call that comes while another builds the same folder waits for it.
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

"""The folder for the temporary folders of cells; the next run removes one that a killed run left."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from ctxbench.bench.files import explained

_PREFIX = "ctxbench-cells-"
_SURELY_LOCKED = 60.0
"""Seconds after which a living run has surely locked its folder."""


class Scratch:
    """A folder that is this run's while the process lives: the lock on it ends with the process."""

    def __init__(self) -> None:
        """Make and lock the folder.

        Raises:
            MachineFault: if the disk is full.
        """
        sweep()
        with explained(tempfile.gettempdir()):
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def sweep() -> None:
    """Remove the folders of runs that have ended."""
    for path in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < _SURELY_LOCKED:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)
            finally:
                os.close(lock)

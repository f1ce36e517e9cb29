"""Turns of the jobs that judge: many at once, or one alone, among all processes that use one home folder."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from ctxbench.bench.files import explained


class Turns:
    """Two lock files; who wants to be alone keeps new jobs waiting, so that a long run cannot starve it.

    Each turn opens the files anew, so that threads of one process keep each other out too. A process that dies gives
    its turns back.
    """

    def __init__(self, folder: Path) -> None:
        """Use a folder, made when it is first needed."""
        self._door, self._room = folder / "judging.door", folder / "judging.room"

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Wait until nobody is alone; keep everybody from being alone until the block ends."""
        with contextlib.ExitStack() as room:
            with _locked(self._door, fcntl.LOCK_SH):
                room.enter_context(_locked(self._room, fcntl.LOCK_SH))
            yield

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until the jobs that run are done; let none begin until the block ends."""
        with _locked(self._door, fcntl.LOCK_EX), _locked(self._room, fcntl.LOCK_EX):
            yield


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        fcntl.flock(file, how)
        yield

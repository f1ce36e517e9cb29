"""What a run makes of repositories to search them by, and how long that takes: told by `bench.retrieval`, kept here."""

from __future__ import annotations

import threading

from ctxbench.harness.store.records import StoredConstruction


class Construction:
    """A `bench.retrieval.types.Built` that notes what it is told. May be called by several threads."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._noted: list[StoredConstruction] = []

    def __call__(self, repo: str, stage: str, seconds: float) -> None:
        """Note one thing that was made."""
        with self._lock:
            self._noted.append(StoredConstruction(repo=repo, stage=stage, seconds=seconds))

    def take(self) -> list[StoredConstruction]:
        """Return what was noted since the last call, in that order."""
        with self._lock:
            taken, self._noted = self._noted, []
        return taken

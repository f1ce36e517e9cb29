"""`ConstructionLog`: the indices that a run builds of repositories, with the seconds that each took."""

from __future__ import annotations

import threading

from ctxbench.harness.store.records import StoredConstruction


class ConstructionLog:
    """A `bench.retrieval.types.Built` that records its calls. May be called by several threads."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._noted: list[StoredConstruction] = []

    def __call__(self, repo: str, stage: str, seconds: float) -> None:
        """Record one stage that was built."""
        with self._lock:
            self._noted.append(StoredConstruction(repo=repo, stage=stage, seconds=seconds))

    def take(self) -> list[StoredConstruction]:
        """Return the stages since the last call, in order."""
        with self._lock:
            stages, self._noted = self._noted, []
        return stages

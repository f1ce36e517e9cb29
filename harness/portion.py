"""`Portion`: which of a run's missing samples this process does, while others may do the same run."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ctxbench.bench.types import Sample
from ctxbench.harness.store.claims import Claims
from ctxbench.harness.store.store import Store

_LOG = logging.getLogger(__name__)
_AGAIN = 0.25
"""Seconds until what another process has claimed is looked at again."""


class Portion:
    """The missing samples of one run, claimed some at a time; each is handed out at most once."""

    def __init__(
        self, store: Store, claims: Claims, run: str, missing: Sequence[Sample], *, elsewhere: Callable[[int], Any]
    ) -> None:
        """Claim nothing yet.

        Args:
            store: where results go.
            claims: of this process.
            run: the run's id.
            missing: its samples that had no result a moment ago, in their order.
            elsewhere: told how many more samples another process has finished.
        """
        self._store, self._claims, self._run, self._elsewhere = store, claims, run, elsewhere
        self._left = deque(missing)
        self._others: list[Sample] = []
        self._remarked = False

    def take(self, count: int) -> list[Sample]:
        """Return up to `count` samples that are nobody else's and have no result."""
        taken: list[Sample] = []
        while self._left and len(taken) < count:
            taken += self._claimed([self._left.popleft() for _ in range(min(len(self._left), count - len(taken)))])
        return taken

    def _claimed(self, samples: Sequence[Sample]) -> list[Sample]:
        mine = self._claims.take([self._key(sample) for sample in samples])
        done = self._store.finished(self._run, [sample.id for sample in samples])
        self.release([sample for sample in samples if sample.id in done and self._key(sample) in mine])
        if done:
            self._elsewhere(len(done))
        left = [sample for sample in samples if sample.id not in done]
        self._others += [sample for sample in left if self._key(sample) not in mine]
        return [sample for sample in left if self._key(sample) in mine]

    def release(self, samples: Sequence[Sample]) -> None:
        """Give samples back: they have results now, or somebody else may try."""
        self._claims.release([self._key(sample) for sample in samples])

    def wait(self) -> bool:
        """Wait a moment for what other processes have claimed, to look at it again; return False if there is none."""
        if not self._others:
            return False
        if not self._remarked:
            _LOG.info("waiting for %d samples that another process has begun", len(self._others))
            self._remarked = True
        time.sleep(_AGAIN)
        self._left.extend(self._others)
        self._others.clear()
        return True

    def _key(self, sample: Sample) -> str:
        return f"{self._run} {sample.id}"

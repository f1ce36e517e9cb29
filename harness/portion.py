"""`Portion`: the part of a run's missing samples that this process completes, while others may do the same run."""

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
"""Seconds between two looks at samples that another process has claimed."""


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
            elsewhere: called with the number of samples that another process has finished since.
        """
        self._store, self._claims, self._run, self._elsewhere = store, claims, run, elsewhere
        self._left = deque(missing)
        self._others: list[Sample] = []
        self._remarked = False

    def take(self, count: int) -> list[Sample]:
        """Return up to `count` samples that no other process has claimed and that have no result."""
        claimed: list[Sample] = []
        while self._left and len(claimed) < count:
            claimed += self._claimed([self._left.popleft() for _ in range(min(len(self._left), count - len(claimed)))])
        return claimed

    def _claimed(self, samples: Sequence[Sample]) -> list[Sample]:
        mine = self._claims.take([self._key(sample) for sample in samples])
        finished = self._store.finished(self._run, [sample.id for sample in samples])
        self.release([sample for sample in samples if sample.id in finished and self._key(sample) in mine])
        if finished:
            self._elsewhere(len(finished))
        unfinished = [sample for sample in samples if sample.id not in finished]
        self._others += [sample for sample in unfinished if self._key(sample) not in mine]
        return [sample for sample in unfinished if self._key(sample) in mine]

    def release(self, samples: Sequence[Sample]) -> None:
        """Release samples: they have results now, or another process may try."""
        self._claims.release([self._key(sample) for sample in samples])

    def wait(self) -> bool:
        """Wait a moment for samples that other processes have claimed; return False if there are none."""
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

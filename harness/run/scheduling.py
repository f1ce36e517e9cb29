"""Divides a run's samples into units for processes, shares for machines, and batches for threads and the store."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from ctxbench.bench.errors import InputFault, MachineFault
from ctxbench.bench.types import Sample

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")
MOST, MOST_TESTED = 200, 40
"""Maximum number of samples per work unit, without tests and with tests. A unit then takes 10 to 60 seconds."""
_SHARE = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MOMENT = 0.05
"""Seconds to wait for more results after the first. Storing fifty results takes little longer than storing one."""
_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Samples of one repository in one run, completed together by one process."""

    run: str
    repo: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """One of several nearly equal parts of the samples, numbered like the tasks of a batch scheduler's array."""

    index: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Share:
        """Parse ``i/n``. The first of four shares is ``0/4``.

        Raises:
            InputFault: if the text is not a share.
        """
        match = _SHARE.fullmatch(text.strip())
        index, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if not index < count:
            raise InputFault(
                f"{text!r} is not a share: four shares are 0/4 to 3/4", where="--shard", cure="write --shard 0/4"
            )
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, samples: Sequence[Sample]) -> tuple[Sample, ...]:
        """Return the samples of this share, grouped by repository, so that few shares need the same repository.

        The sizes of the shares differ by at most one, and each sample is in one share.
        """
        ordered = tuple(chain.from_iterable(_by_repository(samples).values()))
        start, end = (len(ordered) * index // self.count for index in (self.index, self.index + 1))
        return ordered[start:end]


def most_of(samples: Sequence[Sample]) -> int:
    """Return the maximum number of samples per work unit for a run over these samples."""
    return MOST_TESTED if any(sample.tested for sample in samples) else MOST


def units(run: str, samples: Sequence[Sample], most: int | None = None) -> list[WorkUnit]:
    """Divide each repository's samples into nearly equal work units of at most `most` samples; None means `most_of`."""
    most = most or most_of(samples)
    return [
        WorkUnit(run, repo, tuple(of_repo[len(of_repo) * part // parts : len(of_repo) * (part + 1) // parts]))
        for repo, of_repo in _by_repository(samples).items()
        for parts in [-(-len(of_repo) // most)]
        for part in range(parts)
    ]


def _by_repository(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    samples_by_repo: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        samples_by_repo[sample.repo].append(sample)
    return samples_by_repo


class PendingWork(Generic[K, R]):
    """Work that was submitted to threads and whose results were not collected yet. For use by a single thread."""

    def __init__(self, threads: Executor, work: Callable[[K], R]) -> None:
        self._threads, self._work = threads, work
        self._begun: dict[Future[R], K] = {}

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, item: K) -> None:
        """Submit an item. Its work starts when a thread is free."""
        self._begun[self._threads.submit(self._work, item)] = item

    def drop(self) -> list[K]:
        """Cancel and return the items whose work has not started."""
        dropped = [future for future in self._begun if future.cancel()]
        return [self._begun.pop(future) for future in dropped]

    def take(self) -> list[tuple[K, Future[R]]]:
        """Wait for a finished item, then briefly for more. Return (item, future) pairs in the order of submission."""
        wait(self._begun, return_when=FIRST_COMPLETED)
        finished = wait(self._begun, timeout=_MOMENT).done
        return [(self._begun.pop(future), future) for future in list(self._begun) if future in finished]


class WorkPace:
    """A batch size that adapts to the measured time, so that results are stored often."""

    def __init__(self, first: int) -> None:
        self.size = max(1, first)

    def parts(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the items in batches. The time until the next batch is requested counts as the batch's duration."""
        at = 0
        while at < len(items):
            part = items[at : at + self.size]
            began = time.monotonic()
            yield part
            self.took(len(part), time.monotonic() - began)
            at += len(part)

    def took(self, items: int, seconds: float) -> None:
        """Adapt the batch size to the duration of a batch. Only a batch of more than 0.5 seconds reduces the size."""
        fits = int(items * _SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(2 * self.size, fits if seconds > _SECONDS else max(self.size, fits)))


class NothingWorks(MachineFault):
    """The fault of all remaining items of a batch, because every item would fail now."""


def isolate_faults(
    work: Callable[[Sequence[T]], R], part: Sequence[T], works: Callable[[MachineFault], bool]
) -> Iterator[tuple[Sequence[T], R | MachineFault]]:
    """Process a batch. If it fails, process its items separately, so that a fault affects only its own item.

    Args:
        works: returns whether other items can succeed after a fault. If not, no more items are tried.

    Yields:
        Items with their result or fault, each item once; `NothingWorks` for all items left if `works` returns False.
    """
    remaining, size = part, max(1, len(part))
    while remaining:
        items = remaining[:size]
        outcome: R | MachineFault
        try:
            outcome = work(items)
        except MachineFault as fault:
            if not works(fault):
                items, outcome = remaining, NothingWorks(fault.what, where=fault.where, cure=fault.cure)
            elif size > 1:
                size = 1
                continue
            else:
                outcome = fault
        remaining = remaining[len(items) :]
        yield items, outcome

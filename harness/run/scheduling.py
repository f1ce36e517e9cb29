"""Scheduling: a run's samples, cut into units and shares for processes, and into parts for threads and the store.

A unit contains samples of one repository, so that its process reads one repository and builds its indices once. The cut
does not affect the numbers: results are stored by run and sample, whichever process computed them.
"""

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
"""Maximum number of samples in a unit, and in a unit that tests judge: 10 to 60 seconds of work."""
_SHARE = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
_MOMENT = 0.05
"""Seconds to wait for more after a finished piece. Storing fifty samples takes little longer than storing one."""
_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Samples of one repository in one run, completed together by one process."""

    run: str
    repo: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """One of several equal parts of the samples, numbered like the tasks of a batch scheduler's array."""

    index: int
    """Number of the share, from 0."""
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
                f"{text!r} is not a share: the shares of n are 0/n to n-1/n", where="--shard", cure="write --shard 0/4"
            )
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, pieces: Sequence[T], repo: Callable[[T], str]) -> tuple[T, ...]:
        """Return this share of some pieces, ordered by repository, so that few repositories are split.

        The sizes of shares differ by at most one. Together they contain each piece once. `repo` returns the repository
        of a piece.
        """
        ordered = tuple(chain.from_iterable(_grouped(pieces, repo).values()))
        start, end = (len(ordered) * index // self.count for index in (self.index, self.index + 1))
        return ordered[start:end]


def most_of(samples: Sequence[Sample]) -> int:
    """Return the limit of samples in a unit of a run over these samples."""
    return MOST_TESTED if any(sample.tested for sample in samples) else MOST


def units(run: str, samples: Sequence[Sample], most: int | None = None) -> list[WorkUnit]:
    """Cut samples of a run into units of at most `most`, of nearly equal size within a repository, in order."""
    most = most or most_of(samples)
    return [
        WorkUnit(run, repo, tuple(of_repo[len(of_repo) * part // parts : len(of_repo) * (part + 1) // parts]))
        for repo, of_repo in _grouped(samples, repository_of).items()
        for parts in [-(-len(of_repo) // most)]
        for part in range(parts)
    ]


def repository_of(sample: Sample) -> str:
    """Return the name of a sample's repository."""
    return sample.repo


def _grouped(pieces: Sequence[T], repo: Callable[[T], str]) -> dict[str, list[T]]:
    pieces_by_repo: dict[str, list[T]] = defaultdict(list)
    for piece in pieces:
        pieces_by_repo[repo(piece)].append(piece)
    return pieces_by_repo


class UnderWay(Generic[K, R]):
    """Work whose results have not been taken. For a single thread."""

    def __init__(self, threads: Executor, work: Callable[[K], R]) -> None:
        self._threads, self._work = threads, work
        self._begun: dict[Future[R], K] = {}

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, piece: K) -> None:
        """Submit a piece. It starts as soon as a thread is free."""
        self._begun[self._threads.submit(self._work, piece)] = piece

    def drop(self) -> list[K]:
        """Drop and return the pieces that no thread has begun."""
        dropped = [future for future in self._begun if future.cancel()]
        return [self._begun.pop(future) for future in dropped]

    def take(self) -> list[tuple[K, Future[R]]]:
        """Wait for a finished piece, and a moment for more. Return the finished pieces in the order of submission."""
        wait(self._begun, return_when=FIRST_COMPLETED)
        finished = wait(self._begun, timeout=_MOMENT).done
        return [(self._begun.pop(future), future) for future in list(self._begun) if future in finished]


class WorkPace:
    """The size of the next part of some work, so that results are stored soon and a kill loses little."""

    def __init__(self, first: int) -> None:
        self.size = max(1, first)

    def parts(self, pieces: Sequence[T]) -> Iterator[Sequence[T]]:
        """Yield the pieces in parts. Each part is timed until the next is taken."""
        at = 0
        while at < len(pieces):
            part = pieces[at : at + self.size]
            began = time.monotonic()
            yield part
            self.took(len(part), time.monotonic() - began)
            at += len(part)

    def took(self, pieces: int, seconds: float) -> None:
        """Record the duration of a part. A short last part does not shrink the next ones."""
        fits = int(pieces * _SECONDS / max(seconds, 1e-6))
        self.size = max(1, min(2 * self.size, fits if seconds > _SECONDS else max(self.size, fits)))


class NothingWorks(MachineFault):
    """The fault of items that were not tried one by one, because every item would fail now."""


def apart(
    work: Callable[[Sequence[T]], R], part: Sequence[T], works: Callable[[MachineFault], bool]
) -> Iterator[tuple[Sequence[T], R | MachineFault]]:
    """Do some work on a part. If it fails, do each piece singly, so that a fault affects only its own piece.

    `works` returns whether other pieces can be completed after a fault. If not, trying each would cost too much time.

    Yields:
        Pieces with their result or fault, each piece once; `NothingWorks` for all pieces that were not tried.
    """
    remaining, size = part, max(1, len(part))
    while remaining:
        pieces = remaining[:size]
        outcome: R | MachineFault
        try:
            outcome = work(pieces)
        except MachineFault as fault:
            if not works(fault):
                pieces, outcome = remaining, NothingWorks(fault.what, where=fault.where, cure=fault.cure)
            elif size > 1:
                size = 1
                continue
            else:
                outcome = fault
        remaining = remaining[len(pieces) :]
        yield pieces, outcome

"""Units: the samples of a run, cut into work that any process can do in any order. Pure.

A unit is of one repository, so that whoever does it reads one repository and builds its indices once. How a run is cut
decides none of its numbers: results are kept by run and sample, whoever made them, and however often.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Sample

T = TypeVar("T")
MOST, MOST_TESTED = 200, 40
"""Samples of a unit at most, and of one whose samples tests judge: 10 to 60 seconds of work."""
_SHARE = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class WorkUnit:
    """Samples of one repository in one run, done together by one process."""

    run: str
    """The run's id."""
    repo: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """One of several equal parts of the samples, as batch schedulers number the tasks of an array."""

    index: int
    """From 0."""
    count: int

    @classmethod
    def parse(cls, text: str) -> Share:
        """Read ``i/n``, the first of four being ``0/4``.

        Raises:
            InputFault: if it is no such share.
        """
        match = _SHARE.fullmatch(text.strip())
        index, count = (int(match[1]), int(match[2])) if match else (0, 0)
        if not index < count:
            raise InputFault(
                f"{text!r} is no share: the shares of n are 0/n to n-1/n", where="--shard", cure="write --shard 0/4"
            )
        return cls(index, count)

    def __str__(self) -> str:
        """Return it as it is written."""
        return f"{self.index}/{self.count}"

    def of(self, pieces: Sequence[T], repo: Callable[[T], str]) -> tuple[T, ...]:
        """Return this part of some pieces of work, taken repository by repository: few repositories are in two parts.

        The parts differ in size by at most one; together they are the pieces, each once.

        Args:
            pieces: samples, or completions of them.
            repo: tells the repository of a piece.
        """
        ordered = tuple(chain.from_iterable(_grouped(pieces, repo).values()))
        start, end = (len(ordered) * index // self.count for index in (self.index, self.index + 1))
        return ordered[start:end]


def most_of(samples: Sequence[Sample]) -> int:
    """Return how many samples of a run a unit may have."""
    return MOST_TESTED if any(sample.tested for sample in samples) else MOST


def units(run: str, samples: Sequence[Sample], most: int | None = None) -> list[WorkUnit]:
    """Cut samples of a run into units of at most `most`, those of a repository as equal as can be, in their order."""
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

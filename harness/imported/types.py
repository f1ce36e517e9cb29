"""The content of a file of recorded predictions, whatever its format. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ctxbench.bench.formats.types import Row
from ctxbench.bench.testing.types import Verdict
from ctxbench.bench.types import Kind, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """One completion."""

    text: str
    """The text after the cursor; for functions the whole function, unless `behind` is set."""
    verdict: Verdict | None = None
    """The outcome of its tests; None if the file has none."""
    reason: str = ""
    """One short line; empty when it passed."""
    flags: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    """The flags of its verdict."""
    behind: bool = False
    """Whether the text follows the cursor for functions too: then the whole function is made of it, as in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSample:
    """The record of one sample under one pair of labels."""

    where: str
    """``FILE:LINE`` of its (first) record."""
    task: str
    """The benchmark's id of the sample."""
    answers: tuple[RecordedAnswer, ...]
    sample: Sample | None = None
    """The facts of the sample, where the file itself tells enough of them."""
    strategy: str = ""
    generator: str = ""


class PredictionFormat(Protocol):
    """A module ``harness.imported.<name>``."""

    SHAPE: str
    """The fields that it reads, one sentence: the cure of a malformed record."""
    KIND: Kind | None
    """The kind of sample that is completed; None for either."""
    TASKS: str | None
    """One of `exported.SHAPES`, whose names of tasks the predictions use; None where those are the set's ids."""

    def read(self, rows: Iterable[Row]) -> list[RecordedSample]:
        """Read all records.

        Raises:
            InputFault: at the first malformed record, naming file, line, field and cure.
        """
        ...

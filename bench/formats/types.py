"""The parts of every sample format: rows in, tasks out, and back. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ctxbench.bench.languages.base import Language
from ctxbench.bench.types import Reference, Sample

Row = tuple[str, Mapping[str, Any]]
"""Where it stands (``FILE:LINE``, or ``FILE: RECORDS[3]``), and the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One file or data set, opened."""

    name: str
    """The file's name without folder and endings, e.g. ``line_completion_rg1_bm25``."""
    source: str
    """What was asked for: a path as given, or ``hub:OWNER/NAME``."""
    digest: str
    """SHA-256 of the file; of a hub's data set its pinned revision."""
    rows: Iterable[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The caller's options for reading."""

    language: Language | None = None
    """The language of the files that do not say it themselves; others are refused."""
    docstring: str = "raw"
    """CoderEval: ``raw``, the original one, or ``human``, the one written by a person."""
    revision: str | None = None
    """The commit of a hub's data sets."""
    split: str | None = None
    """The split of a hub's data sets."""


@dataclass(frozen=True, slots=True)
class Task:
    """One sample and its answer, as the files alone give them."""

    sample: Sample
    reference: Reference
    where: str = field(default="", compare=False)
    """Where its record stands, as in `Row`; for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """A record that is well formed and yet no sample; reported and counted, never dropped in silence."""

    id: str
    reason: str
    """A few words with underscores, e.g. ``empty_target``: the key of the count in the set's manifest."""
    where: str
    detail: str = ""


class Format(Protocol):
    """A module ``bench.formats.<name>``."""

    SHAPE: str
    """The fields that it reads, for the command's help: one or a few sentences."""

    def read(self, tables: Sequence[Table], options: Options) -> Iterator[Task | Unusable]:
        """Read and join the tables.

        Raises:
            InputFault: at the first malformed record, naming file, line, field and cure.
        """
        ...

    def in_repository(self, task: Task, text: str) -> Task | None:
        """Return the task made anew from its whole file; None if the answer does not stand where the record says."""
        ...

    def records(self, samples: Iterable[Sample], references: Mapping[str, Reference]) -> Iterator[dict[str, Any]]:
        """Yield the records of samples, so that reading them gives equal samples.

        Raises:
            InputFault: at a sample that the format has no place for.
        """
        ...


@runtime_checkable
class Locating(Protocol):
    """A format whose tasks may stand in another file than their records say."""

    def in_snapshot(self, task: Task, texts: Mapping[str, str]) -> Task | Unusable:
        """Return the task made anew from its repository's files (path -> text); used in place of `in_repository`."""
        ...


@runtime_checkable
class Remarking(Protocol):
    """A format with something to say of all its tasks to whoever reads their numbers."""

    def remarks(self, tasks: Sequence[Task]) -> Sequence[str]:
        """Return whole sentences for the set's ``remarks``."""
        ...

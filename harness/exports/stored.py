"""`ExportedRun`: all that is stored of one run, read once for a writer of another tool's format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ctxbench.bench.samples import SampleSet
from ctxbench.harness.leaderboard import board
from ctxbench.harness.leaderboard.rows import Group, Row
from ctxbench.harness.results import RunTable
from ctxbench.harness.store.details import CompletionFacts, Detail, completion_texts, detail
from ctxbench.harness.store.runs import RunFilter, find_run, run_tables
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.work import RunWork, works

_OURS = ("ctxbench", "context")
"""Profiles whose metrics go without the profile's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRun:
    """One run for a writer; samples are read from the store as they are asked for."""

    store: Store
    work: RunWork
    tables: tuple[RunTable, ...]
    """One a language."""
    sample_set: SampleSet | None
    """Its samples with their references; None where they are not here."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.work.id

    @property
    def sampling(self) -> dict[str, Any]:
        """How the model decoded."""
        values: dict[str, Any] = json.loads(self.work.choices.sampling)
        return values

    @property
    def code(self) -> str:
        """The version of ctxbench that made it; of this one where an import does not say."""
        return self.work.versions.get("ctxbench") or version("ctxbench")

    @property
    def began(self) -> datetime:
        """When work on it began first; the beginning of time if no attempt is stored."""
        return datetime.fromtimestamp(min((attempt.started for attempt in self.work.attempts), default=0.0), UTC)

    @property
    def ended(self) -> datetime:
        """When its last attempt ended, or began if no end was noted."""
        ends = [attempt.ended or attempt.started for attempt in self.work.attempts]
        return datetime.fromtimestamp(max(ends, default=0.0), UTC)

    def details(self) -> Iterator[Detail]:
        """Yield the planned samples, in the plan's order, language by language."""
        for table in self.tables:
            for sample in table.sample:
                yield detail(self.store, self.id, sample)

    def text(self, sample: str, completion: CompletionFacts) -> str | None:
        """Return the text of a completion; None of a reference result, which came without."""
        texts = completion_texts(self.store, self.id, sample, completion.idx)
        return None if texts is None else texts.text

    def target(self, sample: str) -> str:
        """Return the reference of a sample; empty where the sample set is not here."""
        return "" if self.sample_set is None else self.sample_set.references[sample].target

    def rows(self) -> Iterator[tuple[Group, Row]]:
        """Yield the run's means with their intervals, one row a language, in the units shown."""
        for group in board(self.tables, by_level=False).groups:
            yield from ((group, row) for row in group.rows)


def scores_of(completion: CompletionFacts) -> dict[str, float]:
    """Return metric -> value, in the profile's own scale; other profiles' metrics go with their profile's name."""
    return {
        metric if profile in _OURS else f"{profile}.{metric}": value
        for (profile, metric), value in completion.scores.items()
        if value is not None
    }


def read_run(store: Store, run: str) -> ExportedRun:
    """Read one run for a writer, without its sample set.

    Args:
        store: where it is.
        run: its id, its beginning or its name.

    Raises:
        InputFault: if the id is not whole enough.
        UnknownName: if there is no such run.
    """
    id_ = find_run(store, run).id
    [work] = works(store, [id_])
    tables = run_tables(store, selection=RunFilter(id=id_))
    return ExportedRun(store=store, work=work, tables=tuple(tables), sample_set=None)

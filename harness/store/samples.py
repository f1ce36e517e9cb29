"""Planned samples of stored runs with their status and scores: the columns of a table.

Read a run at a time and as columns: an object a row would take longer than the database does, and more memory.
"""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Float, Integer, Select, bindparam, select

from ctxbench.bench.types import is_tested
from ctxbench.harness.results import Status, status_cases
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.engine import fetched
from ctxbench.harness.store.scores import Counts
from ctxbench.harness.store.verdicts import PASS

T = TypeVar("T")
Values: TypeAlias = Mapping[str, float | None]
"""Sample -> value."""
_STATUSES = {str(status): status for status in Status}
_NUMBERS: dict[str, ColumnElement[Any]] = {
    column.name: column for column in t.RESULT.c if isinstance(column.type, Integer | Float)
}
"""The columns of a result that hold numbers; each that is no field of `RunTable` is one of its costs."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the store knows of one sample, whatever the run."""

    benchmark: str
    kind: str
    language: str
    repo: str
    level: str
    day: str | None = None
    """The day of its code, as ``YYYY-MM-DD``; None if it is unknown."""

    @property
    def tested(self) -> bool:
        """Whether tests judge it, as of `bench.types.Sample`."""
        return bool(is_tested(self.kind, self.level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The planned samples of one run, in order; columns of equal length."""

    id: tuple[str, ...]
    facts: tuple[Facts, ...]
    stored: tuple[str | None, ...]
    """The status of the result; None where there is none."""
    numbers: Mapping[str, tuple[float | None, ...]]
    """Column of the result -> its values; None where there is no result."""
    kinds: tuple[Facts, ...]
    """The facts without repetitions."""

    def status(self, verdicts: Counts, n: int, excluded: Collection[str]) -> tuple[Status, ...]:
        """Return what became of each, as `status_of` says.

        Args:
            verdicts: of the run.
            n: completions a sample.
            excluded: the samples that are left out.
        """
        if not excluded and not any(facts.tested for facts in self.kinds):
            alike = {stored: status_of(self.kinds[0], stored, 0, n, excluded=False) for stored in set(self.stored)}
            return tuple([alike[stored] for stored in self.stored])
        return tuple(
            status_of(facts, stored, verdicts.get(id_, (0, 0))[0], n, excluded=id_ in excluded)
            for id_, facts, stored in zip(self.id, self.facts, self.stored, strict=True)
        )

    def only(self, language: str | None) -> bool:
        """Return whether all of them are in one language, or none is asked for."""
        return language is None or {facts.language for facts in self.kinds} <= {language}

    def among(self, language: str) -> Planned:
        """Return the samples in one language."""
        if self.only(language):
            return self
        keep = [place for place, facts in enumerate(self.facts) if facts.language == language]

        def part(column: tuple[T, ...]) -> tuple[T, ...]:
            return tuple([column[place] for place in keep])

        facts = part(self.facts)
        numbers = {name: part(column) for name, column in self.numbers.items()}
        return Planned(id=part(self.id), facts=facts, stored=part(self.stored), numbers=numbers, kinds=_distinct(facts))

    @property
    def seconds(self) -> tuple[float | None, ...]:
        """What the strategy and the model took together."""
        both = zip(self.numbers["strategy_seconds"], self.numbers["generator_seconds"], strict=True)
        return tuple([None if strategy is None or model is None else strategy + model for strategy, model in both])


def planned_samples(connection: Connection, runs: Sequence[tuple[str, str]]) -> Iterator[Planned]:
    """Yield the planned samples of each run, given as (id, digest of its set)."""
    facts = {digest: _facts(connection, digest) for digest in dict.fromkeys(digest for _, digest in runs)}
    p, r = t.PLANNED.c, t.RESULT.c
    joined = t.PLANNED.outerjoin(t.RESULT, (p.run_id == r.run_id) & (p.sample_id == r.sample_id))
    query = (
        select(p.sample_id, r.status, *(column.label(name) for name, column in _NUMBERS.items()))
        .select_from(joined)
        .where(p.run_id == bindparam("run"))
        .order_by(p.ordinal)
    )
    # Most runs of a set have the same samples: one tuple of names serves them all.
    shared: dict[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], tuple[Facts, ...], tuple[Facts, ...]]] = {}
    for run, digest in runs:
        rows = fetched(connection, query, run=run)
        ids, stored, *columns = [tuple(map(operator.itemgetter(place), rows)) for place in range(2 + len(_NUMBERS))]
        if (digest, ids) not in shared:
            of_set = facts[digest]
            of_ids = tuple([of_set[id_] for id_ in ids])
            shared[digest, ids] = ids, of_ids, _distinct(of_ids)
        ids, of_ids, kinds = shared[digest, ids]
        numbers = dict(zip(_NUMBERS, columns, strict=True))
        yield Planned(id=ids, facts=of_ids, stored=stored, numbers=numbers, kinds=kinds)


def status_of(facts: Facts, stored: str | None, judged: int, n: int, *, excluded: bool) -> Status:
    """Return what became of a sample, by the rules of `status_cases`; `stored` is the status of its result, if any."""
    cases = status_cases(excluded=excluded, missing=stored is None, tested=facts.tested, judged=judged, n=n)
    return next((status for holds, status in cases if holds), None) or _STATUSES[str(stored)]


def _distinct(facts: tuple[Facts, ...]) -> tuple[Facts, ...]:
    """Return each once; equal facts of one set are one object."""
    return tuple({id(sample_facts): sample_facts for sample_facts in facts}.values())


def _facts(connection: Connection, digest: str) -> dict[str, Facts]:
    s, d = t.SAMPLE.c, t.DATED.c
    dated = t.SAMPLE.outerjoin(t.DATED, (s.set_digest == d.set_digest) & (s.id == d.sample_id))
    columns = (s.id, s.benchmark, s.kind, s.language, s.repo, s.subkind, d.day)
    query = select(*columns).select_from(dated).where(s.set_digest == digest)
    # Equal facts are one object: a set has few.
    distinct: dict[tuple[str | None, ...], Facts] = {}
    return {id_: distinct.setdefault(tuple(facts), Facts(*facts)) for id_, *facts in fetched(connection, query)}


def asked_scores(profiles: Collection[str], among: tuple[str, str] | None = None) -> Select[Any]:
    """Return the question for the scores of a run, to be asked of any number of runs.

    Args:
        profiles: whose metrics.
        among: digest of the runs' set, and the language of the samples that are wanted; None for all of them.
    """
    s, m = t.SCORE.c, t.SAMPLE.c
    query = (
        select(s.profile, s.metric, s.sample_id, s.value)
        .where(s.run_id == bindparam("run"), s.profile.in_(sorted(profiles)), s.metric != PASS)
        .order_by(s.profile, s.metric)
    )
    if among is None:
        return query
    return query.where(s.sample_id.in_(select(m.id).where(m.set_digest == among[0], m.language == among[1])))


def stored_scores(connection: Connection, query: Select[Any], run: str) -> dict[str, Values]:
    """Return metric -> sample -> mean over its completions, of one run; `asked` is that of `asked_scores`."""
    rows = fetched(connection, query, run=run)
    columns: dict[str, Values] = {}
    for start, end in _stretches(rows):
        stretch = rows[start:end]
        column = {sample: value for _, _, sample, value in stretch}
        # With several completions a sample has several rows.
        columns[rows[start][1]] = column if len(column) == len(stretch) else _means(stretch)
    return columns


def _means(rows: Sequence[tuple[Any, ...]]) -> Values:
    """Take the mean of each sample here: databases, and versions of one, add in ways that differ in the last digits."""
    values: dict[str, list[float]] = defaultdict(list)
    for *_, sample, value in rows:
        values[sample] += [] if value is None else [value]
    return {sample: math.fsum(some) / len(some) if some else None for sample, some in values.items()}


def _stretches(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, int]]:
    """Yield where each metric of each profile begins and ends, looking at few of the rows, which are sorted."""
    start = 0
    while start < len(rows):
        key = rows[start][:2]
        low, step = start, 1
        # Beyond `low` the key still holds; double the step until it does not, then halve it.
        while low + step < len(rows) and rows[low + step][:2] == key:
            low, step = low + step, step * 2
        while step:
            if low + step < len(rows) and rows[low + step][:2] == key:
                low += step
            step //= 2
        yield start, low + 1
        start = low + 1

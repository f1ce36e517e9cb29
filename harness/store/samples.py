"""Reads a run's planned samples with their status and scores as columns, and lists the sample sets of all runs."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Float, Integer, Select, bindparam, func, select

from ctxbench.bench.types import Kind
from ctxbench.harness.results import ACCESS, Status, only_copies
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.database import fetched
from ctxbench.harness.store.scores import Counts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS
from ctxbench.harness.store.write import spec_of

T = TypeVar("T")
Values: TypeAlias = Mapping[str, float | None]
_STATUSES = {str(status): status for status in Status}
_NUMBERS: dict[str, ColumnElement[Any]] = {
    column.name: column
    for column in t.RESULT_FACT.c
    if isinstance(column.type, Integer | Float) and column.name not in ("key", "prompt")
} | {name: t.ACCESS_FACT.c[name] for name in ACCESS}
"""Numeric columns of results and of strategies' accesses. Columns without a `RunTable` field are costs."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Properties of a sample that are the same in all runs."""

    benchmark: str
    kind: str
    language: str
    repo: str
    path: str
    level: str
    day: str | None = None
    """Date of the code (``YYYY-MM-DD``); None if unknown."""

    @property
    def tested(self) -> bool:
        """Whether tests judge the sample, as in `bench.types.Sample`."""
        return self.kind == Kind.FUNCTION


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSamples:
    """The planned samples of a run, as columns of equal length, and their distinct facts (`kinds`)."""

    id: tuple[str, ...]
    key: tuple[int, ...]
    facts: tuple[Facts, ...]
    stored: tuple[str | None, ...]
    """Status of each sample's result; None for a sample without a result."""
    numbers: Mapping[str, tuple[float | None, ...]]
    """Columns of numbers from the results and accesses, by column name; None for a sample without the number."""
    kinds: tuple[Facts, ...]

    def status(self, verdicts: Counts, n: int, excluded: Collection[str]) -> tuple[Status, ...]:
        """Return the status of each sample, as determined by `status_of`."""
        if not excluded and not any(facts.tested for facts in self.kinds):
            alike = {stored: status_of(self.kinds[0], stored, 0, n, excluded=False) for stored in set(self.stored)}
            return tuple([alike[stored] for stored in self.stored])
        return tuple(
            status_of(facts, stored, verdicts.get(id_, (0, 0))[0], n, excluded=id_ in excluded)
            for id_, facts, stored in zip(self.id, self.facts, self.stored, strict=True)
        )

    def all_in(self, language: str | None) -> bool:
        """Return whether all samples are in `language`; True if `language` is None."""
        return language is None or {facts.language for facts in self.kinds} <= {language}

    def among(self, language: str) -> PlannedSamples:
        """Return the columns of the samples in one language."""
        if self.all_in(language):
            return self
        keep = [place for place, facts in enumerate(self.facts) if facts.language == language]

        def part(column: tuple[T, ...]) -> tuple[T, ...]:
            return tuple([column[place] for place in keep])

        facts = part(self.facts)
        numbers = {name: part(column) for name, column in self.numbers.items()}
        return PlannedSamples(
            id=part(self.id),
            key=part(self.key),
            facts=facts,
            stored=part(self.stored),
            numbers=numbers,
            kinds=_distinct(facts),
        )

    @property
    def seconds(self) -> tuple[float | None, ...]:
        """Seconds of the strategy and the model together, for each sample; None without a result."""
        both = zip(self.numbers["strategy_seconds"], self.numbers["generator_seconds"], strict=True)
        return tuple([None if strategy is None or model is None else strategy + model for strategy, model in both])


def planned_samples(connection: Connection, runs: Sequence[tuple[str, str]]) -> Iterator[PlannedSamples]:
    """Yield the planned samples of each run, given as (run id, digest of its set)."""
    facts = {digest: _facts(connection, digest) for digest in dict.fromkeys(digest for _, digest in runs)}
    p, s, r = t.PLANNED_FACT.c, t.SAMPLE.c, t.RESULT_FACT.c
    joined = t.PLANNED_FACT.join(t.SAMPLE, p.sample == s.number).outerjoin(t.RESULT_FACT, p.key == r.key)
    joined = joined.outerjoin(t.ACCESS_FACT, p.key == t.ACCESS_FACT.c.key)
    query = (
        select(s.id, p.key, r.status, *(column.label(name) for name, column in _NUMBERS.items()))
        .select_from(joined)
        .where(p.run == t.run_number(bindparam("run")))
        .order_by(p.ordinal)
    )
    # Most runs of a set have the same samples, so they share one tuple of names.
    shared: dict[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], tuple[Facts, ...], tuple[Facts, ...]]] = {}
    for run, digest in runs:
        rows = fetched(connection, query, run=run)
        ids, keys, stored, *columns = [
            tuple(map(operator.itemgetter(place), rows)) for place in range(3 + len(_NUMBERS))
        ]
        if (digest, ids) not in shared:
            of_set = facts[digest]
            of_ids = tuple([of_set[id_] for id_ in ids])
            shared[digest, ids] = ids, of_ids, _distinct(of_ids)
        ids, of_ids, kinds = shared[digest, ids]
        numbers = dict(zip(_NUMBERS, columns, strict=True))
        yield PlannedSamples(id=ids, key=keys, facts=of_ids, stored=stored, numbers=numbers, kinds=kinds)


def status_of(facts: Facts, stored: str | None, judged: int, n: int, *, excluded: bool) -> Status:
    """Return the status of a sample. A sample with tests is missing until all its `n` completions are judged.

    Args:
        facts: the sample.
        stored: status of its result; None without a result.
        judged: number of its judged completions; blank ones are judged without a verdict.
        n: completions per sample.
        excluded: whether the sample is invalid.
    """
    if excluded:
        return Status.EXCLUDED
    if stored is None or (facts.tested and judged != n):
        return Status.INFRA_FAILED
    return _STATUSES[stored]


def _distinct(facts: tuple[Facts, ...]) -> tuple[Facts, ...]:
    return tuple({id(sample_facts): sample_facts for sample_facts in facts}.values())


def _facts(connection: Connection, digest: str) -> dict[str, Facts]:
    s, d = t.SAMPLE.c, t.DATED.c
    dated = t.SAMPLE.outerjoin(t.DATED, (s.set_digest == d.set_digest) & (s.id == d.sample_id))
    columns = (s.id, s.benchmark, s.kind, s.language, s.repo, s.path, s.subkind, d.day)
    query = select(*columns).select_from(dated).where(s.set_digest == digest)
    # Share one object among samples with equal facts: a file has few distinct facts.
    distinct: dict[tuple[str | None, ...], Facts] = {}
    return {id_: distinct.setdefault(tuple(facts), Facts(*facts)) for id_, *facts in fetched(connection, query)}


def measures(connection: Connection, profiles: Collection[str]) -> dict[int, str]:
    """Return the metrics of these profiles, except `PASS`, by row number, ordered by profile and metric."""
    m = t.MEASURE.c
    query = select(m.profile, m.metric, m.number).where(m.profile.in_(sorted(profiles)), m.metric != PASS)
    # Sort in Python, because a server's ORDER BY follows its locale.
    return {number: metric for _, metric, number in sorted(map(tuple, connection.execute(query)))}


def stored_scores(
    connection: Connection, metrics: Mapping[int, str], run: str, planned: PlannedSamples, language: str | None = None
) -> dict[str, Values]:
    """Return each sample's mean score over its completions, by metric and sample. `metrics` comes from `measures`."""
    ids = dict(zip(planned.key, planned.id, strict=True))
    numbers = {"run": run, "measures": list(metrics)}
    if planned.all_in(language):
        rows = fetched(connection, _asked_scores(among=False), **numbers)
    else:
        rows = fetched(connection, _asked_scores(among=True), **numbers, language=language)
    stretches = {number: list(rows_of) for number, rows_of in groupby(rows, key=operator.itemgetter(0))}
    columns: dict[str, Values] = {}
    for number, metric in metrics.items():
        if stretch := stretches.get(number):
            column = {ids[key]: value for _, key, value in stretch}
            # A sample with several completions has several rows.
            columns[metric] = column if len(column) == len(stretch) else _means(stretch, ids)
    return columns


@functools.cache
def _asked_scores(*, among: bool) -> Select[Any]:
    s, p, m = t.SCORE_FACT.c, t.PLANNED_FACT.c, t.SAMPLE.c
    of_run = t.run_number(bindparam("run"))
    query = (
        select(s.measure, s.key, s.value)
        .where(s.run == of_run, s.measure.in_(bindparam("measures", expanding=True)))
        .order_by(s.measure)
    )
    if not among:
        return query
    spoken = select(p.key).select_from(t.PLANNED_FACT.join(t.SAMPLE, p.sample == m.number))
    return query.where(s.key.in_(spoken.where(p.run == of_run, m.language == bindparam("language"))))


def _means(rows: Sequence[tuple[Any, ...]], ids: Mapping[int, str]) -> Values:
    """Average in Python: databases sum in different orders, which changes the last digits."""
    values: dict[str, list[float]] = defaultdict(list)
    for _, key, value in rows:
        values[ids[key]] += [] if value is None else [value]
    return {sample: math.fsum(some) / len(some) if some else None for sample, some in values.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSet:
    """A sample set with stored runs, or the part of it that limited runs cover."""

    samples: str
    """Displayed name of the sample set, as in `RunInfo.samples`."""
    name: str
    digest: str
    languages: tuple[str, ...]
    """Languages of the samples, the language with the most samples first."""
    generators: tuple[str, ...]
    """Generators of the runs: language models before the copy model, and among these, those with more runs first."""
    runs: int
    size: int


def stored_sets(store: Store) -> list[StoredSet]:
    """Return the sets with runs: first those that the user ran, then those with a language model, then larger ones."""
    runs_by_set: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    with store.reading() as connection:
        for row in connection.execute(select(t.RUN)):
            spec = spec_of(row)
            named = spec.shown_samples, spec.samples, spec.samples_digest
            runs_by_set[named].append((row.id, spec.shown_generator))
        # Runs over the same part of a set have the same samples, so read the languages of one run.
        spoken = languages_of(connection, [runs[0][0] for runs in runs_by_set.values()])
        imported_ids = set(connection.execute(select(t.IMPORTED.c.run_id)).scalars())
    sets = []
    for (samples, name, digest), runs in runs_by_set.items():
        counts = spoken[runs[0][0]]
        generators = sorted(_most_first(Counter(generator for _, generator in runs)), key=only_copies)
        stored_set = StoredSet(
            samples=samples,
            name=name,
            digest=digest,
            languages=_most_first(counts),
            generators=tuple(generators),
            runs=len(runs),
            size=counts.total(),
        )
        is_of_others = all(id_ in imported_ids for id_, _ in runs)
        order = (is_of_others, only_copies(generators[0]), -counts.total(), samples, digest)
        sets.append((order, stored_set))
    return [stored_set for _, stored_set in sorted(sets, key=operator.itemgetter(0))]


def _most_first(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def languages_of(connection: Connection, runs: Iterable[str]) -> dict[str, Counter[str]]:
    """Return the numbers of planned samples, by run id and language."""
    p, s = t.PLANNED.c, t.SAMPLE.c
    query = (
        select(p.run_id, s.language, func.count())
        .select_from(t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id)))
        .where(p.run_id.in_(list(runs)))
        .group_by(p.run_id, s.language)
    )
    counts_by_run: dict[str, Counter[str]] = defaultdict(Counter)
    for run, language, count in connection.execute(query):
        counts_by_run[run][language] = count
    return counts_by_run

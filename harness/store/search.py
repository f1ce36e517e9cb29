"""Searches a run's samples. The rules in `harness.results` decide which samples have a value."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, select

from ctxbench.harness.results import Status, counting_value
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.database import garbage_collection_paused
from ctxbench.harness.store.samples import Facts, Values, measures, planned_samples, stored_scores
from ctxbench.harness.store.scores import kinds_of, verdict_counts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS

Order = Literal["plan", "lowest", "highest", "difference"]
Differs = Literal["", "any", "first", "second"]

NOT_PLAIN = "not plain"
"""Search flag that matches samples with flagged verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The metric by which samples are searched and compared."""

    profile: str
    metric: str
    worst: float | None = None
    """Value of a model-failed sample on the profile's scale; None to use its stored value."""
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """Conditions of a search. Empty fields and None match all samples."""

    run: str
    measure: Measure
    words: str = ""
    """Text that the sample's id, path or repository must contain, ignoring case."""
    language: str = ""
    repo: str = ""
    level: str = ""
    status: Status | None = None
    verdict: str = ""
    flag: str = ""
    other: str = ""
    differs: Differs = ""
    """``any``: values must differ between `run` and `other`; ``first``: `run` must be better; ``second``: `other`."""

    def fits(self, sample: FoundSample) -> bool:
        """Return whether a sample matches all conditions except those on language, verdict and flag."""
        words, texts = self.words.casefold(), (sample.id, sample.path, sample.repo)
        exact = ((self.repo, sample.repo), (self.level, sample.level), (self.status, sample.status))
        return (
            all(condition in (actual, "", None) for condition, actual in exact)
            and any(words in text.casefold() for text in texts)
            and self._fits_difference(sample.value, sample.other)
        )

    def _fits_difference(self, value: float | None, other: float | None) -> bool:
        if not self.differs:
            return True
        if value is None or other is None or value == other:
            return False
        first_is_better = (value < other) is self.measure.lower_is_better
        return self.differs == "any" or first_is_better is (self.differs == "first")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSample:
    """A sample that matches a search, with its value of the searched metric."""

    ordinal: int
    id: str
    repo: str
    path: str
    line: int
    level: str
    status: Status
    value: float | None
    """Value that counts for the sample, on the profile's scale; None if the sample does not count or has no value."""
    other: float | None = None


def search(store: Store, sample_filter: SampleFilter, *, order: Order = "plan") -> list[FoundSample]:
    """Return the matching samples sorted by `order`, missing values last. ``difference`` needs the filter's `other`."""
    run, measure = sample_filter.run, sample_filter.measure
    with garbage_collection_paused(), store.reading() as connection:
        others = {id_: value for id_, _, _, value in _counted(connection, sample_filter.other, measure)}
        samples = list(enumerate(_counted(connection, run, measure)))
        lines = _lines(connection, run)
        among = list(_among(connection, sample_filter))
    matching = [
        FoundSample(
            ordinal=ordinal,
            id=id_,
            repo=facts.repo,
            path=facts.path,
            line=lines[id_],
            level=facts.level,
            status=status,
            value=value,
            other=others.get(id_),
        )
        for ordinal, (id_, facts, status, value) in samples
        if sample_filter.language in ("", facts.language) and all(id_ in ids for ids in among)
    ]
    return sorted(filter(sample_filter.fits, matching), key=functools.partial(_rank, order))


def _rank(order: Order, sample: FoundSample) -> tuple[bool, float]:
    key = sample.value if order in ("lowest", "highest") else float(sample.ordinal)
    if order == "difference":
        key = None if sample.value is None or sample.other is None else abs(sample.value - sample.other)
    return key is None, (key or 0.0) * (-1 if order in ("highest", "difference") else 1)


def is_planned(store: Store, run: str, sample: str) -> bool:
    """Return whether a sample is in a run's plan."""
    with store.reading() as connection:
        return connection.scalar(select(t.key_of(run, sample))) is not None


def _counted(connection: Connection, run: str, measure: Measure) -> Iterator[tuple[str, Facts, Status, float | None]]:
    """Yield id, facts, status and value of each planned sample, in the plan's order; nothing for an unknown run."""
    row = connection.execute(select(t.RUN).where(t.RUN.c.id == run)).first()
    if row is None:
        return
    digest = row.samples_digest
    [planned] = planned_samples(connection, [(run, digest)])
    verdicts = verdict_counts(connection, [run]).get(run, {})
    if measure.metric == PASS:
        values: Values = {id_: passed / judged for id_, (judged, passed) in verdicts.items()}
    else:
        numbered = measures(connection, [measure.profile]).items()
        named = {number: metric for number, metric in numbered if metric == measure.metric}
        values = stored_scores(connection, named, run, planned).get(measure.metric, {})
    marked = notes.invalid_samples(connection, [digest])[digest]
    statuses = planned.status(verdicts, row.n, marked)
    for id_, facts, status in zip(planned.id, planned.facts, statuses, strict=True):
        yield id_, facts, status, counting_value(status, values.get(id_), measure.worst)


def _lines(connection: Connection, run: str) -> dict[str, int]:
    s, p = t.SAMPLE.c, t.PLANNED_FACT.c
    joined = t.PLANNED_FACT.join(t.SAMPLE, p.sample == s.number)
    return dict(connection.execute(select(s.id, s.line).select_from(joined).where(p.run == t.run_number(run))).all())


def _among(connection: Connection, sample_filter: SampleFilter) -> Iterator[set[str]]:
    """Yield a set of sample ids for the filter's verdict, and one for its flag, unless they are empty."""
    j, v, run = t.JUDGED.c, t.VERDICT.c, sample_filter.run
    judged = select(j.sample_id).select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key)).where(j.run_id == run)
    if sample_filter.verdict:
        yield set(connection.scalars(judged.where(v.verdict == sample_filter.verdict)))
    if sample_filter.flag:
        flag = json.dumps(sample_filter.flag)
        ids = set(connection.scalars(judged.where(v.flags != "[]"))) if sample_filter.flag == NOT_PLAIN else set()
        for c in (t.COMPLETION.c, t.RESULT.c):
            flagged = select(c.sample_id).where(c.run_id == run, c.flags.contains(flag, autoescape=True))
            ids.update(connection.scalars(flagged))
        yield ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Values by which a run's samples can be filtered, each field sorted."""

    repos: tuple[str, ...]
    levels: tuple[str, ...]
    verdicts: tuple[str, ...]
    flags: tuple[str, ...]
    measures: tuple[tuple[str, str], ...]


def facets(store: Store, run: str) -> Facets:
    """Return the values by which a run's samples can be filtered."""
    p, s, j, v = t.PLANNED.c, t.SAMPLE.c, t.JUDGED.c, t.VERDICT.c
    planned = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id))
    places = select(s.repo, s.subkind).select_from(planned).where(p.run_id == run)
    judged = select(v.verdict).select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key)).where(j.run_id == run)
    with store.reading() as connection:
        rows = connection.execute(places.distinct()).all()
        return Facets(
            repos=_sorted(row.repo for row in rows),
            levels=_sorted(row.subkind for row in rows),
            verdicts=_sorted(connection.scalars(judged.distinct())),
            flags=_sorted(_flags(connection, run)),
            measures=tuple(sorted(map(tuple, connection.execute(kinds_of(run))))),
        )


def _sorted(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


def _flags(connection: Connection, run: str) -> Iterator[str]:
    stored = [select(table.c.flags).where(table.c.run_id == run).distinct() for table in (t.COMPLETION, t.RESULT)]
    judged = t.JUDGED.join(t.VERDICT, t.JUDGED.c.verdict_key == t.VERDICT.c.key)
    of_verdicts = select(t.VERDICT.c.flags).select_from(judged).where(t.JUDGED.c.run_id == run).distinct()
    for query in stored:
        for flags in connection.scalars(query).all():
            yield from json.loads(flags)
    if any(flags != "[]" for flags in connection.scalars(of_verdicts)):
        yield NOT_PLAIN

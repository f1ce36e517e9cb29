"""Searches a run's samples page by page, by the rules of `harness.results`, in the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import CTE, ColumnElement, Connection, FromClause, Select, Subquery, case, exists, func, or_, select

from ctxbench.bench.types import Kind
from ctxbench.harness.results import Status, status_cases, value_cases
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.scores import kinds_of
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE

Order = Literal["plan", "lowest", "highest", "difference"]
Differs = Literal["", "any", "first", "second"]

NOT_PLAIN = "not plain"
"""Search flag that matches samples with flagged verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The metric for searching and comparing samples."""

    profile: str
    metric: str
    worst: float | None = None
    """Value of a model-failed sample, in the scale of the profile; None to use its stored value."""
    lower_is_better: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFilter:
    """Conditions of a search. Empty fields and None match all samples."""

    run: str
    measure: Measure
    words: str = ""
    """Part of the id, path or repository, ignoring case."""
    language: str = ""
    repo: str = ""
    level: str = ""
    status: Status | None = None
    verdict: str = ""
    flag: str = ""
    other: str = ""
    differs: Differs = ""
    """``any``: samples that count in both runs with different values; ``first``, ``second``: that run is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSample:
    """A sample that matches a search, with its value."""

    ordinal: int
    id: str
    repo: str
    path: str
    line: int
    level: str
    status: Status
    value: float | None
    """Mean over the completions, in the scale of the profile; None if the sample does not count."""
    other: float | None = None


def search(
    store: Store, sample_filter: SampleFilter, *, order: Order = "plan", limit: int = 25, offset: int = 0
) -> tuple[int, list[FoundSample]]:
    """Return the number of matching samples and one page of them. Order ``difference`` needs the filter's `other`."""
    matching = _found(sample_filter)
    by = _by(matching, order)
    total = select(func.count()).select_from(matching).scalar_subquery()
    query = select(matching, total.label("total")).order_by(*by).limit(limit).offset(offset)
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    if not rows and offset:
        return search(store, sample_filter, order=order, limit=1)[0], []
    counts = [row.pop("total") for row in rows]
    return next(iter(counts), 0), [FoundSample(**{**row, "status": Status(row["status"])}) for row in rows]


def neighbours(
    store: Store, sample_filter: SampleFilter, ordinal: int, *, order: Order = "plan"
) -> tuple[str | None, str | None, int]:
    """Return the matching samples before and after a position in the plan, and the number of the sample there.

    A neighbour is None at an end. Numbers count matching samples from 1. A sample that does not match has number 0, and
    its next neighbour is the first match.
    """
    # Read the other run's values only if they decide the match or the order.
    compared = sample_filter.differs or order == "difference"
    matching = _found(sample_filter if compared else replace(sample_filter, other=""))
    by, sample = _by(matching, order), matching.c.id
    beside = {
        "before": func.lag(sample),
        "after": func.lead(sample),
        "first": func.first_value(sample),
        "number": func.row_number(),
    }
    columns = (of.over(order_by=by).label(name) for name, of in beside.items())
    placed = select(matching.c.ordinal, *columns).subquery()
    fits = placed.c.ordinal == ordinal
    with store.reading() as connection:
        row = connection.execute(select(fits.label("fits"), placed).order_by(fits.desc()).limit(1)).one_or_none()
    if row is None:
        return None, None, 0
    return (row.before, row.after, row.number) if row.fits else (None, row.first, 0)


def _by(matching: CTE, order: Order) -> list[ColumnElement[Any]]:
    if order == "plan":
        return [matching.c.ordinal]
    key = func.abs(matching.c.value - matching.c.other) if order == "difference" else matching.c.value
    # Databases sort NULL differently.
    return [key.is_(None), key if order == "lowest" else key.desc(), matching.c.ordinal]


def place_in_plan(store: Store, run: str, sample: str) -> int | None:
    """Return the position of a sample in a run's plan; None if it is not planned."""
    p = t.PLANNED_FACT.c
    with store.reading() as connection:
        return connection.scalar(select(p.ordinal).where(p.key == t.key_of(run, sample)))


def _found(sample_filter: SampleFilter) -> CTE:
    """Return the run's matching samples as a table that the database builds once; recomputing it can take minutes."""
    return _fitting(sample_filter).cte("found").prefix_with("MATERIALIZED")


def _fitting(sample_filter: SampleFilter) -> Select[Any]:
    samples = _counted(sample_filter.run, sample_filter.measure).subquery()
    conditions = _conditions(samples, sample_filter)
    columns = [samples.c[name] for name in ("ordinal", "id", "repo", "path", "line", "level", "status", "value")]
    if not sample_filter.other:
        return select(*columns).where(*conditions)
    other = _counted(sample_filter.other, sample_filter.measure).subquery()
    value, other_value = samples.c.value, other.c.value
    better, worse = (other_value, value) if sample_filter.measure.lower_is_better else (value, other_value)
    differs = {"": [], "any": [value != other_value], "first": [better > worse], "second": [better < worse]}[
        sample_filter.differs
    ]
    joined = samples.outerjoin(other, samples.c.id == other.c.id)
    return select(*columns, other.c.value.label("other")).select_from(joined).where(*conditions, *differs)


def _counted(run: str, measure: Measure) -> Select[Any]:
    p, m, r, n = t.PLANNED_FACT.c, t.SAMPLE.c, t.RESULT_FACT.c, t.RUN.c
    values, passes = _means(run, measure.profile, measure.metric), _means(run, PROFILE, PASS)
    joined = (
        t.PLANNED_FACT.join(t.SAMPLE, p.sample == m.number)
        .join(t.RUN, p.run == n.number)
        .outerjoin(t.RESULT_FACT, p.key == r.key)
        .outerjoin(values, p.key == values.c.key)
        .outerjoin(passes, p.key == passes.c.key)
    )
    invalid = exists().where(t.MARK.c.set_digest == m.set_digest, t.MARK.c.sample_id == m.id)
    statuses = status_cases(
        excluded=invalid,
        missing=r.status.is_(None),
        tested=m.kind == Kind.FUNCTION,
        judged=func.coalesce(passes.c.made, 0),
        n=n.n,
    )
    status = case(*((holds, str(counted)) for holds, counted in statuses), else_=r.status)
    value = case(
        *value_cases(
            scored=status == Status.SCORED,
            model_failed=status == Status.MODEL_FAILED,
            own=values.c.value,
            worst=measure.worst,
        )
    )
    return (
        select(
            p.key,
            p.ordinal,
            m.id,
            m.language,
            m.repo,
            m.path,
            m.line,
            m.subkind.label("level"),
            status.label("status"),
            value.label("value"),
        )
        .select_from(joined)
        .where(n.id == run)
    )


def _means(run: str, profile: str, metric: str) -> Subquery:
    """Return key -> mean of a metric and number of completions with it, from one range of the scores."""
    s = t.SCORE.c
    return (
        select(s.key, func.avg(s.value).label("value"), func.count().label("made"))
        .where(s.run_id == run, s.profile == profile, s.metric == metric)
        .group_by(s.key)
        .subquery()
    )


def _conditions(samples: FromClause, sample_filter: SampleFilter) -> list[ColumnElement[bool]]:
    f = samples.c
    exact = {
        "language": sample_filter.language,
        "repo": sample_filter.repo,
        "level": sample_filter.level,
        "status": sample_filter.status,
    }
    conditions: list[ColumnElement[bool]] = [f[name] == value for name, value in exact.items() if value]
    if sample_filter.words:
        # Escaped, because names often contain an underscore.
        conditions.append(
            or_(*(f[name].icontains(sample_filter.words, autoescape=True) for name in ("id", "path", "repo")))
        )
    if sample_filter.verdict:
        j, v = t.JUDGED_FACT.c, t.VERDICT.c
        verdict_matches = (
            j.key == f.key,
            j.verdict_key == v.key,
            v.verdict == sample_filter.verdict,
        )
        conditions.append(exists().where(*verdict_matches))
    if sample_filter.flag:
        j, v, flag = t.JUDGED_FACT.c, t.VERDICT.c, json.dumps(sample_filter.flag)
        of_verdict = (j.key == f.key, j.verdict_key == v.key)
        conditions.append(
            or_(
                *(
                    exists().where(
                        columns.key == f.key,
                        columns.flags.contains(flag, autoescape=True),
                    )
                    for columns in (t.COMPLETION_FACT.c, t.RESULT_FACT.c)
                ),
                *([exists().where(*of_verdict, v.flags != "[]")] if sample_filter.flag == NOT_PLAIN else []),
            )
        )
    return conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values that can filter a run's samples, each field sorted."""

    languages: tuple[str, ...]
    repos: tuple[str, ...]
    levels: tuple[str, ...]
    verdicts: tuple[str, ...]
    flags: tuple[str, ...]
    measures: tuple[tuple[str, str], ...]


def facets(store: Store, run: str) -> Facets:
    """Return the values that can filter a run's samples."""
    p, s, j, v = t.PLANNED.c, t.SAMPLE.c, t.JUDGED.c, t.VERDICT.c
    planned = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id))
    places = select(s.language, s.repo, s.subkind).select_from(planned).where(p.run_id == run)
    judged = select(v.verdict).select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key)).where(j.run_id == run)
    with store.reading() as connection:
        rows = connection.execute(places.distinct()).all()
        return Facets(
            languages=_sorted(row.language for row in rows),
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

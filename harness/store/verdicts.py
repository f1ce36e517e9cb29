"""Looks up verdicts by content, appends them, and links them to the completions of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select

from ctxbench.bench.types import Kind
from ctxbench.harness import metrics
from ctxbench.harness.results import Status
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.facts import append_verdicts, measure_numbers
from ctxbench.harness.store.write import StoredVerdict, load, parts, read_flags

if TYPE_CHECKING:
    from ctxbench.harness.store.store import Store

PROFILE, PASS = "ctxbench", metrics.PASS
"""Profile and metric of a function's score, which is 1 if the function passed its tests and otherwise 0."""


@dataclass(frozen=True, slots=True)
class UnscoredCompletion:
    """A stored completion that lacks a verdict or one of a profile's metrics."""

    sample_id: str
    idx: int
    text: str


def find(store: Store, keys: Iterable[str]) -> dict[str, StoredVerdict]:
    """Return the stored verdicts with these keys, by key."""
    verdicts: dict[str, StoredVerdict] = {}
    with store.reading() as connection:
        for part in parts(sorted(set(keys))):
            for row in connection.execute(select(t.VERDICT).where(t.VERDICT.c.key.in_(part))):
                verdicts[row.key] = verdict_of(dict(row._mapping))
    return verdicts


def find_by_text(store: Store, contents: Iterable[tuple[str, str]], run: str) -> dict[tuple[str, str], StoredVerdict]:
    """Return one stored verdict, from any image, for each (sample digest, text digest) in `contents` that has one.

    Verdicts from merged shards are included only for their own run.
    """
    pairs = set(contents)
    stored: dict[tuple[str, str], StoredVerdict] = {}
    with store.reading() as connection:
        for part in parts(sorted({text for _, text in pairs})):
            query = (
                select(t.VERDICT)
                .where(t.VERDICT.c.text_digest.in_(part), t.VERDICT.c.run.in_(["", run]))
                .order_by(t.VERDICT.c.key)
            )
            for row in connection.execute(query):
                if (content := (row.sample_digest, row.text_digest)) in pairs:
                    stored.setdefault(content, verdict_of(dict(row._mapping)))
    return stored


def verdict_of(row: Mapping[str, Any]) -> StoredVerdict:
    """Build a verdict from its database row."""
    return StoredVerdict(**{**row, "flags": read_flags(row["flags"])})


def add(store: Store, verdict: StoredVerdict) -> StoredVerdict:
    """Append a verdict; return the stored verdict, which another process may have stored first."""
    add_all(store, [verdict])
    return find(store, [verdict.key])[verdict.key]


def add_all(store: Store, verdicts: Iterable[StoredVerdict]) -> None:
    """Append verdicts, except those that are already stored."""
    content = list(verdicts)
    store.settle(lambda connection: append_verdicts(connection, content))


def append_links(connection: Connection, run: str, sample: str, verdicts: Mapping[int, StoredVerdict]) -> int:
    """Link verdicts (by completion index) and their scores to a finished sample; return the number of new links."""
    s = t.SCORE_FACT.c
    key = connection.scalar(select(t.key_of(run, sample)))
    number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == run))
    measure = measure_numbers(connection, [(PROFILE, PASS)])[PROFILE, PASS]
    scored = set(connection.scalars(select(s.idx).where(s.run == number, s.measure == measure, s.key == key)))
    new = {idx: verdict for idx, verdict in sorted(verdicts.items()) if idx not in scored}
    load(connection, t.JUDGED_FACT, [(key, idx, new[idx].key) for idx in new])
    rows = [(number, measure, key, idx, passed(verdict)) for idx, verdict in new.items()]
    load(connection, t.SCORE_FACT, rows)
    return len(new)


def passed(verdict: StoredVerdict) -> float:
    """Return the score of a verdict: 1 for ``PASSED``, otherwise 0."""
    return float(verdict.verdict == "PASSED")


def passes_not_plain(connection: Connection, runs: Sequence[str]) -> dict[str, Counter[str]]:
    """Return the numbers of passes with flags, by run and sample id, for samples with such passes."""
    j, v = t.JUDGED.c, t.VERDICT.c
    query = (
        select(j.run_id, j.sample_id, func.count())
        .select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key))
        .where(j.run_id.in_(runs), v.verdict == "PASSED", v.flags != "[]")
        .group_by(j.run_id, j.sample_id)
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for run, sample, count in connection.execute(query):
        counts[run][sample] = count
    return counts


def unjudged(store: Store, run: str, among: Sequence[str] | None = None) -> list[UnscoredCompletion]:
    """Return a run's function completions without a test score, in planned order, or only those of samples `among`."""
    c, p, m, s, n = t.COMPLETION_FACT.c, t.PLANNED_FACT.c, t.SAMPLE.c, t.SCORE_FACT.c, t.MEASURE.c
    number = t.run_number(run)
    measure = select(n.number).where(n.profile == PROFILE, n.metric == PASS).scalar_subquery()
    scored = (s.run == number) & (s.measure == measure) & (s.key == c.key) & (s.idx == c.idx)
    joined = (
        t.PLANNED_FACT.join(t.SAMPLE, p.sample == m.number)
        .join(t.COMPLETION_FACT, c.key == p.key)
        .outerjoin(t.SCORE_FACT, scored)
    )
    query = (
        select(m.id, c.idx, c.text)
        .select_from(joined)
        .where(p.run == number, m.kind == Kind.FUNCTION, s.value.is_(None))
        .order_by(p.ordinal, c.idx)
    )
    queries = [query] if among is None else [query.where(m.id.in_(part)) for part in parts(among)]
    with store.reading() as connection:
        rows = [row for part_query in queries for row in connection.execute(part_query)]
    return [UnscoredCompletion(*row) for row in rows]


def judged(store: Store, run: str) -> list[tuple[str, str]]:
    """Return (sample id, key of the verdict) for each judged completion of a run."""
    j = t.JUDGED.c
    with store.reading() as connection:
        return list(map(tuple, connection.execute(select(j.sample_id, j.verdict_key).where(j.run_id == run))))


def all_equal(store: Store, run: str) -> bool:
    """Return whether a run has samples with several scored completions, all equal within each sample."""
    c = t.COMPLETION.c
    per_sample = (
        select(func.count().label("made"), func.count(c.text.distinct()).label("texts"))
        .where(c.run_id == run, c.status == Status.SCORED)
        .group_by(c.key)
        .subquery()
    )
    with store.reading() as connection:
        completions, texts = connection.execute(select(func.max(per_sample.c.made), func.max(per_sample.c.texts))).one()
    return (completions or 0) > 1 and texts == 1


def equal_runs(store: Store, this: str, other: str) -> bool:
    """Return whether two complete runs over the same samples have the same prompts and completions."""
    r, c = t.RESULT.c, t.COMPLETION.c
    with store.reading() as connection:
        for columns in ((r.sample_id, r.prompt_digest), (c.sample_id, c.idx, c.text)):
            mine, its = (select(*columns).where(columns[0].table.c.run_id == run) for run in (this, other))
            if connection.execute(mine.except_(its).limit(1)).first() is not None:
                return False
    return True

"""Questions to the stored results. Reads only; a few statements however many samples there are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Table, func, select

from bench.errors import InputFault, UnknownName
from bench.samples import SampleSet
from bench.types import Kind
from harness.results import RunInfo, RunTable, Status
from harness.store import gains, passes
from harness.store import tables as t
from harness.store.store import Store
from harness.store.verdicts import PASS
from strategies.controls import is_control

CONTEXT = "context"
"""The profile under which context gain, bits and diagnostics are kept; part of every table, whatever its profile."""
BLOCK_GAIN = "block_gain"
"""The mean gain of a retrieved block, where `ctxbench diagnose` has priced them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in a listing."""

    id: str
    samples: str
    limit: int | None
    strategy: str
    generator: str
    planned: int
    finished: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the tables say of one sample of a run."""

    id: str
    kind: str
    language: str
    repo: str
    level: str
    status: Status
    context_tokens: float | None
    calls: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many samples of a run have which status."""

    scored: int
    model_failed: int


def counts(store: Store, run: str) -> Counts:
    """Count the finished samples of one run."""
    r = t.RESULT.c
    with store.reading() as connection:
        found: dict[str, int] = dict(
            connection.execute(select(r.status, func.count()).where(r.run_id == run).group_by(r.status)).all()
        )
    return Counts(found.get(Status.SCORED, 0), found.get(Status.MODEL_FAILED, 0))


def runs(store: Store) -> list[RunRow]:
    """Return every run, in the order of set, strategy, generator and id."""
    r = t.RUN.c
    with store.reading() as connection:
        planned, finished = (_counts(connection, table) for table in (t.PLANNED, t.RESULT))
        found = _sorted(connection.execute(select(r.id, r.samples, r.sample_limit, r.strategy, r.generator)))
        return [
            RunRow(
                id=row.id,
                samples=row.samples,
                limit=row.sample_limit,
                strategy=row.strategy,
                generator=row.generator,
                planned=planned.get(row.id, 0),
                finished=finished.get(row.id, 0),
            )
            for row in found
        ]


def run_of(store: Store, wanted: str, sample_set: SampleSet) -> str:
    """Return the id of the run with that id, or of the only one whose id begins so.

    Raises:
        InputFault: if the id is not whole enough, or the run is over other samples than those of the set.
        UnknownName: if there is no such run.
    """
    r = t.RUN.c
    with store.reading() as connection:
        digests: dict[str, str] = dict(connection.execute(select(r.id, r.samples_digest)).all())
    found = [id_ for id_ in sorted(digests) if id_ == wanted] or [id_ for id_ in digests if id_.startswith(wanted)]
    if not found:
        raise UnknownName("stored run", wanted, digests, command="ctxbench leaderboard --format json")
    if len(found) > 1:
        raise InputFault(
            f"{wanted!r} begins the ids of {len(found)} runs", cure=f"write more of it: {', '.join(sorted(found))}"
        )
    if digests[found[0]] != sample_set.digest:
        raise InputFault(
            f"the run {found[0]} is over other samples than those of the set {sample_set.name!r}",
            cure="give --samples the set that it was run over, as it was then",
        )
    return found[0]


def _sorted(runs: Iterable[Any]) -> list[Any]:
    """Order runs here: a server's ORDER BY follows its locale."""
    return sorted(runs, key=lambda run: (run.samples, run.strategy, run.generator, run.id))


def _counts(connection: Connection, table: Table) -> dict[str, int]:
    column = table.c.run_id
    return dict(connection.execute(select(column, func.count()).group_by(column)).all())


def run_tables(
    store: Store, *, samples: str | None = None, profile: str = "ctxbench", ks: Collection[int] = ()
) -> list[RunTable]:
    """Return the stored runs as columns, one table a run and language.

    Args:
        store: the database.
        samples: name of a sample set, its limited runs included; None for all.
        profile: whose metrics; those of `CONTEXT`, and pass@k, come with any. With several completions a
            sample, a value is their mean.
        ks: pass@k to add to those of `passes.KS`, for runs with so many completions.

    A function counts as infra-failed as long as one of its completions has no verdict.
    """
    r = t.RUN.c
    query = select(t.RUN)
    with store.reading() as connection:
        found = _sorted(connection.execute(query if samples is None else query.where(r.samples == samples)))
        ids = [run.id for run in found]
        by_run = _samples(connection, ids)
        values = _scores(connection, ids, profile)
        counts = passes.counted(connection, ids)
        worth = gains.means(connection, ids)
    tables = []
    for run in found:
        verdicts = counts.get(run.id, {})
        planned = [_with_verdicts(one, verdicts, run.n) for one in by_run[run.id]]
        values[run.id].update(passes.columns(verdicts, run.n, ks))
        values[run.id].update({BLOCK_GAIN: worth[run.id]} if run.id in worth else {})
        for language in sorted({one.language for one in planned}):
            info = RunInfo(
                id=run.id,
                samples=run.samples if run.sample_limit is None else f"{run.samples}[:{run.sample_limit}]",
                samples_digest=run.samples_digest,
                language=language,
                strategy=run.strategy,
                generator=run.generator,
                profile=profile,
                ranked=not is_control(run.strategy),
                control=is_control(run.strategy),
                functions=any(one.kind == Kind.FUNCTION for one in planned),
                completions=run.n,
                sampling=run.sampling,
            )
            tables.append(_table(info, [one for one in planned if one.language == language], values[run.id]))
    return tables


def _table(run: RunInfo, samples: Sequence[_Sample], values: dict[str, dict[str, float | None]]) -> RunTable:
    ids = tuple(one.id for one in samples)
    columns = {metric: tuple(map(of_sample.get, ids)) for metric, of_sample in sorted(values.items())}
    return RunTable(
        run=run,
        sample=ids,
        repo=tuple(one.repo for one in samples),
        level=tuple(one.level for one in samples),
        status=tuple(one.status for one in samples),
        metrics={metric: column for metric, column in columns.items() if any(value is not None for value in column)},
        context_tokens=tuple(one.context_tokens for one in samples),
        calls=tuple(one.calls for one in samples),
        seconds=tuple(one.seconds for one in samples),
    )


def _with_verdicts(one: _Sample, verdicts: passes.Counts, n: int) -> _Sample:
    judged = one.kind != Kind.FUNCTION or verdicts.get(one.id, (0, 0))[0] == n
    return one if judged else replace(one, status=Status.INFRA_FAILED)


def _samples(connection: Connection, runs: Iterable[str]) -> dict[str, list[_Sample]]:
    """Return run -> its planned samples in order; one without a result is infra-failed."""
    p, s, r = t.PLANNED.c, t.SAMPLE.c, t.RESULT.c
    joined = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id)).outerjoin(
        t.RESULT, (p.run_id == r.run_id) & (p.sample_id == r.sample_id)
    )
    query = (
        select(
            p.run_id,
            p.sample_id,
            s.kind,
            s.language,
            s.repo,
            s.subkind,
            r.status,
            r.context_tokens,
            r.calls,
            (r.strategy_seconds + r.generator_seconds).label("seconds"),
        )
        .select_from(joined)
        .order_by(p.run_id, p.ordinal)
    )
    found: dict[str, list[_Sample]] = defaultdict(list)
    for run, id_, kind, language, repo, level, status, tokens, calls, seconds in connection.execute(
        query.where(p.run_id.in_(list(runs)))
    ):
        state = Status.INFRA_FAILED if status is None else Status(status)
        found[run].append(_Sample(id_, kind, language, repo, level, state, tokens, calls, seconds))
    return found


def _scores(connection: Connection, runs: Iterable[str], profile: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return run -> metric -> sample -> mean over its completions."""
    s = t.SCORE.c
    query = (
        select(s.run_id, s.metric, s.sample_id, s.value)
        .where(s.run_id.in_(list(runs)), s.profile.in_((profile, CONTEXT)), s.metric != PASS)
        .order_by(s.run_id, s.profile, s.metric, s.sample_id)
    )
    found: dict[str, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    # The mean is taken here: databases, and versions of one, add in different ways and differ in the last digits.
    for (run, metric, sample), group in groupby(connection.execute(query), key=itemgetter(0, 1, 2)):
        values = [value for *_, value in group if value is not None]
        found[run][metric][sample] = math.fsum(values) / len(values) if values else None
    return found

"""Questions to the stored results. Reads only; a few statements however many samples there are."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, Table, func, select

from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.secrets import redacted
from ctxbench.harness.prices import Prices
from ctxbench.harness.results import RunTable, Status
from ctxbench.harness.store import attempts, costs, gains, notes, passes, planned
from ctxbench.harness.store import tables as t
from ctxbench.harness.store.fetching import uncollected
from ctxbench.harness.store.runtables import Stored, shown_samples
from ctxbench.harness.store.sets import shown_generator
from ctxbench.harness.store.store import Store

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
        wanted, finished = (_counts(connection, table) for table in (t.PLANNED, t.RESULT))
        found = _sorted(connection.execute(select(r.id, r.samples, r.sample_limit, r.strategy, r.generator)))
        return [
            RunRow(
                id=row.id,
                samples=row.samples,
                limit=row.sample_limit,
                strategy=row.strategy,
                generator=redacted(row.generator),
                planned=wanted.get(row.id, 0),
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
    run = run_named(store, wanted)
    if run.samples_digest != sample_set.digest:
        raise InputFault(
            f"the run {run.id} is over other samples than those of the set {sample_set.name!r}",
            cure="give --samples the set that it was run over, as it was then",
        )
    return str(run.id)


def run_named(store: Store, wanted: str) -> Row[Any]:
    """Return the row of the run with that id, or of the only one whose id begins so.

    Raises:
        InputFault: if the id is not whole enough.
        UnknownName: if there is no such run.
    """
    with store.reading() as connection:
        known = {row.id: row for row in connection.execute(select(t.RUN).order_by(t.RUN.c.id))}
    found = [id_ for id_ in known if id_ == wanted] or [id_ for id_ in known if id_.startswith(wanted)]
    if not found:
        raise UnknownName("stored run", wanted, known, command="ctxbench runs")
    if len(found) > 1:
        raise InputFault(
            f"{wanted!r} begins the ids of {len(found)} runs", cure=f"write more of it: {', '.join(sorted(found))}"
        )
    return known[found[0]]


def _sorted(runs: Iterable[Any]) -> list[Any]:
    """Order runs here: a server's ORDER BY follows its locale."""
    return sorted(runs, key=lambda run: (run.samples, run.strategy, run.generator, run.id))


def _begun(connection: Connection) -> dict[str, float]:
    """Return run -> when work on it began last, in seconds; a run that nobody worked on is not among them."""
    a = t.ATTEMPT.c
    return dict(connection.execute(select(a.run_id, func.max(a.started)).group_by(a.run_id)).all())


def _counts(connection: Connection, table: Table) -> dict[str, int]:
    column = table.c.run_id
    return dict(connection.execute(select(column, func.count()).group_by(column)).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which runs and samples a reader wants; what is None leaves all."""

    samples: str | None = None
    """As in `RunInfo.samples`: ``demo``, or ``demo[:10]`` for runs over the first ten."""
    digest: str | None = None
    language: str | None = None
    generator: str | None = None
    """As in `RunInfo.generator`."""

    def has(self, run: Any) -> bool:
        """Return whether a run's row is among them."""
        names = ((self.samples, shown_samples(run)), (self.digest, run.samples_digest))
        return all(wanted in (None, one) for wanted, one in (*names, (self.generator, shown_generator(run))))


def run_tables(
    store: Store,
    *,
    samples: str | None = None,
    profile: str = "ctxbench",
    ks: Collection[int] = (),
    marked: Literal["exclude", "include"] = "exclude",
    prices: Prices | None = None,
    chosen: Chosen | None = None,
) -> list[RunTable]:
    """Return the stored runs as columns, one table a run and language; of one strategy the last worked on is last.

    Args:
        store: the database.
        samples: name of a sample set, its limited runs included; None for all.
        profile: whose metrics; those of `CONTEXT`, and pass@k, come with any. With several completions a
            sample, a value is their mean.
        ks: pass@k to add to those of `passes.KS`, for runs with so many completions.
        marked: whether samples that were marked as broken or vacuous are excluded; their values stay in the
            columns either way.
        prices: rates to price the stored tokens by; None for the prices that were stored.
        chosen: read only these; nothing of the others is read.

    A function counts as infra-failed as long as one of its completions has no verdict. Of imported runs nobody
    knows the prompt, the calls and the time.
    """
    wanted = chosen or Chosen()
    with uncollected(), store.reading() as connection:
        query = select(t.RUN) if samples is None else select(t.RUN).where(t.RUN.c.samples == samples)
        found = [run for run in _sorted(connection.execute(query)) if wanted.has(run)]
        begun = _begun(connection)
        # An id is a digest: it cannot say which of two runs of a strategy is newer.
        found.sort(key=lambda run: (run.samples, run.strategy, run.generator, begun.get(run.id, 0.0)))
        ids = [run.id for run in found]
        counts = passes.counted(connection, ids)
        worth = gains.means(connection, ids)
        made_elsewhere = notes.imports(connection, ids)
        remarks = notes.remarks(connection, ids)
        spent = costs.of_runs(connection, ((run.id, run.generator) for run in found), prices)
        loads = attempts.loads(connection, ids)
        marks = notes.marked(connection, (run.samples_digest for run in found))
        plans = planned.samples(connection, [(run.id, run.samples_digest) for run in found])
        asked = functools.cache(planned.asked_scores)
        tables: list[RunTable] = []
        for run, plan in zip(found, plans, strict=True):
            verdicts = counts.get(run.id, {})
            among = None if plan.only(wanted.language) else (run.samples_digest, str(wanted.language))
            values = planned.scores(connection, asked((profile, CONTEXT), among), run.id)
            values |= passes.columns(verdicts, run.n, ks)
            values |= {BLOCK_GAIN: worth[run.id]} if run.id in worth else {}
            stored = Stored(
                run=run,
                profile=profile,
                samples=plan,
                values=values,
                verdicts=verdicts,
                marks=marks.get(run.samples_digest, {}),
                exclude=marked == "exclude",
                costs=spent[run.id],
                imported=run.id in made_elsewhere,
                loads=loads.get(run.id, ()),
                remarks=remarks[run.id],
            )
            tables += stored.tables(wanted.language)
    return tables

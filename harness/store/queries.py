"""Questions to the stored results. Reads only; a few statements however many samples there are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Row, Table, func, select

from bench.errors import InputFault, UnknownName
from bench.samples import SampleSet
from harness.prices import Prices
from harness.results import Origin, RunInfo, RunTable, Status
from harness.store import costs as spent
from harness.store import gains, notes, passes, planned
from harness.store import tables as t
from harness.store.costs import Costs
from harness.store.planned import Planned
from harness.store.store import Store
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
                generator=row.generator,
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
        raise UnknownName("stored run", wanted, known, command="ctxbench leaderboard --format json")
    if len(found) > 1:
        raise InputFault(
            f"{wanted!r} begins the ids of {len(found)} runs", cure=f"write more of it: {', '.join(sorted(found))}"
        )
    return known[found[0]]


def _sorted(runs: Iterable[Any]) -> list[Any]:
    """Order runs here: a server's ORDER BY follows its locale."""
    return sorted(runs, key=lambda run: (run.samples, run.strategy, run.generator, run.id))


def _counts(connection: Connection, table: Table) -> dict[str, int]:
    column = table.c.run_id
    return dict(connection.execute(select(column, func.count()).group_by(column)).all())


def run_tables(
    store: Store,
    *,
    samples: str | None = None,
    profile: str = "ctxbench",
    ks: Collection[int] = (),
    marked: Literal["exclude", "include"] = "exclude",
    prices: Prices | None = None,
) -> list[RunTable]:
    """Return the stored runs as columns, one table a run and language.

    Args:
        store: the database.
        samples: name of a sample set, its limited runs included; None for all.
        profile: whose metrics; those of `CONTEXT`, and pass@k, come with any. With several completions a
            sample, a value is their mean.
        ks: pass@k to add to those of `passes.KS`, for runs with so many completions.
        marked: whether samples that were marked as broken or vacuous are excluded; their values stay in the
            columns either way.
        prices: rates to price the stored tokens by; None for the prices that were stored.

    A function counts as infra-failed as long as one of its completions has no verdict. Of imported runs nobody
    knows the prompt, the calls and the time.
    """
    r = t.RUN.c
    query = select(t.RUN)
    with store.reading() as connection:
        found = _sorted(connection.execute(query if samples is None else query.where(r.samples == samples)))
        ids = [run.id for run in found]
        by_run = planned.samples(connection, ids)
        values = planned.scores(connection, ids, (profile, CONTEXT))
        counts = passes.counted(connection, ids)
        worth = gains.means(connection, ids)
        made_elsewhere = notes.imports(connection, ids)
        remarks = notes.remarks(connection, ids)
        costs = spent.of_runs(connection, ((run.id, run.generator) for run in found), prices)
        marks = notes.marked(connection, (run.samples_digest for run in found))
    tables = []
    for run in found:
        verdicts = counts.get(run.id, {})
        marks_of = marks.get(run.samples_digest, {})
        excluded = marks_of if marked == "exclude" else {}
        imported = run.id in made_elsewhere
        rows = [one.settled(verdicts, run.n, excluded=one.id in excluded, imported=imported) for one in by_run[run.id]]
        values[run.id].update(passes.columns(verdicts, run.n, ks))
        values[run.id].update({BLOCK_GAIN: worth[run.id]} if run.id in worth else {})
        for language in sorted({one.language for one in rows}):
            info = _info(run, rows, language, profile=profile, imported=imported, remarks=remarks[run.id])
            chosen = [one for one in rows if one.language == language]
            spent_here = None if imported else costs[run.id]
            tables.append(_table(info, chosen, values[run.id], marks_of, spent_here))
    return tables


def _info(
    run: Any, samples: Sequence[Planned], language: str, *, profile: str, imported: bool, remarks: tuple[str, ...]
) -> RunInfo:
    return RunInfo(
        id=run.id,
        samples=run.samples if run.sample_limit is None else f"{run.samples}[:{run.sample_limit}]",
        samples_digest=run.samples_digest,
        language=language,
        strategy=run.strategy,
        generator=_shown_generator(run),
        origin=Origin.IMPORTED if imported else Origin.RUN,
        profile=profile,
        ranked=not is_control(run.strategy),
        control=is_control(run.strategy),
        functions=any(one.tested for one in samples),
        completions=run.n,
        # How imported completions were decoded their file does not say.
        sampling="" if imported else run.sampling,
        benchmark="+".join(sorted({one.benchmark for one in samples if one.language == language})),
        remarks=remarks,
    )


def _shown_generator(run: Any) -> str:
    """Name the generator, apart where it was shown what follows the cursor: such runs are never ranked with others."""
    return f"{run.generator} [fim]" if json.loads(run.sampling).get("fim") else str(run.generator)


def _table(
    run: RunInfo,
    samples: Sequence[Planned],
    values: Mapping[str, dict[str, float | None]],
    marks: Mapping[str, str],
    costs: Costs | None,
) -> RunTable:
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
        mark=tuple(marks.get(id_, "") for id_ in ids) if marks else (),
        costs=_costs(samples, costs or Costs()),
    )


def _costs(samples: Sequence[Planned], costs: Costs) -> dict[str, tuple[float | None, ...]]:
    """Return the columns of `harness.results.COSTS`."""
    of_calls = {
        "tokens_in": costs.tokens_in,
        "tokens_out": costs.tokens_out,
        "tokens_cached": costs.tokens_cached,
        "price": costs.price,
    }
    return {
        **{name: tuple(column.get(one.id) for one in samples) for name, column in of_calls.items()},
        "strategy_seconds": tuple(one.strategy_seconds for one in samples),
        "generator_seconds": tuple(one.generator_seconds for one in samples),
        "test_seconds": tuple(costs.test_seconds.get(one.id) for one in samples),
    }

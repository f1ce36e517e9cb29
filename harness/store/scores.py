"""Scores, pass@k, costs and block gains of stored runs. Boards show rounded sums: databases add in different orders."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, bindparam, exists, func, select

from ctxbench.bench.errors import InputFault
from ctxbench.harness.metrics import pass_at_k
from ctxbench.harness.prices import Prices, Rate
from ctxbench.harness.results import ENGINE_COSTS, OFFLINE_COSTS
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.database import fetched
from ctxbench.harness.store.facts import measure_numbers
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE, UnscoredCompletion, passes_not_plain
from ctxbench.harness.store.write import clean, load, parts
from ctxbench.strategies.api import SUMMARY_ROLE

KS = (1, 3, 5, 10, 20, 50, 100)
"""Values of k that boards show, for runs with at least k completions per sample."""
Counts = Mapping[str, tuple[int, int]]
"""Sample -> (judged completions, completions that passed)."""
_SECONDS, _DOLLARS = 9, 15


def kinds_of(run: str) -> Select[Any]:
    """Return the query for the (profile, metric) pairs of a run's scores. It does not read every score."""
    s, m = t.SCORE_FACT.c, t.MEASURE.c
    return select(m.profile, m.metric).where(exists().where(s.run == t.run_number(run), s.measure == m.number))


def unscored(store: Store, run: str, profile: str, metrics: Sequence[str]) -> list[UnscoredCompletion]:
    """Return the completions of a run that lack one of a profile's metrics, in planned order."""
    c, p, s = t.COMPLETION.c, t.PLANNED.c, t.SCORE.c
    scored = (
        select(s.key, s.idx, func.count().label("metrics"))
        .where(s.run_id == run, s.profile == profile, s.metric.in_(metrics))
        .group_by(s.key, s.idx)
        .subquery()
    )
    joined = t.COMPLETION.join(t.PLANNED, (c.key == p.key)).outerjoin(
        scored, (c.key == scored.c.key) & (c.idx == scored.c.idx)
    )
    query = (
        select(c.sample_id, c.idx, c.text)
        .select_from(joined)
        .where(c.run_id == run, func.coalesce(scored.c.metrics, 0) < len(metrics))
        .order_by(p.ordinal, c.idx)
    )
    with store.reading() as connection:
        return [UnscoredCompletion(*row) for row in connection.execute(query)]


def add_scores(
    store: Store, run: str, profile: str, scores: Mapping[tuple[str, int], Mapping[str, float | None]]
) -> None:
    """Append a run's scores, except those that are already stored.

    `scores` maps (sample, completion index) to the values by metric.
    """
    s, p = t.SCORE_FACT.c, t.PLANNED.c
    samples = sorted({sample for sample, _ in scores})
    metrics = sorted({metric for values in scores.values() for metric in values})

    def add(connection: Connection) -> None:
        number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == run))
        if number is None:
            raise InputFault("the run was deleted meanwhile", where=f"run {run}", cure="leave the run out")
        measures = measure_numbers(connection, [(profile, metric) for metric in metrics])
        numbers = {metric: measures[profile, metric] for metric in metrics}
        keys: dict[str, int] = {}
        stored: set[tuple[int, int, int]] = set()
        for part in parts(samples):
            keys |= dict(
                connection.execute(select(p.sample_id, p.key).where(p.run_id == run, p.sample_id.in_(part))).all()
            )
            of_part = [keys[sample] for sample in part]
            query = select(s.measure, s.key, s.idx).where(s.run == number, s.measure.in_(list(numbers.values())))
            stored.update(map(tuple, connection.execute(query.where(s.key.in_(of_part)))))
        rows = [
            (number, numbers[metric], keys[sample], idx, clean(value))
            for (sample, idx), values in scores.items()
            for metric, value in values.items()
            if (numbers[metric], keys[sample], idx) not in stored
        ]
        load(connection, t.SCORE_FACT, sorted(rows, key=itemgetter(1, 2, 3)))

    store.settle(add)


def verdict_counts(
    connection: Connection, runs: Iterable[str], *, strict: bool = False
) -> dict[str, dict[str, tuple[int, int]]]:
    """Return the numbers of judged and passed completions, by run and sample id. With `strict`, flagged passes fail."""
    s = t.SCORE.c
    runs = list(runs)
    doubted = passes_not_plain(connection, runs) if strict else {}
    query = (
        select(s.run_id, s.sample_id, func.count(), func.sum(s.value))
        .where(s.run_id.in_(runs), s.profile == PROFILE, s.metric == PASS)
        .group_by(s.run_id, s.sample_id)
    )
    counts_by_run: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for run, sample, judged, passed in connection.execute(query):
        counts_by_run[run][sample] = judged, round(passed) - doubted.get(run, {}).get(sample, 0)
    return counts_by_run


def pass_columns(counts: Counts, n: int, ks: Collection[int]) -> dict[str, dict[str, float | None]]:
    """Return pass@k (0 to 1) by metric name and sample, for samples whose `n` completions are all judged."""
    whole = {sample: passed for sample, (judged, passed) in counts.items() if judged == n}
    return {
        f"pass@{k}": {sample: pass_at_k(n, passed, k) for sample, passed in whole.items()}
        for k in sorted({*KS, *ks})
        if k <= n and whole
    }


@dataclass(frozen=True, slots=True)
class Costs:
    """A run's costs by sample id, for the samples with a result."""

    tokens_in: dict[str, float | None] = field(default_factory=dict)
    tokens_out: dict[str, float | None] = field(default_factory=dict)
    tokens_cached: dict[str, float | None] = field(default_factory=dict)
    price: dict[str, float | None] = field(default_factory=dict)
    calls: dict[str, float | None] = field(default_factory=dict)
    test_seconds: dict[str, float | None] = field(default_factory=dict)
    summaries: Costs | None = None
    """Costs of a separate summariser, which the other fields do not include; None without a summariser."""
    offline: dict[str, float | None] = field(default_factory=dict)
    """Total costs of API summaries, by name in `OFFLINE_COSTS`; empty without summaries."""


def costs_of(connection: Connection, runs: Iterable[Any], prices: Prices | None = None) -> dict[str, Costs]:
    """Return the costs of each run's samples, summed over their calls, by run id. `prices` None keeps stored prices."""
    costs_by_run = {run.id: _of_run(connection, run, prices) for run in runs}
    for run, offline in _offline(connection, costs_by_run, prices).items():
        costs_by_run[run].offline.update(offline)
    j, v = t.JUDGED.c, t.VERDICT.c
    tests = (
        select(j.run_id, j.sample_id, func.sum(v.seconds))
        .select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key))
        .where(j.run_id.in_(list(costs_by_run)))
        .group_by(j.run_id, j.sample_id)
    )
    for run, sample, seconds in connection.execute(tests):
        costs_by_run[run].test_seconds[sample] = round(seconds, _SECONDS)
    return costs_by_run


@dataclass(frozen=True, slots=True)
class RunCosts:
    """Total cost of a run's samples, including calls to a separate summariser."""

    samples: int
    tokens_in: float
    tokens_out: float
    price: float | None
    """Sum of the stored prices in US dollars; None if there are no calls or any price is unknown."""
    generator_seconds: float
    strategy_seconds: float

    def __str__(self) -> str:
        price = "" if self.price is None else f", US$ {self.price:.2g}"
        return (
            f"{self.tokens_in:,.0f} tokens in, {self.tokens_out:,.0f} out{price}, "
            f"{self.generator_seconds:.1f} s in the model, {self.strategy_seconds:.1f} s in the strategy"
        )


def costs_of_run(connection: Connection, run: str) -> RunCosts:
    """Return the costs of a run so far. Answers that other runs share are counted in full."""
    p, c, g, r = t.PLANNED_FACT.c, t.CALL_FACT.c, t.GENERATION_FACT.c, t.RESULT.c
    joined = t.PLANNED_FACT.join(t.CALL_FACT, c.key == p.key).join(t.GENERATION_FACT, c.generation == g.number)
    calls = select(*_sums()).select_from(joined).where(p.run == t.run_number(run))
    results = select(func.count(), func.sum(r.generator_seconds), func.sum(r.strategy_seconds)).where(r.run_id == run)
    tokens_in, tokens_out, _, _, price, unknown, count = connection.execute(calls).one()
    samples, generator_seconds, strategy_seconds = connection.execute(results).one()
    return RunCosts(
        samples=samples,
        tokens_in=float(tokens_in or 0),
        tokens_out=float(tokens_out or 0),
        price=float(price) if count and not unknown else None,
        generator_seconds=float(generator_seconds or 0.0),
        strategy_seconds=float(strategy_seconds or 0.0),
    )


def latest_costs(
    store: Store, set_digest: str, strategy: str, n: int, *, generator: str | None = None
) -> RunCosts | None:
    """Return the costs of a strategy's latest run over a set with `n` completions per sample; None without such a run.

    With `generator`, only runs of that generator count.
    """
    r, a, i = t.RUN.c, t.ATTEMPT.c, t.IMPORTED.c
    query = (
        select(r.id)
        .select_from(t.RUN.join(t.ATTEMPT, r.id == a.run_id).outerjoin(t.IMPORTED, r.id == i.run_id))
        .where(r.samples_digest == set_digest, r.strategy == strategy, r.n == n, i.run_id.is_(None))
        .group_by(r.id)
        .order_by(func.max(a.started).desc())
    )
    if generator is not None:
        query = query.where(r.generator == generator)
    with store.reading() as connection:
        for run in connection.scalars(query).all():
            costs = costs_of_run(connection, run)
            if costs.samples:
                return costs
    return None


def _of_run(connection: Connection, run: Any, prices: Prices | None) -> Costs:
    rate = prices.rate(run.generator) if prices else None
    if not run.summariser:
        return _of_calls(fetched(connection, _asked_calls(None), run=run.id), rate)
    costs = _of_calls(fetched(connection, _asked_calls(False), run=run.id), rate)
    rate = prices.rate(run.summariser) if prices else None
    return replace(costs, summaries=_of_calls(fetched(connection, _asked_calls(True), run=run.id), rate))


def _sums() -> tuple[Any, ...]:
    """Return the SQL sums over answers. The last two columns count the answers without a price and all answers."""
    g = t.GENERATION_FACT.c
    lacking = func.count() - func.count(g.price)
    return *map(func.sum, (g.tokens_in, g.tokens_out, g.cached, g.seconds, g.price)), lacking, func.count()


@functools.cache
def _asked_calls(summaries: bool | None) -> Select[Any]:
    """Return the query for a run's calls: a summariser's (True), all others (False), or all (None)."""
    p, c, g, s = t.PLANNED_FACT.c, t.CALL_FACT.c, t.GENERATION_FACT.c, t.SAMPLE.c
    joined = (
        t.PLANNED_FACT.join(t.CALL_FACT, c.key == p.key)
        .join(t.GENERATION_FACT, c.generation == g.number)
        .join(t.SAMPLE, p.sample == s.number)
    )
    query = (
        select(s.id, *_sums()).select_from(joined).where(p.run == t.run_number(bindparam("run"))).group_by(p.key, s.id)
    )
    if summaries is None:
        return query
    return query.where(c.role == SUMMARY_ROLE if summaries else c.role != SUMMARY_ROLE)


def _offline(connection: Connection, runs: Iterable[str], prices: Prices | None) -> dict[str, dict[str, float | None]]:
    f, g, o, r = t.SUMMARISED_FACT.c, t.GENERATION_FACT.c, t.SOURCE.c, t.RUN.c
    joined = (
        t.SUMMARISED_FACT.join(t.RUN, f.run == r.number)
        .join(t.GENERATION_FACT, f.generation == g.number)
        .join(t.SOURCE, g.source == o.number)
    )
    query = (
        select(r.id, o.generator, *_sums()).select_from(joined).where(r.id.in_(list(runs))).group_by(r.id, o.generator)
    )
    costs: dict[str, dict[str, float | None]] = {}
    for run, generator, *sums in connection.execute(query):
        of_run = _of_calls([(run, *sums)], prices.rate(generator) if prices else None)
        columns = (of_run.calls, of_run.tokens_in, of_run.tokens_out, of_run.price)
        costs[run] = {name: column[run] for name, column in zip(OFFLINE_COSTS, columns, strict=True)}
    return costs


def _of_calls(rows: Sequence[tuple[Any, ...]], rate: Rate | None) -> Costs:
    ids, tokens_in, tokens_out, cached, seconds, stored, unknown, calls = [[row[at] for row in rows] for at in range(8)]
    if rate is None:
        prices = [None if lacks else price for price, lacks in zip(stored, unknown, strict=True)]
    else:
        prices = [_priced(rate, *row) for row in zip(tokens_in, tokens_out, cached, seconds, strict=True)]
    rounded = [None if price is None else round(price, _DOLLARS) for price in prices]
    # Some databases return a sum of integers as another type, such as Decimal.
    numbers: list[list[float | None]] = [
        list(map(float, map(int, sums))) for sums in (tokens_in, tokens_out, cached, calls)
    ]
    prompt, answer, at_hand, counts, price = (dict(zip(ids, column, strict=True)) for column in (*numbers, rounded))
    return Costs(tokens_in=prompt, tokens_out=answer, tokens_cached=at_hand, price=price, calls=counts)


def _priced(rate: Rate, tokens_in: Any, tokens_out: Any, cached: Any, seconds: float) -> float:
    return rate.price(tokens_in=int(tokens_in), tokens_out=int(tokens_out), cached=int(cached), seconds=seconds)


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a measured block, in bits."""

    kind: str
    bits: float


def add_gains(store: Store, run: str, sample: str, coder: str, gains: Mapping[int, float]) -> bool:
    """Append gains in bits of a sample's blocks, by block index; return False without gains, or if any are stored."""

    def append(connection: Connection) -> bool:
        g = t.GAIN_FACT.c
        key = connection.scalar(select(t.key_of(run, sample)))
        query = select(g.ordinal).where(g.key == key, g.coder == coder)
        if not gains or connection.execute(query).first() is not None:
            return False
        rows = [(key, ordinal, coder, gain) for ordinal, gain in sorted(gains.items())]
        load(connection, t.GAIN_FACT, rows)
        return True

    return store.settle(append)


def gains_of(store: Store, run: str, coder: str) -> dict[str, list[Gain]]:
    """Return the gains that a coder measured for a run's blocks, in the order of the prompt, by sample id."""
    g, b = t.BLOCK_GAIN.c, t.BLOCK.c
    joined = t.BLOCK_GAIN.join(t.BLOCK, (g.key == b.key) & (g.ordinal == b.ordinal))
    query = (
        select(g.sample_id, b.kind, g.gain)
        .select_from(joined)
        .where(g.run_id == run, g.coder == coder)
        .order_by(g.sample_id, g.ordinal)
    )
    gains_by_sample: dict[str, list[Gain]] = defaultdict(list)
    with store.reading() as connection:
        for sample, kind, gain in connection.execute(query):
            gains_by_sample[sample].append(Gain(kind, gain))
    return gains_by_sample


def mean_gains(connection: Connection, runs: Iterable[str]) -> dict[str, dict[str, float | None]]:
    """Return mean block gains in bits, by run and sample id. Gains by the run's own coder have precedence."""
    g, r = t.BLOCK_GAIN.c, t.RUN.c
    query = (
        select(g.run_id, g.sample_id, g.coder, r.coder, g.gain)
        .select_from(t.BLOCK_GAIN.join(t.RUN, g.run_id == r.id))
        .where(g.run_id.in_(list(runs)))
        .order_by(g.run_id, g.sample_id, g.coder, g.ordinal)
    )
    means_by_run: dict[str, dict[str, float | None]] = defaultdict(dict)
    own: set[tuple[str, str]] = set()
    rows: Iterator[tuple[str, str, str, str, float]] = map(tuple, connection.execute(query))
    for (run, sample, coder, run_coder), group in groupby(rows, key=itemgetter(0, 1, 2, 3)):
        gains = [gain for *_, gain in group]
        if (run, sample) not in own:
            means_by_run[run][sample] = math.fsum(gains) / len(gains)
        if coder == run_coder:
            own.add((run, sample))
    return means_by_run


EngineCosts = Mapping[str, Mapping[str, float]]
"""Name in `ENGINE_COSTS` -> sample -> total cost of all engines."""


def engine_costs(connection: Connection, runs: Sequence[str]) -> dict[str, EngineCosts]:
    """Return the costs of context engines, by run id, for the runs that used an engine."""
    u = t.ENGINE_USE.c
    sums = (
        *(func.sum(column) for column in (u.index_seconds, u.query_seconds, u.calls, u.places, u.cut)),
        func.max(u.index_bytes),
    )
    costs: dict[str, dict[str, dict[str, float]]] = {}
    for part in parts(runs):
        query = select(u.run_id, u.sample_id, *sums).where(u.run_id.in_(part)).group_by(u.run_id, u.sample_id)
        for run, sample, *values in connection.execute(query):
            of_run = costs.setdefault(run, {name: {} for name in ENGINE_COSTS})
            for name, value in zip(ENGINE_COSTS, values, strict=True):
                of_run[name][sample] = float(value)
    return dict(costs)

"""Costs of the samples of stored runs: the tokens, prices and seconds of their calls, and the seconds of their tests.

Sums are taken by the database. Databases add floating-point numbers in different orders, so sums of these are rounded
to what no sample's cost needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from ctxbench.harness.prices import Prices, Rate
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.counted import COUNTING_VERDICT
from ctxbench.harness.store.fetching import fetched

_SECONDS, _DOLLARS = 9, 15
"""Decimals that are kept of a sum."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What the samples of one run cost; a sample without a result is in no column."""

    tokens_in: dict[str, float | None] = field(default_factory=dict)
    tokens_out: dict[str, float | None] = field(default_factory=dict)
    tokens_cached: dict[str, float | None] = field(default_factory=dict)
    price: dict[str, float | None] = field(default_factory=dict)
    test_seconds: dict[str, float | None] = field(default_factory=dict)
    """Only of samples that have a verdict."""


def of_runs(connection: Connection, runs: Iterable[tuple[str, str]], prices: Prices | None = None) -> dict[str, Costs]:
    """Return run -> what its samples cost, all of their calls together.

    Args:
        connection: to the database.
        runs: (id, generator) of each.
        prices: price the stored tokens by these rates; the price that was stored stays where they know none.
    """
    rates = {run: prices.rate(generator) if prices else None for run, generator in runs}
    query = _asked_calls()
    costs_by_run = {run: _of_calls(fetched(connection, query, run=run), rate) for run, rate in rates.items()}
    j, v = COUNTING_VERDICT.c, t.VERDICT.c
    tests = (
        select(j.run_id, j.sample_id, func.sum(v.seconds))
        .select_from(COUNTING_VERDICT.join(t.VERDICT, j.verdict_key == v.key))
        .where(j.run_id.in_(list(rates)))
        .group_by(j.run_id, j.sample_id)
    )
    for run, sample, seconds in connection.execute(tests):
        costs_by_run[run].test_seconds[sample] = round(seconds, _SECONDS)
    return costs_by_run


def _asked_calls() -> Select[Any]:
    """Return the question for the calls of a run: asked of a run at a time, so that few rows are held."""
    c, g = t.CALL.c, t.GENERATION.c
    return (
        select(
            c.sample_id,
            func.sum(g.tokens_in),
            func.sum(g.tokens_out),
            func.sum(g.cached),
            func.sum(g.seconds),
            func.sum(g.price),
            func.count() - func.count(g.price),
        )
        .select_from(t.CALL.join(t.GENERATION, c.generation_id == g.id))
        .where(c.run_id == bindparam("run"))
        .group_by(c.sample_id)
    )


def _of_calls(rows: Sequence[tuple[Any, ...]], rate: Rate | None) -> Costs:
    """Return what the calls of one run's samples took, as columns."""
    ids, tokens_in, tokens_out, cached, seconds, stored, unknown = [[row[at] for row in rows] for at in range(7)]
    if rate is None:
        prices = [None if lacks else price for price, lacks in zip(stored, unknown, strict=True)]
    else:
        prices = [_priced(rate, *row) for row in zip(tokens_in, tokens_out, cached, seconds, strict=True)]
    rounded = [None if price is None else round(price, _DOLLARS) for price in prices]
    # Some databases sum whole numbers to a type that is no Python integer.
    columns: list[list[float | None]] = [list(map(float, map(int, sums))) for sums in (tokens_in, tokens_out, cached)]
    return Costs(*(dict(zip(ids, column, strict=True)) for column in (*columns, rounded)))


def _priced(rate: Rate, tokens_in: Any, tokens_out: Any, cached: Any, seconds: float) -> float:
    return rate.price(tokens_in=int(tokens_in), tokens_out=int(tokens_out), cached=int(cached), seconds=seconds)

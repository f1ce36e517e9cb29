"""Read what context engines did for the samples of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, func, select

from ctxbench.harness.results import ENGINE_COSTS
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.loading import parts

EngineCosts = Mapping[str, Mapping[str, float]]
"""Name of `ENGINE_COSTS` -> sample -> its cost at all engines together."""


def engine_costs(connection: Connection, runs: Sequence[str]) -> dict[str, EngineCosts]:
    """Return run -> what its engines cost; runs that asked none are not among them."""
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

"""Scores of stored completions under one profile: find those that lack some, and append them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.write import append, number_or_null, parts


@dataclass(frozen=True, slots=True)
class UnscoredCompletion:
    """A stored completion that lacks a metric of a profile."""

    sample_id: str
    idx: int
    text: str


def unscored(store: Store, run: str, profile: str, metrics: Sequence[str]) -> list[UnscoredCompletion]:
    """Return the completions of a run that lack one of a profile's metrics, in the order of the plan."""
    c, p, s = t.COMPLETION.c, t.PLANNED.c, t.SCORE.c
    scored = (
        select(s.sample_id, s.idx, func.count().label("metrics"))
        .where(s.run_id == run, s.profile == profile, s.metric.in_(metrics))
        .group_by(s.sample_id, s.idx)
        .subquery()
    )
    joined = t.COMPLETION.join(t.PLANNED, (c.run_id == p.run_id) & (c.sample_id == p.sample_id)).outerjoin(
        scored, (c.sample_id == scored.c.sample_id) & (c.idx == scored.c.idx)
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
    """Append the scores of a run's completions under a profile; those that are there already stay as they are.

    Args:
        store: where the run is.
        run: its id.
        profile: whose metrics.
        scores: (sample, index of the completion) -> metric -> value in the profile's own scale.
    """
    s = t.SCORE.c
    samples = sorted({sample for sample, _ in scores})

    def add(connection: Connection) -> None:
        stored: set[tuple[str, int, str]] = set()
        for part in parts(samples):
            query = select(s.sample_id, s.idx, s.metric)
            query = query.where(s.run_id == run, s.profile == profile, s.sample_id.in_(part))
            stored.update(map(tuple, connection.execute(query)))
        content = [
            {
                "run_id": run,
                "profile": profile,
                "metric": metric,
                "sample_id": sample,
                "idx": idx,
                "value": number_or_null(value),
            }
            for (sample, idx), values in scores.items()
            for metric, value in values.items()
            if (sample, idx, metric) not in stored
        ]
        append(connection, t.SCORE, content)

    store.settle(add)

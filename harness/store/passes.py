"""pass@k of stored runs, computed when they are read: only counts are stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import Connection, func, select

from ctxbench.harness.metrics.passk import pass_at_k
from ctxbench.harness.store.counted import COUNTING_SCORE, PASS, PROFILE

KS = (1, 3, 5, 10, 20, 50, 100)
"""The ks that are shown of a run with so many completions a sample, whatever else is asked for."""

Counts = Mapping[str, tuple[int, int]]
"""Sample -> completions that have a verdict, and those of them that passed."""


def counted(connection: Connection, runs: Iterable[str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return run -> sample -> verdicts and passes."""
    s = COUNTING_SCORE.c
    query = (
        select(s.run_id, s.sample_id, func.count(), func.sum(s.value))
        .where(s.run_id.in_(list(runs)), s.profile == PROFILE, s.metric == PASS)
        .group_by(s.run_id, s.sample_id)
    )
    counts_by_run: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for run, sample, judged, passed in connection.execute(query):
        counts_by_run[run][sample] = judged, round(passed)
    return counts_by_run


def columns(counts: Counts, n: int, ks: Collection[int]) -> dict[str, dict[str, float | None]]:
    """Return ``pass@k`` -> sample -> value in 0..1, of samples all of whose `n` completions have a verdict."""
    whole = {sample: passed for sample, (judged, passed) in counts.items() if judged == n}
    return {
        f"pass@{k}": {sample: pass_at_k(n, passed, k) for sample, passed in whole.items()}
        for k in sorted({*KS, *ks})
        if k <= n and whole
    }

"""The samples of stored runs with what became of each, and their scores: what a table's columns are made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from sqlalchemy import Connection, select

from bench.types import UNTESTED, Kind
from harness.results import Status
from harness.store import passes
from harness.store import tables as t
from harness.store.verdicts import PASS


@dataclass(frozen=True, slots=True)
class Planned:
    """What the tables say of one sample of a run."""

    id: str
    benchmark: str
    kind: str
    language: str
    repo: str
    level: str
    status: Status
    context_tokens: float | None
    calls: float | None
    strategy_seconds: float | None = None
    generator_seconds: float | None = None

    @property
    def seconds(self) -> float | None:
        """What the strategy and the model took together."""
        if self.strategy_seconds is None or self.generator_seconds is None:
            return None
        return self.strategy_seconds + self.generator_seconds

    @property
    def tested(self) -> bool:
        """Whether tests judge it, as of `bench.types.Sample`."""
        return self.kind == Kind.FUNCTION and self.level != UNTESTED

    def settled(self, verdicts: passes.Counts, n: int, *, excluded: bool, imported: bool) -> Planned:
        """Return it with its status: excluded, or infra-failed where a function lacks a verdict.

        Args:
            verdicts: of the run.
            n: completions a sample.
            excluded: whether the sample is marked.
            imported: whether the run was made elsewhere; then there are no costs to tell.
        """
        one = self
        if imported:
            one = replace(self, context_tokens=None, calls=None, strategy_seconds=None, generator_seconds=None)
        if excluded:
            return replace(one, status=Status.EXCLUDED)
        judged = not one.tested or verdicts.get(one.id, (0, 0))[0] == n
        return one if judged else replace(one, status=Status.INFRA_FAILED)


def samples(connection: Connection, runs: Iterable[str]) -> dict[str, list[Planned]]:
    """Return run -> its planned samples in order; one without a result is infra-failed."""
    p, s, r = t.PLANNED.c, t.SAMPLE.c, t.RESULT.c
    joined = t.PLANNED.join(t.SAMPLE, (p.set_digest == s.set_digest) & (p.sample_id == s.id)).outerjoin(
        t.RESULT, (p.run_id == r.run_id) & (p.sample_id == r.sample_id)
    )
    query = (
        select(
            p.run_id,
            p.sample_id,
            s.benchmark,
            s.kind,
            s.language,
            s.repo,
            s.subkind,
            r.status,
            r.context_tokens,
            r.calls,
            r.strategy_seconds,
            r.generator_seconds,
        )
        .select_from(joined)
        .order_by(p.run_id, p.ordinal)
    )
    found: dict[str, list[Planned]] = defaultdict(list)
    for run, id_, benchmark, kind, language, repo, level, status, *costs in connection.execute(
        query.where(p.run_id.in_(list(runs)))
    ):
        state = Status.INFRA_FAILED if status is None else Status(status)
        found[run].append(Planned(id_, benchmark, kind, language, repo, level, state, *costs))
    return found


def scores(
    connection: Connection, runs: Iterable[str], profiles: Collection[str]
) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return run -> metric -> sample -> mean over its completions, of the metrics of some profiles."""
    s = t.SCORE.c
    query = (
        select(s.run_id, s.metric, s.sample_id, s.value)
        .where(s.run_id.in_(list(runs)), s.profile.in_(list(profiles)), s.metric != PASS)
        .order_by(s.run_id, s.profile, s.metric, s.sample_id)
    )
    found: dict[str, dict[str, dict[str, float | None]]] = defaultdict(lambda: defaultdict(dict))
    # The mean is taken here: databases, and versions of one, add in different ways and differ in the last digits.
    for (run, metric, sample), group in groupby(connection.execute(query), key=itemgetter(0, 1, 2)):
        values = [value for *_, value in group if value is not None]
        found[run][metric][sample] = math.fsum(values) / len(values) if values else None
    return found

"""Attempts at runs: when they were made, how they ended, what went wrong and what took long. Reads only.

A result tells no time, so that a stored run is the same whenever it is made; only attempts do. Whether a process
still works on an attempt without an end is in no row: it holds a claim on it (`harness.store.claims`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ctxbench.harness.results import Load
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store

_JUDGING = "tests "
"""How the isolation of an attempt begins that ran tests and nothing else."""
_TESTS = ", tests in "
"""Stands before the name of the back end in the isolation of an attempt."""
_SAMPLES_LISTED = 20
"""Samples listed with a group of faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """One attempt at a run."""

    id: int
    started: float
    """Seconds since 1970."""
    isolation: str
    """How strategies were kept apart, and where tests ran."""
    ended: float | None
    """None: no end was noted. It goes on, or its process was killed."""
    reason: str
    """``done``, ``faults``, ``interrupted`` or ``failed``; empty without an end."""
    finished: int | None
    """Samples that it stored; None without an end."""
    missing: int | None
    faults: int
    claimed: bool = False
    """Whether its process holds a claim on it for as long as it lives."""
    load: Load | None = None
    """How much it did at once; None where nobody noted it."""

    @property
    def sandbox(self) -> str:
        """The back end that ran tests; empty if none did."""
        return self.isolation.partition(_TESTS)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultGroup:
    """Equal faults of one run: of one kind, with one message."""

    kind: str
    """``machine`` or ``strategy``."""
    message: str
    count: int
    attempt: int
    """The latest attempt that met it."""
    started: float
    """When that attempt began: a fault itself tells no time."""
    samples: tuple[str, ...]
    """The first of its samples."""
    detail: str
    """Of the latest of them: the strategy's own traceback, if it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructionTime:
    """How long a stage of making one repository searchable took, in one attempt."""

    run: str
    attempt: int
    repo: str
    stage: str
    seconds: float


def faults(store: Store, run: str) -> list[FaultGroup]:
    """Return the faults of a run, equal ones together: those of the latest attempt first, then the most frequent."""
    f, a = t.FAULT.c, t.ATTEMPT.c
    rows = (
        select(f.kind, f.message, f.attempt_id, f.ordinal, f.sample_id, a.started)
        .select_from(t.FAULT.join(t.ATTEMPT, f.attempt_id == a.id))
        .where(a.run_id == run)
        .order_by(f.attempt_id, f.ordinal)
    )
    count: Counter[tuple[str, str]] = Counter()
    samples: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    last: dict[tuple[str, str], tuple[int, int, float]] = {}
    with store.reading() as connection:
        for kind, message, attempt, ordinal, sample, started in connection.execute(rows):
            key = kind, message
            count[key] += 1
            last[key] = attempt, ordinal, started
            if len(samples[key]) < _SAMPLES_LISTED:
                samples[key][sample] = None
        details = {key: _detail(connection, attempt, ordinal) for key, (attempt, ordinal, _) in last.items()}
    groups = [
        FaultGroup(
            kind=kind,
            message=message,
            count=number,
            attempt=last[kind, message][0],
            started=last[kind, message][2],
            samples=tuple(samples[kind, message]),
            detail=details[kind, message],
        )
        for (kind, message), number in count.items()
    ]
    return sorted(groups, key=lambda group: (-group.attempt, -group.count, group.kind, group.message))


def failed_on(store: Store, run: str) -> frozenset[str]:
    """Return the ids of the samples that the run's strategy failed on in an attempt, done since or not."""
    f, a = t.FAULT.c, t.ATTEMPT.c
    rows = (
        select(f.sample_id)
        .select_from(t.FAULT.join(t.ATTEMPT, f.attempt_id == a.id))
        .where(a.run_id == run, f.kind == "strategy")
    )
    with store.reading() as connection:
        return frozenset(connection.scalars(rows))


def construction(store: Store, runs: Iterable[str]) -> list[ConstructionTime]:
    """Return how long runs took to make repositories searchable, in the order in which it happened."""
    c, a = t.CONSTRUCTION.c, t.ATTEMPT.c
    query = (
        select(a.run_id, c.attempt_id, c.repo, c.stage, c.seconds)
        .select_from(t.CONSTRUCTION.join(t.ATTEMPT, c.attempt_id == a.id))
        .where(a.run_id.in_(list(runs)))
        .order_by(c.attempt_id, c.ordinal)
    )
    with store.reading() as connection:
        return [
            ConstructionTime(run=run, attempt=attempt, repo=repo, stage=stage, seconds=seconds)
            for run, attempt, repo, stage, seconds in connection.execute(query)
        ]


def attempts(connection: Connection, runs: Iterable[str]) -> dict[str, list[Attempted]]:
    """Return run -> its attempts, in the order in which they began."""
    a, o, f = t.ATTEMPT.c, t.OUTCOME.c, t.FAULT.c
    failed = select(f.attempt_id, func.count().label("faults")).group_by(f.attempt_id).subquery()
    joined = t.ATTEMPT.outerjoin(t.OUTCOME, a.id == o.attempt_id).outerjoin(failed, a.id == failed.c.attempt_id)
    query = (
        select(
            a.run_id,
            a.id,
            a.started,
            a.isolation,
            o.ended,
            o.reason,
            o.finished,
            o.missing,
            failed.c.faults,
            a.claimed,
            a.workers,
            a.requests,
            a.cores,
        )
        .select_from(joined)
        .where(a.run_id.in_(list(runs)))
        .order_by(a.id)
    )
    attempts_by_run: dict[str, list[Attempted]] = defaultdict(list)
    for run, id_, started, isolation, ended, reason, finished, missing, count, claimed, *load in connection.execute(
        query
    ):
        attempts_by_run[run].append(
            Attempted(
                id=id_,
                started=started,
                isolation=isolation,
                ended=ended,
                reason=reason or "",
                finished=finished,
                missing=missing,
                faults=count or 0,
                claimed=bool(claimed),
                load=None if None in load else Load(workers=load[0], requests=load[1], cores=load[2]),
            )
        )
    return attempts_by_run


def loads(connection: Connection, runs: Iterable[str]) -> dict[str, tuple[Load | None, ...]]:
    """Return run -> the loads under which its stored samples were made, each once; see `RunInfo.loads`."""
    return {
        run: tuple(
            dict.fromkeys(
                attempt.load
                for attempt in run_attempts
                if attempt.finished != 0 and not attempt.isolation.startswith(_JUDGING)
            )
        )
        for run, run_attempts in attempts(connection, runs).items()
    }


def _detail(connection: Connection, attempt: int, ordinal: int) -> str:
    f = t.FAULT.c
    return str(connection.scalar(select(f.detail).where(f.attempt_id == attempt, f.ordinal == ordinal)) or "")

"""Progress, choices, attempts and faults of stored runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, select

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Kind
from ctxbench.harness.results import Load, Origin
from ctxbench.harness.run.spec import ImportedFile, RunSpec, repeat_command
from ctxbench.harness.store import notes
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.notes import names
from ctxbench.harness.store.samples import languages_of
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE
from ctxbench.harness.store.write import Imported, read_flags, spec_of

JUDGING = "tests "
"""Prefix of the isolation of an attempt that only ran tests."""
_TESTS = ", tests in "
"""Separator before the back end's name in an attempt's isolation."""
_NODES = " Ray nodes"
"""Suffix of an attempt's isolation on a cluster, where each node chooses its back end."""
_SAMPLES_LISTED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """The progress of a run, its choices and its attempts."""

    id: str
    choices: RunSpec
    """The choices of the run, without secrets."""
    sandbox: str
    """Value of ``--sandbox`` for a command that repeats the run; empty if the command does not need the option."""
    planned: int
    statuses: Mapping[str, int]
    unjudged: int
    languages: tuple[str, ...]
    functions: bool
    attempts: tuple[Attempted, ...]
    remarks: tuple[str, ...]
    imported: Imported | None
    file: ImportedFile | None
    """The import file with its options; None for a run that was not imported."""
    alive: bool | None = None
    """True if a process is working on the run. False if the process ended without recording the attempt's end. None if
    the last attempt ended or took no lock, or if locks cannot be read."""
    name: str = ""

    @property
    def origin(self) -> Origin:
        """Origin of the run's results: run here, imported, or reference results."""
        return Origin.RUN if self.imported is None else self.imported.origin

    @property
    def finished(self) -> int:
        """Number of samples with a result."""
        return sum(self.statuses.values())

    def repeat_command(self, options: Sequence[str] = ()) -> str:
        """Return the shell command that runs or imports the run again, with additional `options`."""
        return repeat_command(self.choices, self.file, sandbox=self.sandbox, options=options)


def run_works(store: Store, runs: Iterable[str] | None = None) -> list[RunWork]:
    """Return the progress of all runs, or of the runs with these ids, the latest first."""
    r = t.RUN.c
    query = select(t.RUN) if runs is None else select(t.RUN).where(r.id.in_(list(runs)))
    with store.reading() as connection:
        run_rows = list(connection.execute(query))
        ids = [run.id for run in run_rows]
        planned = _per_run(connection, t.PLANNED, ids)
        statuses = status_counts(connection, ids)
        attempts = attempts_of(connection, ids)
        kinds = _kinds(connection, {run.samples_digest for run in run_rows})
        tested = [run.id for run in run_rows if kinds[run.samples_digest][1]]
        unjudged = _unjudged(connection, tested) if tested else {}
        imports = notes.imports(connection, ids)
        siblings = _siblings(connection, imports.values())
        spoken = languages_of(connection, imports)
        remarks = notes.remarks(connection, ids)
        names_by_run = names(connection, ids)
    run_works = [
        RunWork(
            id=run.id,
            choices=spec_of(run),
            sandbox=_sandbox(attempts[run.id], kinds[run.samples_digest][1], imported=run.id in imports),
            planned=planned.get(run.id, 0),
            statuses=statuses[run.id],
            unjudged=unjudged.get(run.id, 0),
            languages=kinds[run.samples_digest][0],
            functions=kinds[run.samples_digest][1],
            attempts=tuple(attempts[run.id]),
            remarks=remarks[run.id],
            imported=imports.get(run.id),
            file=_file(run, imports[run.id], sorted(spoken[run.id]), siblings) if run.id in imports else None,
            name=names_by_run.get(run.id, ""),
        )
        for run in run_rows
    ]
    return sorted(watched(store, run_works), key=_newest_first)


def idle(store: Store, ids: Sequence[str]) -> list[RunWork]:
    """Return the progress of these runs, on which no process may be working.

    Raises:
        InputFault: if a process is working on one of them.
    """
    stored = run_works(store, ids)
    for work in stored:
        if work.alive:
            raise InputFault("a process is working on the run", where=f"run {work.id}", cure="stop that process first")
    return stored


def _newest_first(work: RunWork) -> tuple[float, str]:
    return -max((attempt.started for attempt in work.attempts), default=0.0), work.id


def watched(store: Store, runs: Iterable[RunWork]) -> list[RunWork]:
    """Return the runs with `alive` set from the current locks."""
    runs = list(runs)
    begun = [run.id for run in runs if any(_begun(attempt) for attempt in run.attempts)]
    locked = store.locked(begun) if begun else None
    return [replace(run, alive=_alive(run, locked)) for run in runs]


def _begun(attempt: Attempted) -> bool:
    return attempt.locked and attempt.ended is None


def _alive(work: RunWork, locked: Collection[str] | None) -> bool | None:
    if locked is None or not any(_begun(attempt) for attempt in work.attempts):
        return None
    if work.id in locked:
        return True
    # If an earlier attempt was killed, that does not show whether a later attempt is alive.
    return False if _begun(work.attempts[-1]) else None


def _per_run(connection: Connection, table: Any, runs: list[str]) -> dict[str, int]:
    c = table.c.run_id
    return dict(connection.execute(select(c, func.count()).where(c.in_(runs)).group_by(c)).all())


def status_counts(connection: Connection, runs: Collection[str]) -> dict[str, dict[str, int]]:
    """Return the numbers of finished samples, by run id and status, sorted by status."""
    r = t.RESULT.c
    query = select(r.run_id, r.status, func.count()).where(r.run_id.in_(runs)).group_by(r.run_id, r.status)
    statuses_by_run: dict[str, dict[str, int]] = defaultdict(dict)
    for run, status, count in sorted(map(tuple, connection.execute(query))):
        statuses_by_run[run][status] = count
    return statuses_by_run


def _kinds(connection: Connection, digests: set[str]) -> dict[str, tuple[tuple[str, ...], bool]]:
    s = t.SAMPLE.c
    facts_by_set: dict[str, set[tuple[str, str]]] = {digest: set() for digest in digests}
    query = select(s.set_digest, s.language, s.kind).where(s.set_digest.in_(sorted(digests))).distinct()
    for digest, language, kind in connection.execute(query):
        facts_by_set[digest].add((language, kind))
    return {
        digest: (
            tuple(sorted({language for language, _ in facts})),
            any(kind == Kind.FUNCTION for _, kind in facts),
        )
        for digest, facts in facts_by_set.items()
    }


def _unjudged(connection: Connection, runs: list[str]) -> dict[str, int]:
    c, p, m, s = t.COMPLETION.c, t.PLANNED.c, t.SAMPLE.c, t.SCORE.c
    joined = t.COMPLETION.join(t.PLANNED, (c.key == p.key)).join(
        t.SAMPLE, (p.set_digest == m.set_digest) & (p.sample_id == m.id)
    )
    query = (
        select(c.run_id, func.count())
        .select_from(joined)
        .where(c.run_id.in_(runs), m.kind == Kind.FUNCTION)
        .group_by(c.run_id)
    )
    judged = (
        select(s.run_id, func.count())
        .where(s.run_id.in_(runs), s.profile == PROFILE, s.metric == PASS)
        .group_by(s.run_id)
    )
    have: dict[str, int] = dict(connection.execute(judged).all())
    return {run: count - have.get(run, 0) for run, count in connection.execute(query)}


def _siblings(connection: Connection, files: Iterable[Imported]) -> dict[str, list[Any]]:
    i, r = t.IMPORTED.c, t.RUN.c
    digests = sorted({file.sha256 for file in files})
    query = select(i.sha256, r.strategy, r.generator).select_from(t.IMPORTED.join(t.RUN, i.run_id == r.id))
    labels_by_file: dict[str, list[Any]] = defaultdict(list)
    for digest, *pair in connection.execute(query.where(i.sha256.in_(digests))) if digests else ():
        labels_by_file[digest].append(pair)
    return labels_by_file


def _sandbox(attempts: Sequence[Attempted], functions: bool, *, imported: bool) -> str:
    """Return the value of ``--sandbox`` that the attempts used; empty if the option makes no difference."""
    if imported or not functions or not attempts:
        return ""
    # An attempt without a recorded back end ran no tests, except on a cluster, where each node chooses its back end.
    unsaid = "" if any(attempt.isolation.endswith(_NODES) for attempt in attempts) else "none"
    return next((attempt.sandbox for attempt in reversed(attempts) if attempt.sandbox), unsaid)


def _file(run: Any, source: Imported, languages: list[str], siblings: Mapping[str, list[Any]]) -> ImportedFile:
    labels = siblings[source.sha256]
    shared = {"strategy": {strategy for strategy, _ in labels}, "generator": {generator for _, generator in labels}}
    return ImportedFile(
        format=source.format,
        source=source.source,
        # `code` is empty if the file itself describes its samples, because no version of ctxbench computed the scores.
        has_sample_set=bool(run.code),
        language=languages[0] if len(languages) == 1 else "",
        labels=tuple(label for label, values in shared.items() if len(values) == 1),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """A stored attempt to complete a run, or to judge its completions."""

    id: int
    started: float
    """Start in seconds since 1970."""
    isolation: str
    """Description of the strategies' isolation, and of where tests ran."""
    ended: float | None
    """End in seconds since 1970; None if the attempt is still running or its process was killed."""
    reason: str
    """``done``, ``faults``, ``interrupted`` or ``failed``; empty if no end is recorded."""
    finished: int | None
    missing: int | None
    faults: int
    locked: bool = False
    """Whether the attempt's process holds the run's lock until the attempt ends."""
    load: Load | None = None
    """Concurrency of the attempt; None if not recorded."""

    @property
    def sandbox(self) -> str:
        """Back end of the tests that ran beside strategies; empty without such tests, or if cluster nodes chose it."""
        return self.isolation.partition(_TESTS)[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultGroup:
    """Faults of a run with the same kind and message."""

    kind: str
    """``machine`` or ``strategy``."""
    message: str
    count: int
    attempt: int
    started: float
    """Start, in seconds since 1970, of the last attempt with such a fault. Faults have no time of their own."""
    samples: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructionTime:
    """The seconds that one stage of building search structures took for one repository in one attempt."""

    run: str
    attempt: int
    repo: str
    stage: str
    seconds: float


def faults_of(store: Store, run: str) -> list[FaultGroup]:
    """Return a run's faults, grouped by kind and message, and sorted by latest attempt, then by frequency."""
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


def flags_of(store: Store, run: str) -> dict[str, int]:
    """Return the number of a run's samples with each flag, by flag, the most frequent first."""
    samples: dict[str, set[str]] = defaultdict(set)
    with store.reading() as connection:
        for c in (t.RESULT.c, t.COMPLETION.c):
            query = select(c.sample_id, c.flags).where(c.run_id == run, c.flags != "[]")
            for sample, flags in connection.execute(query):
                for flag in read_flags(flags):
                    samples[flag].add(sample)
    counted = {flag: len(samples[flag]) for flag in sorted(samples)}
    return dict(sorted(counted.items(), key=lambda item: -item[1]))


def failed_on(store: Store, run: str) -> frozenset[str]:
    """Return the ids of samples on which the run's strategy ever failed, even if these samples are finished now."""
    f, a = t.FAULT.c, t.ATTEMPT.c
    rows = (
        select(f.sample_id)
        .select_from(t.FAULT.join(t.ATTEMPT, f.attempt_id == a.id))
        .where(a.run_id == run, f.kind == "strategy")
    )
    with store.reading() as connection:
        return frozenset(connection.scalars(rows))


def construction_times(store: Store, runs: Iterable[str]) -> list[ConstructionTime]:
    """Return the seconds that each attempt at the runs took to build search structures, oldest attempt first."""
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


def attempts_of(connection: Connection, runs: Iterable[str]) -> dict[str, list[Attempted]]:
    """Return the attempts at each run, by run id, in the order of their start."""
    a, o, f = t.ATTEMPT.c, t.OUTCOME.c, t.FAULT.c
    failed = select(f.attempt_id, func.count().label("faults")).group_by(f.attempt_id).subquery()
    joined = t.ATTEMPT.outerjoin(t.OUTCOME, a.id == o.attempt_id).outerjoin(failed, a.id == failed.c.attempt_id)
    query = (
        select(t.ATTEMPT, o.ended, o.reason, o.finished, o.missing, failed.c.faults)
        .select_from(joined)
        .where(a.run_id.in_(list(runs)))
        .order_by(a.id)
    )
    attempts_by_run: dict[str, list[Attempted]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        load = {name: row[name] for name in ("workers", "requests", "cores")}
        attempts_by_run[row["run_id"]].append(
            Attempted(
                **{name: row[name] for name in ("id", "started", "isolation", "ended", "finished", "missing")},
                reason=row["reason"] or "",
                faults=row["faults"] or 0,
                locked=bool(row["locked"]),
                load=None if None in load.values() else Load(**load),
            )
        )
    return attempts_by_run


def loads_of(connection: Connection, runs: Iterable[str]) -> dict[str, tuple[Load | None, ...]]:
    """Return the distinct loads under which each run's samples were completed, by run id; see `RunInfo.loads`."""
    return {
        run: tuple(
            dict.fromkeys(
                attempt.load
                for attempt in run_attempts
                if attempt.finished != 0 and not attempt.isolation.startswith(JUDGING)
            )
        )
        for run, run_attempts in attempts_of(connection, runs).items()
    }


def _detail(connection: Connection, attempt: int, ordinal: int) -> str:
    f = t.FAULT.c
    return str(connection.scalar(select(f.detail).where(f.attempt_id == attempt, f.ordinal == ordinal)) or "")

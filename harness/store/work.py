"""Progress and choices of stored runs. Reads only; a few statements however many runs there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, func, select

from ctxbench.bench.secrets import redacted
from ctxbench.bench.types import UNTESTED, Kind
from ctxbench.harness.run.spec import ImportedFile, StoredChoices
from ctxbench.harness.store import attempts as tries
from ctxbench.harness.store import notes
from ctxbench.harness.store import tables as t
from ctxbench.harness.store.attempts import Attempted
from ctxbench.harness.store.claims import attempt_key
from ctxbench.harness.store.counted import PASS, PROFILE
from ctxbench.harness.store.records import Imported
from ctxbench.harness.store.rows import versions
from ctxbench.harness.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWork:
    """How far one run is."""

    id: str
    choices: StoredChoices
    samples_digest: str
    versions: Mapping[str, str]
    """What else decides the run's id: ``ctxbench``, ``strategy``, ``generator``, ``coder``, ``tokenizer``."""
    planned: int
    statuses: Mapping[str, int]
    """Status of `harness.results.Status` -> finished samples."""
    unjudged: int
    """Completions of functions that have no verdict yet."""
    languages: tuple[str, ...]
    """Of the set's samples that the store knows."""
    functions: bool
    """Whether tests judge some of them."""
    attempts: tuple[Attempted, ...]
    """In the order in which they began."""
    remarks: tuple[str, ...]
    imported: Imported | None
    file: ImportedFile | None
    """How to import it again; None for a run that was made here."""
    alive: bool | None = None
    """Whether a process works at it; False if its last attempt has no end and its process is gone, None if there is
    no such attempt, or nobody can tell."""

    @property
    def finished(self) -> int:
        """How many samples have a result."""
        return sum(self.statuses.values())


def works(store: Store, runs: Iterable[str] | None = None) -> list[RunWork]:
    """Return how far runs are, the one begun last first; all of them, or those with the ids `runs`."""
    r = t.RUN.c
    query = select(t.RUN) if runs is None else select(t.RUN).where(r.id.in_(list(runs)))
    with store.reading() as connection:
        run_rows = list(connection.execute(query))
        ids = [run.id for run in run_rows]
        planned = _per_run(connection, t.PLANNED, ids)
        statuses = _statuses(connection, ids)
        attempts = tries.attempts(connection, ids)
        kinds = _kinds(connection, {run.samples_digest for run in run_rows})
        tested = [run.id for run in run_rows if kinds[run.samples_digest][1]]
        unjudged = _unjudged(connection, tested) if tested else {}
        imports = notes.imports(connection, ids)
        siblings = _siblings(connection, imports.values())
        spoken = _languages(connection, imports)
        remarks = notes.remarks(connection, ids)
    run_works = [
        RunWork(
            id=run.id,
            choices=_choices(run, _sandbox(attempts[run.id], kinds[run.samples_digest][1], imported=run.id in imports)),
            samples_digest=run.samples_digest,
            versions=versions(run),
            planned=planned.get(run.id, 0),
            statuses=statuses[run.id],
            unjudged=unjudged.get(run.id, 0),
            languages=kinds[run.samples_digest][0],
            functions=kinds[run.samples_digest][1],
            attempts=tuple(attempts[run.id]),
            remarks=remarks[run.id],
            imported=imports.get(run.id),
            file=_file(run, imports[run.id], spoken[run.id], siblings) if run.id in imports else None,
        )
        for run in run_rows
    ]
    return sorted(watched(store, run_works), key=_newest_first)


def _newest_first(work: RunWork) -> tuple[float, str]:
    return -max((attempt.started for attempt in work.attempts), default=0.0), work.id


def watched(store: Store, runs: Iterable[RunWork]) -> list[RunWork]:
    """Return runs with what is known at this moment of the processes that work at them, which no row tells."""
    runs = list(runs)
    unended = {
        run.id: [attempt for attempt in run.attempts if attempt.ended is None and attempt.claimed] for run in runs
    }
    keys = {attempt_key(attempt.id) for attempts in unended.values() for attempt in attempts}
    claimed_keys = store.claimed(keys) if keys else None
    return [replace(run, alive=_alive(run, unended[run.id], claimed_keys)) for run in runs]


def _alive(work: RunWork, claimed: Sequence[Attempted], claimed_keys: Collection[str] | None) -> bool | None:
    if claimed_keys is None or not claimed:
        return None
    if any(attempt_key(attempt.id) in claimed_keys for attempt in claimed):
        return True
    # That an earlier attempt was killed says nothing of a later one.
    return False if claimed[-1] == work.attempts[-1] else None


def _per_run(connection: Connection, table: Any, runs: list[str]) -> dict[str, int]:
    c = table.c.run_id
    return dict(connection.execute(select(c, func.count()).where(c.in_(runs)).group_by(c)).all())


def _statuses(connection: Connection, runs: list[str]) -> dict[str, dict[str, int]]:
    r = t.RESULT.c
    query = select(r.run_id, r.status, func.count()).where(r.run_id.in_(runs)).group_by(r.run_id, r.status)
    statuses_by_run: dict[str, dict[str, int]] = defaultdict(dict)
    for run, status, count in sorted(map(tuple, connection.execute(query))):
        statuses_by_run[run][status] = count
    return statuses_by_run


def _kinds(connection: Connection, digests: set[str]) -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return digest of a set -> languages of its stored samples, and whether tests judge some of them."""
    s = t.SAMPLE.c
    facts_by_set: dict[str, set[tuple[str, str, str]]] = {digest: set() for digest in digests}
    query = select(s.set_digest, s.language, s.kind, s.subkind).where(s.set_digest.in_(sorted(digests))).distinct()
    for digest, *facts in connection.execute(query):
        facts_by_set[digest].add((facts[0], facts[1], facts[2]))
    return {
        digest: (
            tuple(sorted({language for language, _, _ in facts})),
            any(kind == Kind.FUNCTION and level != UNTESTED for _, kind, level in facts),
        )
        for digest, facts in facts_by_set.items()
    }


def _languages(connection: Connection, runs: Iterable[str]) -> dict[str, list[str]]:
    """Return run -> the languages of its own samples, which may be a part of its set's."""
    p, m = t.PLANNED.c, t.SAMPLE.c
    joined = t.PLANNED.join(t.SAMPLE, (p.set_digest == m.set_digest) & (p.sample_id == m.id))
    query = select(p.run_id, m.language).select_from(joined).where(p.run_id.in_(list(runs))).distinct()
    languages_by_run: dict[str, list[str]] = defaultdict(list)
    for run, language in sorted(map(tuple, connection.execute(query))):
        languages_by_run[run].append(language)
    return languages_by_run


def _unjudged(connection: Connection, runs: list[str]) -> dict[str, int]:
    """Count the completions that tests are to judge, less those that have a verdict."""
    c, p, m, s = t.COMPLETION.c, t.PLANNED.c, t.SAMPLE.c, t.SCORE.c
    joined = t.COMPLETION.join(t.PLANNED, (c.run_id == p.run_id) & (c.sample_id == p.sample_id)).join(
        t.SAMPLE, (p.set_digest == m.set_digest) & (p.sample_id == m.id)
    )
    query = (
        select(c.run_id, func.count())
        .select_from(joined)
        .where(c.run_id.in_(runs), m.kind == Kind.FUNCTION, m.subkind != UNTESTED)
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
    """Return digest of a file -> the labels of all runs that were imported from it."""
    i, r = t.IMPORTED.c, t.RUN.c
    digests = sorted({file.sha256 for file in files})
    query = select(i.sha256, r.strategy, r.generator).select_from(t.IMPORTED.join(t.RUN, i.run_id == r.id))
    labels_by_file: dict[str, list[Any]] = defaultdict(list)
    for digest, *labels in connection.execute(query.where(i.sha256.in_(digests))) if digests else ():
        labels_by_file[digest].append(labels)
    return labels_by_file


def _sandbox(attempts: Sequence[Attempted], functions: bool, *, imported: bool) -> str:
    """Return what ``--sandbox`` was, as far as the attempts tell; empty if it made no difference."""
    if imported or not functions or not attempts:
        return ""
    # Tests are run by every attempt, unless it was told to leave them out.
    return next((attempt.sandbox for attempt in reversed(attempts) if attempt.sandbox), "none")


def _choices(run: Any, sandbox: str) -> StoredChoices:
    return StoredChoices(
        samples=run.samples,
        limit=run.sample_limit,
        strategy=run.strategy,
        generator=redacted(run.generator),
        n=run.n,
        seed=run.seed,
        sampling=run.sampling,
        sandbox=sandbox,
    )


def _file(run: Any, source: Imported, languages: list[str], siblings: Mapping[str, list[Any]]) -> ImportedFile:
    labels = siblings[source.sha256]
    shared = {"strategy": {strategy for strategy, _ in labels}, "generator": {generator for _, generator in labels}}
    return ImportedFile(
        format=source.format,
        source=source.source,
        # Where the file itself told what its samples are, no version of ours decided its scores.
        has_sample_set=bool(run.code),
        language=languages[0] if len(languages) == 1 else "",
        labels=tuple(label for label, values in shared.items() if len(values) == 1),
    )

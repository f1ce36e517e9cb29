"""`ShardStore`: a store that also writes its finished samples to shards, for another process to merge."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from sqlalchemy import select

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import explained
from ctxbench.bench.home import sqlite_url
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Sample
from ctxbench.harness.run.scheduling import Share, WorkUnit, units
from ctxbench.harness.run.spec import RunSpec
from ctxbench.harness.store import notes, verdicts
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.facts import prompt_texts
from ctxbench.harness.store.shard import SUFFIX, AttemptLog, Shard, ShardManifest, manifest_of, read, write
from ctxbench.harness.store.store import Store, open_store
from ctxbench.harness.store.work import attempts_of
from ctxbench.harness.store.write import (
    Finished,
    StoredConstruction,
    StoredFault,
    StoredGeneration,
    StoredVerdict,
    parts,
)

Cut = Callable[[str, Sequence[Sample]], Sequence[WorkUnit]]
"""(run, its samples) -> the units of work for this process."""
Deliver = Callable[[Shard], None]
"""Function that writes or sends a shard."""
Earlier = Callable[[str, Collection[str]], Iterable[Shard]]
"""(run, sample ids) -> earlier shards with some of these samples, or with verdicts only."""
R = TypeVar("R")
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _OpenUnit:
    unit: WorkUnit
    left: set[str]
    finished: dict[str, Finished] = field(default_factory=dict)


class ShardStore(Store):
    """A process's own database, which also delivers finished samples as shards; thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        cut: Cut,
        deliver: Deliver,
        snapshots: Mapping[str, str],
        earlier: Earlier = lambda _, __: (),
    ) -> None:
        """Use the database of another store, which must stay open.

        `cut` selects the units of this process, and `deliver` is called with each shard. `snapshots` maps repositories
        to digests of their files. `earlier` returns earlier shards.
        """
        super().__init__(store._engine, store.where)
        self._cut, self._deliver, self._snapshots = cut, deliver, snapshots
        self._earlier = earlier
        self._done: dict[str, set[str]] = defaultdict(set)
        self._specs: dict[str, RunSpec] = {}
        self._open_units: dict[str, list[_OpenUnit]] = {}
        self._unlinked: dict[str, list[tuple[str, Mapping[int, StoredVerdict]]]] = defaultdict(list)
        """Run -> (sample, its verdicts), for samples that were delivered in a shard without these verdicts."""

    def add_run(self, spec: RunSpec, planned: Sequence[Sample], days: Mapping[str, date] = MappingProxyType({})) -> str:
        """Record a run, its samples and this process's units of work; return the run's id."""
        run = super().add_run(spec, planned, days)
        work_units = self._cut(run, planned)
        self._specs[run] = spec
        self._take_up(run, [sample for unit in work_units for sample in unit.samples])
        self._open_units[run] = [
            _OpenUnit(unit, {sample.id for sample in unit.samples} - self._done[run]) for unit in work_units
        ]
        return run

    def _take_up(self, run: str, mine: Sequence[Sample]) -> None:
        """Restore the samples of earlier shards into the database, and deliver the verdicts that these shards lack."""
        spec, in_shards, delivered = self._specs[run], self._done[run], set[str]()
        ids = {sample.id for sample in mine}
        for shard in self._earlier(run, ids):
            finished = [sample for sample in shard.finished if sample.sample_id in ids]
            in_shards.update(sample.sample_id for sample in finished)
            delivered.update(verdict.key for verdict in shard.verdicts)
            super().add_all_finished(run, spec.coder, finished, generations=shard.generations, verdicts=shard.verdicts)
        if not in_shards or not any(sample.tested for sample in mine):
            return
        # Verdicts that were computed after their sample's delivery are in shards without samples.
        judged = {key for sample, key in verdicts.judged(self, run) if sample in in_shards}
        if judged - delivered:
            self._deliver(self._of_verdicts(run, verdicts.find(self, judged - delivered).values()))

    def finished(self, run: str, among: Sequence[str] | None = None) -> frozenset[str]:
        """Return the ids of a run's samples that are or will be in shards. With `among`, return only ids in `among`."""
        ids = self._done[run]
        return frozenset(ids if among is None else ids.intersection(among))

    def add_all_finished(
        self,
        run: str,
        coder: str,
        finished: Iterable[Finished],
        *,
        generations: Iterable[StoredGeneration] = (),
        verdicts: Iterable[StoredVerdict] = (),
    ) -> int:
        """Store finished samples and deliver each complete work unit as a shard; return the number of given samples."""
        finished = list(finished)
        super().add_all_finished(run, coder, finished, generations=generations, verdicts=verdicts)
        self._done[run].update(sample.sample_id for sample in finished)
        for open_unit in self._open_units[run]:
            new = {sample.sample_id: sample for sample in finished if sample.sample_id in open_unit.left}
            open_unit.finished |= new
            open_unit.left -= new.keys()
            if new and not open_unit.left:
                self._send(run, open_unit)
        return len(finished)

    def link_verdicts(self, run: str, sample: str, verdicts: Mapping[int, StoredVerdict]) -> int:
        """Keep verdicts on a delivered sample for a later shard; return their number. Merging that shard links them."""
        self._unlinked[run].append((sample, verdicts))
        return len(verdicts)

    def end_attempt(self, attempt: int, *, reason: str, finished: int, missing: int) -> None:
        """Record the end of an attempt. Deliver its remaining finished samples and verdicts, and its log."""
        super().end_attempt(attempt, reason=reason, finished=finished, missing=missing)
        run, log = self._log(attempt)
        for open_unit in self._open_units[run]:
            if open_unit.finished:
                self._send(run, open_unit)
        self._send_verdicts(run)
        self._deliver(self._shard(run, attempt=log, answers=log.summaries))

    def _log(self, attempt: int) -> tuple[str, AttemptLog]:
        a, f, c, s, g, r = (
            table.c for table in (t.ATTEMPT, t.FAULT, t.CONSTRUCTION, t.SUMMARISED_FACT, t.GENERATION_FACT, t.REMARK)
        )
        with self.reading() as connection:
            run = str(connection.scalar(select(a.run_id).where(a.id == attempt)))
            [stored] = [other for other in attempts_of(connection, [run])[run] if other.id == attempt]
            faults = select(f.sample_id, f.kind, f.message, f.detail).where(f.attempt_id == attempt)
            stages = select(c.repo, c.stage, c.seconds).where(c.attempt_id == attempt)
            answers = select(g.id).where(s.run == t.run_number(run), s.generation == g.number)
            return run, AttemptLog(
                **{name: getattr(stored, name) for name in ("started", "isolation", "load", "reason")},
                ended=stored.ended or stored.started,
                finished=stored.finished or 0,
                missing=stored.missing or 0,
                faults=tuple(StoredFault(**row._mapping) for row in connection.execute(faults.order_by(f.ordinal))),
                constructions=tuple(
                    StoredConstruction(**row._mapping) for row in connection.execute(stages.order_by(c.ordinal))
                ),
                summaries=tuple(sorted(connection.scalars(answers))),
                remarks=tuple(connection.scalars(select(r.text).where(r.run_id == run).order_by(r.ordinal))),
                cutoff=notes.cutoffs(connection).get(self._specs[run].generator),
            )

    def _send(self, run: str, open_unit: _OpenUnit) -> None:
        finished = tuple(
            open_unit.finished[sample.id] for sample in open_unit.unit.samples if sample.id in open_unit.finished
        )
        open_unit.finished = {}
        self._deliver(self._shard(run, repo=open_unit.unit.repo, finished=finished))

    def _send_verdicts(self, run: str) -> None:
        unlinked = self._unlinked.pop(run, [])
        if not unlinked:
            return
        by_key = {verdict.key: verdict for _, linked in unlinked for verdict in linked.values()}
        self._deliver(self._of_verdicts(run, by_key.values()))
        for sample, linked in unlinked:
            super().link_verdicts(run, sample, linked)

    def _of_verdicts(self, run: str, verdicts: Iterable[StoredVerdict]) -> Shard:
        return Shard(spec=self._specs[run], verdicts=tuple(verdicts))

    def _shard(
        self,
        run: str,
        *,
        repo: str = "",
        finished: tuple[Finished, ...] = (),
        attempt: AttemptLog | None = None,
        answers: Iterable[str] = (),
    ) -> Shard:
        ids = {id_ for sample in finished for _, id_ in sample.calls} | set(answers)
        keys = {completion.verdict for sample in finished for completion in sample.completions} - {None}
        return Shard(
            spec=self._specs[run],
            snapshots={repo: self._snapshots[repo]} if repo in self._snapshots else {},
            generations=tuple(answers_of(self, ids)),
            verdicts=tuple(verdicts.find(self, [key for key in keys if key]).values()),
            finished=finished,
            attempt=attempt,
        )


def answers_of(store: Store, ids: Iterable[str]) -> list[StoredGeneration]:
    """Return the stored answers with these ids, and their prompts, in no particular order."""
    g = t.GENERATION.c
    query = select(*(column for column in g if column.name != "number"))
    with store.reading() as connection:
        rows = [
            row
            for part in parts(sorted(set(ids)))
            for row in connection.execute(query.where(g.id.in_(part))).mappings()
        ]
        texts = dict(prompt_texts(connection, (row["prompt_digest"] for row in rows)))
    return [StoredGeneration(**row, prompt=texts[row["prompt_digest"]]) for row in rows]


def answers_for(store: Store, spec: RunSpec, samples: Sequence[Sample]) -> list[StoredGeneration]:
    """Return the stored answers for these samples, unordered, in runs with the set and generator version of `spec`."""
    r, s, p, c, g = t.RUN.c, t.SAMPLE.c, t.PLANNED_FACT.c, t.CALL_FACT.c, t.GENERATION_FACT.c
    same = (r.generator == spec.generator, r.generator_version == spec.generator_version)
    runs = select(r.number).where(r.samples_digest == spec.samples_digest, *same)
    ids: set[str] = set()
    with store.reading() as connection:
        for part in parts([sample.id for sample in samples]):
            # Nest the queries, so that the database reads no table completely.
            keys = select(p.key).where(p.run.in_(runs), p.sample.in_(select(s.number).where(s.id.in_(part))))
            answers = select(c.generation).where(c.key.in_(keys))
            ids.update(connection.scalars(select(g.id).where(g.number.in_(answers))))
    return answers_of(store, ids)


def open_share(
    share: Share, folder: Path, sample_set: SampleSet, *, url: str | None = None
) -> AbstractContextManager[ShardStore]:
    """Open the store for a share of the runs over a sample set. Samples in the folder's existing shards are kept.

    Args:
        folder: folder of the shards, and of the database unless `url` is given; created if missing.
        url: URL of another database.

    Raises:
        InputFault: if the folder or the database cannot be used.
    """
    url = url or own_database(folder, share)
    entries = sample_set.manifest["repositories"]
    store = ShardStore(
        open_store(url),
        cut=lambda run, planned: units(run, share.of(planned)),
        deliver=functools.partial(write, folder),
        snapshots={name: entry["snapshot"] for name, entry in entries.items() if "snapshot" in entry},
        earlier=_shards_in(folder, sample_set.digest),
    )
    return contextlib.closing(store)


def _shards_in(folder: Path, set_digest: str) -> Earlier:
    by_run: dict[str, list[tuple[Path, ShardManifest]]] = defaultdict(list)
    for file in sorted(folder.glob(f"*{SUFFIX}")):
        for manifest in _sound(manifest_of, file):
            if manifest.spec.samples_digest == set_digest:
                by_run[manifest.run].append((file, manifest))

    def earlier(run: str, samples: Collection[str]) -> Iterator[Shard]:
        for file, manifest in by_run[run]:
            # A shard without samples may contain verdicts on samples of other shards.
            if not manifest.finished or not set(samples).isdisjoint(manifest.finished):
                yield from _sound(read, file)

    return earlier


def _sound(reader: Callable[[Path], R], file: Path) -> Iterator[R]:
    try:
        yield reader(file)
    except InputFault as fault:
        _LOG.warning("%s: %s; the shard's samples are repeated", fault.where, fault.what)


def own_database(folder: Path, share: Share) -> str:
    """Return the URL of a share's database in the folder of its shards; create the folder if missing."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return sqlite_url(folder / f"{share.index}-of-{share.count}.db")

"""`Store`: opens a database, appends rows, and looks up what runs need. It never changes a row.

With `open_reader`, a dashboard or report can read while another process writes. Only one process works on a run at a
time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TypeVar

from sqlalchemy import URL, Column, Connection, Engine, func, insert, select, text
from sqlalchemy.exc import IntegrityError

from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Sample
from ctxbench.harness.generators.base import Response
from ctxbench.harness.results import Load
from ctxbench.harness.run.spec import RunSpec, sampling_key
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.database import (
    explained,
    for_reading,
    locked,
    make_engine,
    name_of,
    read_url,
    reading_engine,
    run_lock,
    use_wal,
    with_others,
)
from ctxbench.harness.store.facts import add_prompts, append_finished, append_generations, append_verdicts
from ctxbench.harness.store.tables import check_schema, create_tables, schema_of
from ctxbench.harness.store.verdicts import append_links
from ctxbench.harness.store.write import (
    Finished,
    StoredConstruction,
    StoredFault,
    StoredGeneration,
    StoredVerdict,
    load,
    merge,
    parts,
    row_of,
)

T = TypeVar("T")
_TRIES = 3


def _last(connection: Connection, column: Column[int]) -> int:
    return connection.scalar(select(func.max(column))) or 0


class Store:
    """A database of results; thread-safe."""

    def __init__(self, engine: Engine, where: str) -> None:
        """Use a database engine whose tables exist. `open_store` creates the engine and the tables."""
        self._engine = engine
        self._turn = threading.Lock()
        self.where = where
        """Name of the database in messages, without a password."""

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees one state of the database and never blocks a writer."""
        with explained(self.where), self._engine.connect() as plain:
            connection = for_reading(plain)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def _writing(self, *, together: bool = False) -> Iterator[Connection]:
        """Yield a connection in a write transaction. With `together`, other processes may append to PostgreSQL too."""
        # Waiting threads get a Python lock at once. They would poll SQLite's lock with growing pauses.
        turn = contextlib.nullcontext() if together and self._engine.dialect.name == "postgresql" else self._turn
        with turn, explained(self.where), self._engine.connect() as plain:
            connection = with_others(plain) if together else plain
            with connection.begin():
                try:
                    yield connection
                except BaseException:
                    # An interrupt may leave psycopg in the middle of its pipeline, where it cannot roll back. The
                    # server rolls back when the connection ends.
                    if self._engine.dialect.name == "postgresql":
                        connection.invalidate()
                    raise

    def run_lock(self, run: str) -> AbstractContextManager[bool]:
        """Hold the lock of a run inside the context; yields the same value as `database.run_lock`.

        Raises:
            InputFault: if another process holds the lock.
        """
        return run_lock(self._engine, self.where, run)

    def add_run(self, spec: RunSpec, planned: Sequence[Sample], days: Mapping[str, date] = MappingProxyType({})) -> str:
        """Record a run and its samples, unless they are already stored; return the run's id."""
        id_ = spec.id
        run = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
        run |= {"id": id_, "sampling": sampling_key(spec.sampling), "sample_limit": run.pop("limit")}
        run["samples_after"] = None if (day := run.pop("after")) is None else day.isoformat()
        with self._writing() as connection:
            dated = [sample.id for sample in planned if sample.id in days]
            rows = [(spec.samples_digest, id_, days[id_].isoformat()) for id_ in dated]
            merge(connection, t.DATED, rows)
            number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == id_))
            if number is None:
                number = _last(connection, t.RUN.c.number) + 1
                connection.execute(insert(t.RUN), {**run, "number": number})
                self._plan(connection, number, spec.samples_digest, planned)
        return id_

    def _plan(self, connection: Connection, run: int, set_digest: str, planned: Sequence[Sample]) -> None:
        s, p = t.SAMPLE.c, t.PLANNED_FACT.c
        query = select(s.id, s.number).where(s.set_digest == set_digest)
        stored: dict[str, int] = dict(connection.execute(query).all())
        new = [sample for sample in planned if sample.id not in stored]
        stored |= {sample.id: at for at, sample in enumerate(new, _last(connection, s.number) + 1)}
        # Without references, which must not be stored.
        rows = [
            row_of(
                t.SAMPLE,
                sample,
                set_digest=set_digest,
                line=sample.cursor.line,
                col=sample.cursor.column,
                number=stored[sample.id],
            )
            for sample in new
        ]
        load(connection, t.SAMPLE, rows)
        added = [(run, stored[sample.id], ordinal) for ordinal, sample in enumerate(planned)]
        load(connection, t.PLANNED_FACT, [(key, *row) for key, row in enumerate(added, _last(connection, p.key) + 1)])

    def finished(self, run: str, among: Sequence[str] | None = None) -> frozenset[str]:
        """Return the ids of a run's samples with a result. With `among`, return only ids in `among`."""
        r = t.RESULT.c
        query = select(r.sample_id).where(r.run_id == run)
        queries = [query] if among is None else [query.where(r.sample_id.in_(part)) for part in parts(among)]
        with self.reading() as connection:
            return frozenset(id_ for part_query in queries for id_ in connection.scalars(part_query))

    def locked(self, runs: Collection[str]) -> set[str] | None:
        """Return the ids among `runs` that a process is working on; None if locks cannot be read."""
        with self.reading() as connection:
            return locked(self._engine, connection, runs)

    def start_attempt(self, run: str, isolation: str, *, load: Load | None = None, locked: bool = False) -> int:
        """Record the start of an attempt; return its number.

        Args:
            isolation: how strategies are isolated, and where tests run.
            load: concurrency of the attempt; None if no times are measured.
            locked: whether this process holds the run's lock until the attempt ends.
        """
        values = {"run_id": run, "started": time.time(), "isolation": isolation}
        values |= dataclasses.asdict(load) if load is not None else {}
        with self._writing() as connection:
            inserted = connection.execute(insert(t.ATTEMPT).values(**values, locked=int(locked)))
            return int(inserted.inserted_primary_key[0]) if inserted.inserted_primary_key else 0

    def end_attempt(self, attempt: int, *, reason: str, finished: int, missing: int) -> None:
        """Record the end of an attempt. `reason` is ``done``, ``faults``, ``interrupted`` or ``failed``."""
        row = {"attempt_id": attempt, "ended": time.time(), "reason": reason, "finished": finished, "missing": missing}
        with self._writing() as connection:
            connection.execute(insert(t.OUTCOME), row)

    def add_fault(self, attempt: int, fault: StoredFault) -> None:
        """Record why a sample is missing."""
        with self._writing() as connection:
            count = connection.scalar(select(func.count()).where(t.FAULT.c.attempt_id == attempt))
            load(connection, t.FAULT, [row_of(t.FAULT, fault, attempt_id=attempt, ordinal=count)])

    def add_construction(self, attempt: int, built: Iterable[StoredConstruction]) -> None:
        """Record the seconds to build the repositories' search structures. Call once per attempt."""
        rows = [row_of(t.CONSTRUCTION, stage, attempt_id=attempt, ordinal=at) for at, stage in enumerate(built)]
        with self._writing() as connection:
            load(connection, t.CONSTRUCTION, rows)

    def add_summaries(self, run: str, answers: Iterable[str]) -> None:
        """Record which stored answers summarise APIs for a run."""

        def added(connection: Connection) -> None:
            f, g, r = t.SUMMARISED_FACT.c, t.GENERATION_FACT.c, t.RUN.c
            number = connection.scalar(select(r.number).where(r.id == run))
            noted = set(connection.scalars(select(f.generation).where(f.run == number)))
            for part in parts(sorted(set(answers))):
                new = set(connection.scalars(select(g.number).where(g.id.in_(part)))) - noted
                load(connection, t.SUMMARISED_FACT, [(number, answer) for answer in sorted(new)])

        self.settle(added)

    def generations(self, ids: Iterable[str]) -> dict[str, Response]:
        """Return the stored answers with these ids, by id."""
        responses: dict[str, Response] = {}
        g, names = t.GENERATION.c, ("text", "finish", "tokens_in", "tokens_out", "seconds", "cached")
        query = select(g.id, *(g[name] for name in names))
        with self.reading() as connection:
            for part in parts(sorted(set(ids))):
                for id_, *answer in connection.execute(query.where(g.id.in_(part))):
                    responses[id_] = Response(**dict(zip(names, answer, strict=True)))
        return responses

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        """Append answers, except those that are already stored."""
        prompts = {generation.prompt_digest: generation.prompt for generation in generations}
        self.settle(
            lambda connection: append_generations(connection, generations, add_prompts(connection, prompts)),
            together=True,
        )

    def bits(self, coder: str, keys: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], float]:
        """Return a coder's stored costs in bits for `keys`, by (language, prompt digest, target digest)."""
        requested = set(keys)
        b = t.BITS.c
        query = select(b.language, b.prompt_digest, b.target_digest, b.bits).where(b.coder == coder)
        costs: dict[tuple[str, str, str], float] = {}
        with self.reading() as connection:
            for part in parts(sorted({prompt for _, prompt, _ in requested})):
                for language, prompt, target, value in connection.execute(query.where(b.prompt_digest.in_(part))):
                    costs[language, prompt, target] = value
        return {key: value for key, value in costs.items() if key in requested}

    def add_finished(self, run: str, coder: str, finished: Finished) -> bool:
        """Append one finished sample; return False if the sample is already stored."""
        return self.add_all_finished(run, coder, [finished]) == 1

    def add_all_finished(
        self,
        run: str,
        coder: str,
        finished: Iterable[Finished],
        *,
        generations: Iterable[StoredGeneration] = (),
        verdicts: Iterable[StoredVerdict] = (),
    ) -> int:
        """Append finished samples of a run in one transaction; return the number of new samples.

        Args:
            coder: spec and version of the model that measured the bits.
            generations: answers to the samples' requests. Stored answers are skipped.
            verdicts: verdicts on the samples' completions. Stored verdicts are skipped.
        """
        samples, answers, judgements = list(finished), list(generations), list(verdicts)

        def added(connection: Connection) -> int:
            append_verdicts(connection, judgements)
            return append_finished(connection, run, coder, samples, answers)

        return self.settle(added, together=True)

    def link_verdicts(self, run: str, sample: str, verdicts: Mapping[int, StoredVerdict]) -> int:
        """Link verdicts (by completion index) and their scores to a finished sample; return the number of new links."""
        return self.settle(lambda connection: append_links(connection, run, sample, verdicts))

    def settle(self, append: Callable[[Connection], T], *, together: bool = False) -> T:
        """Run `append` in a transaction; retry if an equal row was stored. `together` lets other processes append."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(IntegrityError), self._writing(together=together) as connection:
                return append(connection)
        with self._writing(together=together) as connection:
            return append(connection)


def open_store(url: str, *, create: bool = True) -> Store:
    """Open a database, and create its tables if it is empty. Without `create`, a SQLite file must exist.

    Raises:
        InputFault: if the URL, user, password or database name is wrong, the driver is missing, the file is not a
            database, or another version created it.
        MachineFault: if the disk is full or the server does not answer.
    """

    def prepare(engine: Engine, where: str) -> None:
        with engine.begin() as connection:
            create_tables(connection, where=where)
        use_wal(engine)

    return _opened(url, functools.partial(make_engine, create=create), prepare)


def _opened(url: str, make: Callable[[URL], Engine], prepare: Callable[[Engine, str], None]) -> Store:
    with explained(url.partition("@")[2] or url):
        parsed = read_url(url)
        where = name_of(parsed)
    with explained(where):
        engine = make(parsed)
        try:
            prepare(engine, where)
        except BaseException:
            engine.dispose()
            raise
    return Store(engine, where)


_SNAPSHOT = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text ELSE pg_current_snapshot()::text END
"""
"""Query for the state of a PostgreSQL server: its visible transactions, or the log position of a standby."""


def open_reader(url: str) -> Store:
    """Open a database for reading.

    Raises:
        InputFault: if the URL, user, password or database name is wrong, the driver or the file is missing, or the
            database belongs to another program or version.
        MachineFault: if the server does not answer.
    """
    return _opened(url, reading_engine, _check)


def _check(engine: Engine, where: str) -> None:
    with engine.connect() as connection:
        number = schema_of(connection)
    if number is None:
        raise InputFault(
            "the database contains no ctxbench results", where=where, cure="choose another database with --db"
        )
    check_schema(number, where=where)


def exists(url: str) -> bool:
    """Return whether the file of a SQLite database exists; always True for servers."""
    parsed = read_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(str(parsed.database)).is_file()


def which(url: str) -> str:
    """Return a SQLite file's inode, which changes when the file is replaced; empty for a server or a missing file."""
    parsed = read_url(url)
    path = Path(str(parsed.database))
    return str(path.stat().st_ino) if parsed.get_backend_name() == "sqlite" and path.is_file() else ""


def version(store: Store, url: str) -> str:
    """Return a text that changes when rows are added. The call takes equally long for databases of any size.

    On a PostgreSQL server, changes in other databases may also change the text.

    Raises:
        InputFault: if the database file no longer exists.
    """
    parsed = read_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _file_version(Path(str(parsed.database)))
    with store.reading() as connection:
        return str(connection.scalar(text(_SNAPSHOT)))


def _file_version(path: Path) -> str:
    log = path.with_name(f"{path.name}-wal")
    try:
        stats = [file.stat() for file in (path, log) if file == path or file.exists()]
    except OSError as error:
        cure = "run `ctxbench quickstart` or `ctxbench run`"
        raise InputFault(f"the database cannot be read ({error.strerror})", where=str(path), cure=cure) from error
    return f"{stats[0].st_ino}:" + "/".join(f"{stat.st_mtime_ns}.{stat.st_size}" for stat in stats)

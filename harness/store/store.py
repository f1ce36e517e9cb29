"""`Store`: opens the database, appends rows, looks up what the runner needs. Never changes a row.

Readers (a dashboard, a report) may point at a database that somebody else's run is filling: `open_reader` neither waits
for that run nor keeps it waiting.

One process works at a run at a time (`harness.store.database`). Whoever stores a row that is there already, such as an
answer that another run has asked for meanwhile, drops its own copy.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TypeVar

from sqlalchemy import Column, Connection, Engine, func, insert, select, text
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
    append,
    append_days,
    clean,
    load,
    parts,
    sample_row,
)

T = TypeVar("T")
_TRIES = 3


def _last(connection: Connection, column: Column[int]) -> int:
    """Return the last number that a column gave."""
    return connection.scalar(select(func.max(column))) or 0


class Store:
    """A database of results. Safe to use from many threads."""

    def __init__(self, engine: Engine, where: str) -> None:
        """Use an engine of a database that has the tables; see `open_store`."""
        self._engine = engine
        self._turn = threading.Lock()
        self.where = where
        """The database, for messages; without a password."""

    def __enter__(self) -> Store:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of the database and keeps no writer waiting."""
        with explained(self.where), self._engine.connect() as plain:
            connection = for_reading(plain)
            with connection.begin():
                yield connection

    @contextlib.contextmanager
    def _writing(self, *, together: bool = False) -> Iterator[Connection]:
        """Give a connection for a transaction that writes alone, or together with others where the database can."""
        # A lock of our own is handed on at once; SQLite's is asked for again and again, with pauses that grow.
        turn = contextlib.nullcontext() if together and self._engine.dialect.name == "postgresql" else self._turn
        with turn, explained(self.where), self._engine.connect() as plain:
            connection = with_others(plain) if together else plain
            with connection.begin():
                try:
                    yield connection
                except BaseException:
                    # An interrupt may leave psycopg in the middle of its pipeline, where nothing can be rolled back.
                    # The server does that when the connection ends.
                    if self._engine.dialect.name == "postgresql":
                        connection.invalidate()
                    raise

    def run_lock(self, run: str) -> AbstractContextManager[bool]:
        """Hold the lock on a run; gives whether it is held.

        Raises:
            InputFault: if another process holds it.
        """
        return run_lock(self._engine, self.where, run)

    def add_run(self, spec: RunSpec, planned: Sequence[Sample], days: Mapping[str, date] = MappingProxyType({})) -> str:
        """Note a run and its samples, unless they are there already; return the run's id.

        Args:
            spec: what decides it.
            planned: its samples, in order.
            days: sample -> the day of its code; noted also of samples that are there already.
        """
        id_ = spec.id
        run = {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec)}
        run |= {"id": id_, "sampling": sampling_key(spec.sampling), "sample_limit": run.pop("limit")}
        run["samples_after"] = None if (day := run.pop("after")) is None else day.isoformat()
        with self._writing() as connection:
            append_days(connection, spec.samples_digest, {sample.id: days.get(sample.id) for sample in planned})
            number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == id_))
            if number is None:
                number = _last(connection, t.RUN.c.number) + 1
                connection.execute(insert(t.RUN), {**run, "number": number})
                self._plan(connection, number, spec.samples_digest, planned)
        return id_

    def _plan(self, connection: Connection, run: int, set_digest: str, planned: Sequence[Sample]) -> None:
        """Plan the samples of a new run, by its number; their keys follow each other."""
        s, p = t.SAMPLE.c, t.PLANNED_FACT.c
        query = select(s.id, s.number).where(s.set_digest == set_digest)
        stored: dict[str, int] = dict(connection.execute(query).all())
        new = [sample for sample in planned if sample.id not in stored]
        stored |= {sample.id: at for at, sample in enumerate(new, _last(connection, s.number) + 1)}
        append(connection, t.SAMPLE, [sample_row(set_digest, sample) | {"number": stored[sample.id]} for sample in new])
        added = [(run, stored[sample.id], ordinal) for ordinal, sample in enumerate(planned)]
        rows = [(key, *row) for key, row in enumerate(added, _last(connection, p.key) + 1)]
        load(connection, t.PLANNED_FACT, ("key", "run", "sample", "ordinal"), rows)

    def finished(self, run: str, among: Sequence[str] | None = None) -> frozenset[str]:
        """Return the ids of the samples that a run has results for; of these, if they are given."""
        r = t.RESULT.c
        query = select(r.sample_id).where(r.run_id == run)
        queries = [query] if among is None else [query.where(r.sample_id.in_(part)) for part in parts(among)]
        with self.reading() as connection:
            return frozenset(id_ for part_query in queries for id_ in connection.scalars(part_query))

    def locked(self, runs: Collection[str]) -> set[str] | None:
        """Return which of these runs a process works at; None where nobody can tell."""
        with self.reading() as connection:
            return locked(self._engine, connection, runs)

    def start_attempt(self, run: str, isolation: str, *, load: Load | None = None, locked: bool = False) -> int:
        """Note that work on a run begins; return the attempt's number.

        Args:
            run: its id.
            isolation: how strategies are kept apart, and where tests run.
            load: how much is done at once; None if nothing is measured.
            locked: whether this process holds the lock on the run until the attempt ends.
        """
        values = {"run_id": run, "started": time.time(), "isolation": isolation}
        values |= dataclasses.asdict(load) if load is not None else {}
        with self._writing() as connection:
            inserted = connection.execute(insert(t.ATTEMPT).values(**values, locked=int(locked)))
            return int(inserted.inserted_primary_key[0]) if inserted.inserted_primary_key else 0

    def end_attempt(self, attempt: int, *, reason: str, finished: int, missing: int) -> None:
        """Note that it ended: ``done``, ``faults``, ``interrupted`` or ``failed``."""
        row = {"attempt_id": attempt, "ended": time.time(), "reason": reason, "finished": finished, "missing": missing}
        with self._writing() as connection:
            connection.execute(insert(t.OUTCOME), row)

    def add_fault(self, attempt: int, fault: StoredFault) -> None:
        """Note why a sample is missing."""
        with self._writing() as connection:
            count = connection.scalar(select(func.count()).where(t.FAULT.c.attempt_id == attempt))
            row = {key: clean(value) for key, value in dataclasses.asdict(fault).items()}
            connection.execute(insert(t.FAULT), {"attempt_id": attempt, "ordinal": count, **row})

    def add_construction(self, attempt: int, built: Iterable[StoredConstruction]) -> None:
        """Note what was made of repositories in an attempt, and how long that took; once an attempt."""
        content = [
            {"attempt_id": attempt, "ordinal": ordinal, **dataclasses.asdict(construction)}
            for ordinal, construction in enumerate(built)
        ]
        with self._writing() as connection:
            append(connection, t.CONSTRUCTION, content)

    def add_summaries(self, run: str, answers: Iterable[str]) -> None:
        """Note which stored answers summarised APIs for a run; those that are noted already stay."""

        def added(connection: Connection) -> None:
            f, g, r = t.SUMMARISED_FACT.c, t.GENERATION_FACT.c, t.RUN.c
            number = connection.scalar(select(r.number).where(r.id == run))
            noted = set(connection.scalars(select(f.generation).where(f.run == number)))
            for part in parts(sorted(set(answers))):
                new = set(connection.scalars(select(g.number).where(g.id.in_(part)))) - noted
                load(connection, t.SUMMARISED_FACT, ("run", "generation"), [(number, answer) for answer in sorted(new)])

        self.settle(added)

    def generations(self, ids: Iterable[str]) -> dict[str, Response]:
        """Return the stored answers among `ids`."""
        responses: dict[str, Response] = {}
        g, names = t.GENERATION.c, ("text", "finish", "tokens_in", "tokens_out", "seconds", "cached")
        query = select(g.id, *(g[name] for name in names))
        with self.reading() as connection:
            for part in parts(sorted(set(ids))):
                for id_, *answer in connection.execute(query.where(g.id.in_(part))):
                    responses[id_] = Response(**dict(zip(names, answer, strict=True)))
        return responses

    def add_generations(self, generations: Sequence[StoredGeneration]) -> None:
        """Append answers; those that are there already stay as they are."""
        prompts = {generation.prompt_digest: generation.prompt for generation in generations}
        self.settle(
            lambda connection: append_generations(connection, generations, add_prompts(connection, prompts)),
            together=True,
        )

    def bits(self, coder: str, keys: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], float]:
        """Return the stored costs among (language, prompt digest, target digest)."""
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
        """Append one finished sample; return False if it was there already."""
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
        """Append finished samples of one run in one transaction: a batch, or all of a shard.

        Args:
            run: its id.
            coder: what priced their contexts.
            finished: the samples.
            generations: answers that they name and that may not be stored yet.
            verdicts: likewise.

        Returns:
            How many samples were not there already; those that were stay as they are.
        """
        samples, answers, judgements = list(finished), list(generations), list(verdicts)

        def added(connection: Connection) -> int:
            append_verdicts(connection, judgements)
            return append_finished(connection, run, coder, samples, answers)

        return self.settle(added, together=True)

    def link_verdicts(self, run: str, sample: str, verdicts: Mapping[int, StoredVerdict]) -> int:
        """Give completions (by index) of one finished sample their verdicts and scores; return how many were new."""
        return self.settle(lambda connection: append_links(connection, run, sample, verdicts))

    def settle(self, append: Callable[[Connection], T], *, together: bool = False) -> T:
        """Run an appending function in a transaction, again if another process was faster with the same row.

        Args:
            append: what to run.
            together: whether it may append while others do, because it passes over what they append meanwhile.
        """
        for _ in range(_TRIES - 1):
            with contextlib.suppress(IntegrityError), self._writing(together=together) as connection:
                return append(connection)
        with self._writing(together=together) as connection:
            return append(connection)


def open_store(url: str, *, create: bool = True) -> Store:
    """Open a database, and make its tables if it is empty.

    Args:
        url: a SQLAlchemy URL.
        create: whether to make a SQLite file that is missing.

    Raises:
        InputFault: if the URL, its user, password or database is wrong, its driver is missing, the file is no
            database or another version made it.
        MachineFault: if the disk is full or the server does not answer.
    """
    with explained(url.partition("@")[2] or url):
        parsed = read_url(url)
        where = name_of(parsed)
    with explained(where):
        engine = make_engine(parsed, create=create)
        try:
            with engine.begin() as connection:
                create_tables(connection, where=where)
            use_wal(engine)
        except BaseException:
            engine.dispose()
            raise
    return Store(engine, where)


_SNAPSHOT = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text ELSE pg_current_snapshot()::text END
"""
"""A snapshot names the transactions whose rows are seen; that of a standby does not name those that go on."""


def open_reader(url: str) -> Store:
    """Open a database for reading.

    Args:
        url: a SQLAlchemy URL.

    Raises:
        InputFault: if the URL, its user, password or database is wrong, its driver is missing, there is no file, the
            file is no database of ours, or its schema is not this version's.
        MachineFault: if the server does not answer.
    """
    with explained(url.partition("@")[2] or url):
        parsed = read_url(url)
        where = name_of(parsed)
    with explained(where):
        engine = reading_engine(parsed)
        try:
            _check(engine, where)
        except BaseException:
            engine.dispose()
            raise
    return Store(engine, where)


def _check(engine: Engine, where: str) -> None:
    """Refuse a schema that our questions do not fit."""
    with engine.connect() as connection:
        number = schema_of(connection)
    if number is None:
        raise InputFault("holds no results of this ctxbench", where=where, cure="choose another database with --db")
    check_schema(number, where=where)


def exists(url: str) -> bool:
    """Return whether there is a database to read; of a server nobody knows before asking it."""
    parsed = read_url(url)
    return parsed.get_backend_name() != "sqlite" or Path(str(parsed.database)).is_file()


def which(url: str) -> str:
    """Return what tells one database under a URL from the next: a SQLite file may be removed and made again."""
    parsed = read_url(url)
    path = Path(str(parsed.database))
    return str(path.stat().st_ino) if parsed.get_backend_name() == "sqlite" and path.is_file() else ""


def version(store: Store, url: str) -> str:
    """Return a text that changes whenever rows were added; cheap, whatever the size of the database.

    Of a SQLite file: when it and its log were last written, and how far. Of PostgreSQL: which transactions are seen,
    those of other databases of the server included; of its standby: how far the log was replayed.

    Raises:
        InputFault: if the file is gone.
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
        raise InputFault(f"cannot be read ({error.strerror})", where=str(path), cure=cure) from error
    return f"{stats[0].st_ino}:" + "/".join(f"{stat.st_mtime_ns}.{stat.st_size}" for stat in stats)

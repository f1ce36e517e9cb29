"""Opens SQLite and PostgreSQL connections, turns their errors into one-line faults, and locks runs."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import gc
import hashlib
import logging
import os
import re
import socket
import sqlite3
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, Select, create_engine, event, exc, make_url, text
from sqlalchemy.exc import SQLAlchemyError

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault
from ctxbench.bench.files import explained as explained_file

_LOG = logging.getLogger(__name__)
_BUSY_MS = 60_000
_PRAGMAS = (
    f"busy_timeout={_BUSY_MS}",
    "foreign_keys=ON",
    # In WAL mode, NORMAL never corrupts the file, and a killed process loses nothing. A power cut may lose the last
    # samples, which the next run repeats. FULL would flush the disk for every sample.
    "synchronous=NORMAL",
)
_CONNECT_S = 20
_LOCK = int.from_bytes(b"ctxbench")
"""Key of the advisory lock that writers to a PostgreSQL database take. The lock is separate for each database."""
_READS = "ctxbench_reads"
_WITH_OTHERS = "ctxbench_with_others"


def make_engine(url: URL, *, create: bool) -> Engine:
    """Return a SQLAlchemy engine that reads and writes. For SQLite, create the file's folder if it is missing.

    Raises:
        InputFault: if the database is in memory or a folder, or the file is missing and `create` is False.
    """
    if url.get_backend_name() == "postgresql":
        return _postgresql(url)
    if url.database in (None, "", ":memory:") or "mode=memory" in (url.database or ""):
        raise InputFault("an in-memory database loses all results", where=str(url), cure="give a file: sqlite:///FILE")
    path = _file_of(url)
    if not create and not path.exists():
        raise InputFault("no results yet", where=str(path), cure="run `ctxbench run` or `ctxbench quickstart` first")
    with explained_file(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(url)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def reading_engine(url: URL) -> Engine:
    """Return a SQLAlchemy engine that only reads.

    Raises:
        InputFault: if the file is missing or is a folder.
    """
    if url.get_backend_name() == "postgresql":
        engine = _postgresql(url)
        # Set this per transaction: a default would be lost when the pool resets a connection after `for_reading`.
        event.listen(engine, "begin", _only_read)
        return engine
    path = _file_of(url)
    if not path.is_file():
        raise InputFault("no results yet", where=str(path), cure="run `ctxbench quickstart` or `ctxbench run` first")
    # Use no pool, because each new connection must check whether a log exists.
    engine = create_engine(url, creator=lambda: _open_to_read(path.absolute()), poolclass=NullPool)
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin_reading)
    return engine


def _file_of(url: URL) -> Path:
    path = Path(str(url.database))
    if path.is_dir():
        raise InputFault("the path is a folder", where=str(path), cure="give a file: sqlite:///FILE")
    return path


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a SQLite file for reading, even in a folder without write permission.

    To read a database, SQLite creates a log beside the file. If SQLite cannot create the log, usually no process is
    writing to the database, and the file is complete.
    """
    name = f"file:{quote(str(path))}"
    # SQLAlchemy passes a connection between threads, but only one thread uses it at a time.
    connection = sqlite3.connect(f"{name}?mode=ro", uri=True, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except sqlite3.Error as error:
        connection.close()
        cannot = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
        if not isinstance(error, sqlite3.OperationalError) or error.sqlite_errorcode & 0xFF not in cannot:
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            _remark(str(path))
        return sqlite3.connect(f"{name}?immutable=1", uri=True, check_same_thread=False)
    return connection


@functools.cache
def _remark(path: str) -> None:
    _LOG.warning("%s: the log of the database cannot be read, so the newest results may be missing", path)


def _postgresql(url: URL) -> Engine:
    if url.get_driver_name() == "psycopg":
        # Without a timeout, a host that drops packets would block for minutes. PGCLIENTENCODING may name any encoding.
        url = url.update_query_dict({"connect_timeout": str(_CONNECT_S), **url.query, "client_encoding": "utf8"})
    # Do not rely on the server's default: after locking, a statement must see what other processes have committed.
    engine = create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    event.listen(engine, "begin", _lock)
    return engine


def for_reading(connection: Connection) -> Connection:
    """Return the connection with options for reading, so that all reads of a transaction see the same state."""
    options: dict[str, Any] = {_READS: True}
    if connection.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    return connection.execution_options(**options)


def with_others(connection: Connection) -> Connection:
    """Return the connection in the mode that lets several processes append to PostgreSQL at the same time."""
    return connection.execution_options(**{_WITH_OTHERS: True})


def for_locks(connection: Connection) -> Connection:
    """Return the connection in autocommit mode, for locks that last as long as the session."""
    return connection.execution_options(**{_READS: True, "isolation_level": "AUTOCOMMIT"})


def read_url(text: str) -> URL:
    """Parse a database URL. ``postgresql://`` gets the driver that ctxbench installs.

    Raises:
        InputFault: if the database is neither SQLite nor PostgreSQL.
    """
    url = make_url(text)
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise InputFault("the database is neither SQLite nor PostgreSQL", where=name_of(url), cure=_URL)
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def name_of(url: URL) -> str:
    """Return the name of a database for messages: SQLite's file, or the URL without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.difference_update_query(["password", "sslpassword"]).render_as_string()


def _set_up(connection: Any, _: object) -> None:
    # Otherwise Python's driver would begin transactions itself, too late for `_begin` to take the lock.
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()  # SQLAlchemy would leave the connection open
        raise
    cursor.close()


def use_wal(engine: Engine) -> None:
    """Switch a SQLite file to write-ahead logging, so that readers and the writer do not block each other.

    The file keeps this mode. Call this only after checking the schema, so that no other program's file is changed.
    """
    if engine.dialect.name != "sqlite":
        return
    with engine.connect() as connection:
        raw: Any = connection.connection.dbapi_connection
        if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            # Another process that opens the same new file may be switching it too.
            with contextlib.suppress(sqlite3.OperationalError):
                raw.execute("PRAGMA journal_mode=WAL")


def _begin(connection: Connection) -> None:
    """Take the write lock when a transaction begins, so that no row changes between a lookup and a write."""
    reads = connection.get_execution_options().get(_READS, False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _only_read(connection: Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")


def _lock(connection: Connection) -> None:
    """Take PostgreSQL's write lock, so that writers cannot deadlock. Processes that append together share the lock."""
    options = connection.get_execution_options()
    if not options.get(_READS, False):
        shared = "_shared" if options.get(_WITH_OTHERS, False) else ""
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_BUSY_MS}")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock{shared}({_LOCK})")


class Unwritable(InputFault):
    """Raised when ctxbench must write to a read-only database."""


_URL = "write it as sqlite:///FILE or postgresql://USER@HOST/NAME"
_AGAIN = "then run the same command again; finished samples are kept"
_SERVER = "check the host and port, and that the server runs"
_CAUSES: tuple[tuple[str, type[CtxbenchError], str, str], ...] = (
    # A pattern for the database's message in lower case, then the fault's class, message and cure.
    (
        "file is not a database",
        InputFault,
        "the file is not a database",
        "choose another file with --db sqlite:///FILE",
    ),
    ("malformed", InputFault, "the database is damaged", "move it away, or restore a copy"),
    (
        "unable to open database file",
        InputFault,
        "the database cannot be opened",
        "check that its folder exists and is writable",
    ),
    ("readonly database", Unwritable, "the database cannot be written", "check its owner, or choose another --db"),
    ("is full|no space left", MachineFault, "the disk is full", f"free some space, {_AGAIN}"),
    ("disk i/o error", MachineFault, "the disk cannot be written (full or defective)", f"repair the disk, {_AGAIN}"),
    (
        "is locked|lock timeout",
        MachineFault,
        "another process keeps the database locked",
        f"wait for that process to end, {_AGAIN}",
    ),
    ("no such table", InputFault, "the database lacks a table of ctxbench", "move it away, or restore a copy"),
    # PostgreSQL
    (
        "password authentication failed|no password supplied|no pg_hba.conf entry",
        InputFault,
        "the server refused the user or password",
        "write them as postgresql://USER:PASSWORD@HOST/NAME",
    ),
    (
        'database ".*" does not exist',
        InputFault,
        "the server has no such database",
        "create it with `createdb --encoding=UTF8 --template=template0 NAME`, or correct the name",
    ),
    (
        "permission denied",
        InputFault,
        "this user may not create or use tables",
        "run `GRANT CREATE, USAGE ON SCHEMA public TO USER`, or create the database with the user as its owner",
    ),
    ("value too long", InputFault, "a name is too long for its database column", "choose a shorter name"),
    ("connection refused|is the server running|timeout expired", MachineFault, "the server does not answer", _SERVER),
    ("failed to resolve host|could not translate host", MachineFault, "the host does not exist", _SERVER),
    (
        "server closed the connection|terminating connection|connection is lost|connection is closed",
        MachineFault,
        "the server ended the connection",
        f"check that the server runs, {_AGAIN}",
    ),
)


@contextlib.contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn errors from SQLAlchemy and the driver inside the context into faults, except `IntegrityError`."""
    try:
        yield
    except exc.IntegrityError:
        raise
    except exc.NoSuchModuleError:
        raise InputFault("this kind of database is not supported", where=where, cure=_URL) from None
    except exc.ArgumentError:
        raise InputFault("the value is not a database URL", where=where, cure=_URL) from None
    except ModuleNotFoundError as error:
        postgres = (error.name or "").startswith("psycopg")
        cure = "pip install 'ctxbench[postgres]'" if postgres else f"pip install {error.name}"
        raise InputFault(f"the database driver {error.name} is not installed", where=where, cure=cure) from None
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise _fault_of(error, where) from error


def _fault_of(error: Exception, where: str) -> CtxbenchError:
    message = str(getattr(error, "orig", None) or error)
    for words, kind, what, cure in _CAUSES:
        if re.search(words, message.lower()):
            return kind(what, where=where, cure=cure)
    return MachineFault(
        f"the database reports: {message}"[:300], where=where, cure=f"correct the reported fault, {_AGAIN}"
    )


def fetched(connection: Connection, query: Select[Any], **parameters: Any) -> list[tuple[Any, ...]]:
    """Return all rows of `query` as plain tuples, for speed. All columns must be texts, integers or floats."""
    result = connection.execute(query, parameters)
    cursor: Any = result.cursor
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows


@contextlib.contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection inside the context. It runs often while a million rows are read, but finds no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_TRIES, _PAUSE = 5, 0.1
"""Number of attempts to take a file lock, and seconds between them. A process that checks a lock holds it briefly."""
_KEEP_ALIVE = ("tcp_keepalives_idle = 30", "tcp_keepalives_interval = 10", "tcp_keepalives_count = 3")
"""Settings that make PostgreSQL release the locks of a vanished machine after one minute instead of hours."""
_HOLDERS = """
    SELECT (l.classid::bigint << 32 | l.objid::bigint) AS at, a.application_name
    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@contextlib.contextmanager
def run_lock(engine: Engine, where: str, run: str) -> Iterator[bool]:
    """Hold the lock of a run inside the context. Yields True, or False if the file system does not allow the lock.

    Raises:
        InputFault: if another process holds the lock; the message names that process, if known.
        MachineFault: if the server does not answer.
    """
    with contextlib.ExitStack() as stack:
        if engine.dialect.name == "postgresql":
            with explained(where):
                session = stack.enter_context(_session(engine))
                _lock_on_server(session, run)
            yield True
        else:
            file = _open(_folder(engine) / run)
            if file is not None:
                stack.callback(os.close, file)
            yield file is not None and _lock_file(file, run)


def locked(engine: Engine, connection: Connection, runs: Collection[str]) -> set[str] | None:
    """Return the ids of the locked runs among `runs`, or None if locks cannot be read.

    Locks cannot be read on a PostgreSQL standby, in a copy of a SQLite database without its lock folder, or on a file
    system without locks.
    """
    if engine.dialect.name == "postgresql":
        if connection.scalar(text("SELECT pg_is_in_recovery()")):
            return None
        numbers = set(connection.scalars(text(_HOLDERS)))
        return {run for run in runs if _number(run) in numbers}
    if not _folder(engine).is_dir():
        return None
    try:
        return {run for run in runs if _is_locked(_folder(engine) / run)}
    except OSError:
        return None


def _folder(engine: Engine) -> Path:
    return Path(f"{engine.url.database}-locks")


def _open(path: Path) -> int | None:
    try:
        path.parent.mkdir(exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def _lock_file(file: int, run: str) -> bool:
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                raise _refusal(run, os.pread(file, 200, 0).decode("utf-8", "replace")) from None
            time.sleep(_PAUSE)
        except OSError:
            return False
        else:
            os.ftruncate(file, 0)
            os.pwrite(file, _own_name().encode(), 0)
            return True
    return False


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


@contextlib.contextmanager
def _session(engine: Engine) -> Iterator[Connection]:
    session = for_locks(engine.connect())
    try:
        for setting in _KEEP_ALIVE:
            session.exec_driver_sql(f"SET {setting}")
        session.execute(text("SELECT set_config('application_name', :name, false)"), {"name": _own_name()})
        yield session
    finally:
        with contextlib.suppress(SQLAlchemyError):
            session.detach()
        session.close()


def _lock_on_server(session: Connection, run: str) -> None:
    if not session.scalar(text("SELECT pg_try_advisory_lock(:number)"), {"number": _number(run)}):
        holders: dict[int, str] = {row.at: row.application_name for row in session.execute(text(_HOLDERS))}
        raise _refusal(run, holders.get(_number(run)) or "")


def _refusal(run: str, holder: str) -> InputFault:
    return InputFault(
        f"{holder.strip() or 'another process'} is working on this run",
        where=run,
        cure="wait until it ends, or stop it; several machines share a run with --engine ray or --shard",
    )


def _own_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _number(run: str) -> int:
    """Return the number of a run's lock: 62 bits of a hash, so that two runs practically never share a number."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8]) >> 2

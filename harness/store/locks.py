"""A lock on a run: one process works at it at a time, and a reader can ask whether any does.

The system keeps the lock, so it ends with its process, however that ends: nothing is left to clean up, and no clock
says who is alive. A suspended machine keeps its locks. Beside SQLite a lock is an open file in the folder
``DATABASE-locks``; on PostgreSQL it is an advisory lock of a session.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store.engine import explained, for_locks

_TRIES, _PAUSE = 5, 0.1
"""A reader that asks for a lock holds it for a moment: a process that wants it tries again after so many seconds."""
_KEEP_ALIVE = ("tcp_keepalives_idle = 30", "tcp_keepalives_interval = 10", "tcp_keepalives_count = 3")
"""A server frees what a machine that is gone held after a minute instead of hours."""
_HOLDERS = """
    SELECT (l.classid::bigint << 32 | l.objid::bigint) AS at, a.application_name
    FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@contextlib.contextmanager
def run_lock(engine: Engine, where: str, run: str) -> Iterator[bool]:
    """Hold the lock on a run.

    Args:
        engine: of the database with the run.
        where: the database, for messages.
        run: the run's id.

    Yields:
        Whether it is held; False where the file system has no locks.

    Raises:
        InputFault: if another process holds it; the message names the process.
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
    """Return which of these runs a process holds the lock on; None where nobody can tell.

    Nobody can tell on a standby of PostgreSQL, in a copy of a SQLite database without its locks, and on a file system
    that has no locks.
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
    """Begin a session of its own; it ends with its locks, and does not go back to the pool."""
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
        f"{holder.strip() or 'another process'} works at this run",
        where=run,
        cure="wait until it ends, or stop it; several machines share a run with --engine ray or --shard",
    )


def _own_name() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _number(run: str) -> int:
    """Return the number of a run's lock: one of so many that two runs never share it."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:8]) >> 2

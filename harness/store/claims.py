"""Claims: which piece of work is whose, while several processes do the same run on the same database.

A claim is a lock that the system keeps and not a row: it ends with its process, however that ends, so that nothing is
left to clean up and no clock says who is alive. Claims only save work. What is stored is right without them, and where
there are none everybody does everything.

A whole attempt is claimed as well, by the process that makes it, for as long as it lives: a reader asks for that claim
(`Store.claimed`) and knows whether the attempt goes on. The claim costs nothing while it is held; a suspended machine
keeps it, and one that a server gave up meanwhile is taken again with the next question.

A piece is claimed first and looked up in the store afterwards: what its last holder did is seen then.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import threading
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sqlalchemy import BigInteger, Connection, Engine, TextClause, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ctxbench.harness.store.engine import explained, for_locks

_SET, _GET = getattr(fcntl, "F_OFD_SETLK", None), getattr(fcntl, "F_OFD_GETLK", None)
"""Sets a lock of an open file and not of a process, which would lose all of them with any other handle it closes; and
says whether somebody has set one."""
_FLOCK = "hhqqi4x"
"""The fields of the system's `struct flock`."""
_KEEP_ALIVE = ("tcp_keepalives_idle = 30", "tcp_keepalives_interval = 10", "tcp_keepalives_count = 3")
"""A server frees what a machine that is gone held after a minute instead of hours."""
_NUMBERS = bindparam("numbers", type_=ARRAY(BigInteger))
_TAKE = text("SELECT at FROM unnest(:numbers) AS at WHERE pg_try_advisory_lock(at)").bindparams(_NUMBERS)
_LOCKED = text("""
    SELECT at FROM unnest(:numbers) AS at JOIN pg_locks ON locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = at
""").bindparams(_NUMBERS)
_GIVE = text("SELECT at FROM unnest(:numbers) AS at WHERE pg_advisory_unlock(at)").bindparams(_NUMBERS)


class Claims(Protocol):
    """The claims of one process. Safe to use from many threads, each of which claims what no other one does."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim what nobody else has claimed; return it. Does not wait."""
        ...

    def release(self, keys: Collection[str]) -> None:
        """Give back what was claimed."""
        ...


class Unshared:
    """Claims where nobody else can work: everything is there for the taking."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Return all of them."""
        return set(keys)

    def release(self, keys: Collection[str]) -> None:
        """Do nothing."""


class FileClaims:
    """Claims as locked bytes of an empty file beside the database."""

    def __init__(self, path: Path) -> None:
        """Open the file; it is made if it is missing, and stays."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim what nobody else has claimed; return it."""
        return {key for key in keys if self._set(fcntl.F_WRLCK, key)}

    def release(self, keys: Collection[str]) -> None:
        """Give back what was claimed."""
        for key in keys:
            self._set(fcntl.F_UNLCK, key)

    def close(self) -> None:
        """Give back everything."""
        os.close(self._file)

    def _set(self, kind: int, key: str) -> bool:
        """Lock or unlock a byte; return False if somebody else has locked it."""
        try:
            fcntl.fcntl(self._file, _SET or 0, struct.pack(_FLOCK, kind, os.SEEK_SET, _number(key), 1, 0))
        except OSError as error:
            # Some network file systems have no locks: there everybody does everything.
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        return True


class ServerClaims:
    """Claims as advisory locks of one session of a PostgreSQL server."""

    def __init__(self, engine: Engine, where: str) -> None:
        """Begin a session; `where` is the database, for messages."""
        self._engine, self._where, self._turn = engine, where, threading.Lock()
        self._mine: set[int] = set()
        self._session = self._begin()

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim what nobody else has claimed; return it.

        Raises:
            MachineFault: if the server does not answer.
        """
        numbers = {_number(key): key for key in keys}
        locked = self._ask(_TAKE, list(numbers))
        self._mine.update(locked)
        return {numbers[number] for number in locked}

    def release(self, keys: Collection[str]) -> None:
        """Give back what was claimed.

        Raises:
            MachineFault: if the server does not answer.
        """
        numbers = [_number(key) for key in keys]
        self._mine.difference_update(numbers)
        self._ask(_GIVE, numbers)

    def close(self) -> None:
        """Give back everything: the session ends and does not go back to the pool."""
        with contextlib.suppress(SQLAlchemyError):
            self._session.detach()
        self._session.close()

    def _begin(self) -> Connection:
        session = for_locks(self._engine.connect())
        for setting in _KEEP_ALIVE:
            session.exec_driver_sql(f"SET {setting}")
        return session

    def _ask(self, question: TextClause, numbers: list[int]) -> list[int]:
        if not numbers:
            return []
        with self._turn, explained(self._where):
            try:
                return list(self._session.scalars(question, {"numbers": numbers}))
            except DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            # Who ended the session freed its claims: what nobody took meanwhile is claimed again, and at worst some
            # work is done twice.
            self._session = self._begin()
            self._session.execute(_TAKE, {"numbers": sorted(self._mine)})
            return list(self._session.scalars(question, {"numbers": numbers}))


@contextlib.contextmanager
def open_claims(engine: Engine, where: str) -> Iterator[Claims]:
    """Open what claims there are with a database; give all of them back on leaving.

    Args:
        engine: the database's.
        where: the database, for messages.

    Raises:
        MachineFault: if the server does not answer.
    """
    with contextlib.ExitStack() as stack:
        claims: Claims = Unshared()
        if engine.dialect.name == "postgresql":
            with explained(where):
                claims = stack.enter_context(contextlib.closing(ServerClaims(engine, where)))
        elif engine.dialect.name == "sqlite" and _SET is not None:
            with contextlib.suppress(OSError):
                claims = stack.enter_context(contextlib.closing(FileClaims(Path(f"{engine.url.database}-claims"))))
        yield claims


def attempt_key(attempt: int) -> str:
    """Return the key of the claim that a process holds on an attempt for as long as it lives."""
    return f"attempt {attempt}"


def held_in_file(database: str, keys: Iterable[str]) -> set[str] | None:
    """Return which claims beside a SQLite file somebody holds; claims nothing itself.

    Args:
        database: the file's path.
        keys: what may be claimed.

    Returns:
        None where nobody can tell: without a file of claims, or without locks.
    """
    if _GET is None:
        return None
    try:
        file = os.open(f"{database}-claims", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return {key for key in keys if _lock_of(file, key) != fcntl.F_UNLCK}
    except OSError:
        return None
    finally:
        os.close(file)


def _lock_of(file: int, key: str) -> int:
    """Return the kind of lock that keeps us from a key's byte; ``F_UNLCK`` if none does."""
    request = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, _number(key), 1, 0)
    return int(struct.unpack(_FLOCK, fcntl.fcntl(file, _GET or 0, request))[0])


def held_on_server(connection: Connection, keys: Iterable[str]) -> set[str] | None:
    """Return which claims on a PostgreSQL database somebody holds; None from a standby, which does not know."""
    numbers = {_number(key): key for key in keys}
    if connection.scalar(text("SELECT pg_is_in_recovery()")):
        return None
    return {numbers[number] for number in connection.scalars(_LOCKED, {"numbers": list(numbers)})}


def _number(key: str) -> int:
    """Return the number of a key's lock: one of so many that two keys never share it."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) >> 2

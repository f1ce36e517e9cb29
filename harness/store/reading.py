"""Open a database for reading only: nothing is written, migrated or made.

A dashboard or a report may point at a database that somebody else's run is filling: it must neither wait for that run
nor keep it waiting, and it must not bring the schema up to date behind its back.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store.engine import name_of, read_url, reading_engine
from ctxbench.harness.store.faults import explained
from ctxbench.harness.store.schema import HEAD, revision_of
from ctxbench.harness.store.store import Store, open_store

_SNAPSHOT = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text ELSE pg_current_snapshot()::text END
"""
"""A snapshot names the transactions whose rows are seen; that of a standby does not name those that go on."""


class Older(InputFault):
    """Raised for a database that an older version made."""


def open_current(url: str) -> Store:
    """Open a database for reading; one that an older version made is brought up to date first.

    Args:
        url: a SQLAlchemy URL.

    Raises:
        InputFault: as `open_reader`; `Older` where an older schema cannot be changed.
        MachineFault: if the server does not answer.
    """
    try:
        return open_reader(url)
    except Older as older:
        try:
            open_store(url, create=False).close()
        except InputFault:
            raise older from None
        return open_reader(url)


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
        current = revision_of(connection)
    if current == HEAD:
        return
    if current is None:
        raise InputFault("holds no results of ctxbench", where=where, cure="choose another database with --db")
    if not current.isdecimal() or current > HEAD:
        raise InputFault(
            f"was made by a newer ctxbench (schema {current})",
            where=where,
            cure="upgrade ctxbench, or choose another database with --db",
        )
    raise Older(
        f"was made by an older ctxbench (schema {current})",
        where=where,
        cure="bring it up to date: run `ctxbench leaderboard` on it once, as somebody who may write it, or on a copy "
        "(--db sqlite:///COPY)",
    )


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

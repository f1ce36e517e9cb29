"""The one place where a database's errors become one-line faults."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator

from sqlalchemy import exc

from ctxbench.bench.errors import CtxbenchError, InputFault, MachineFault


class Unwritable(InputFault):
    """Raised for a database that can be read at most."""


_URL = "write it as sqlite:///FILE or postgresql://USER@HOST/NAME"
_AGAIN = "then run the same command again; finished samples are kept"
_SERVER = "check its host and port, and that the server runs"
_CAUSES: tuple[tuple[str, type[CtxbenchError], str, str], ...] = (
    # A pattern in the database's own words, in small letters.
    ("file is not a database", InputFault, "is not a database", "choose another file with --db sqlite:///FILE"),
    ("malformed", InputFault, "the database is damaged", "move it away, or restore a copy"),
    ("unable to open database file", InputFault, "cannot be opened", "check that its folder exists and is writable"),
    ("readonly database", Unwritable, "cannot be written", "check who owns it, or choose another --db"),
    ("is full|no space left", MachineFault, "the disk is full", f"free some space, {_AGAIN}"),
    ("disk i/o error", MachineFault, "the disk cannot be written (full, or out of order)", f"mend it, {_AGAIN}"),
    (
        "is locked|lock timeout",
        MachineFault,
        "another process keeps it locked",
        f"wait for that process to end, {_AGAIN}",
    ),
    ("no such table", InputFault, "lacks a table of ctxbench", "move it away, or restore a copy"),
    # PostgreSQL
    (
        "password authentication failed|no password supplied|no pg_hba.conf entry",
        InputFault,
        "the server refuses this user or password",
        "write them as postgresql://USER:PASSWORD@HOST/NAME",
    ),
    (
        'database ".*" does not exist',
        InputFault,
        "the server has no such database",
        "make it with `createdb --encoding=UTF8 --template=template0 NAME`, or correct the name",
    ),
    (
        "permission denied",
        InputFault,
        "this user may not make or use tables there",
        "GRANT CREATE, USAGE ON SCHEMA public TO the user, or make the database with the user as its owner",
    ),
    ("value too long", InputFault, "a name is longer than its column", "choose a shorter name"),
    ("connection refused|is the server running|timeout expired", MachineFault, "the server does not answer", _SERVER),
    ("failed to resolve host|could not translate host", MachineFault, "there is no such host", _SERVER),
    (
        "server closed the connection|terminating connection|connection is lost|connection is closed",
        MachineFault,
        "the server ended the connection",
        f"see that it runs, {_AGAIN}",
    ),
)


@contextlib.contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn what SQLAlchemy and the driver raise into faults; an `IntegrityError` is the caller's to handle.

    Args:
        where: the database, without its password.
    """
    try:
        yield
    except exc.IntegrityError:
        raise
    except exc.NoSuchModuleError:
        raise InputFault("no such kind of database", where=where, cure=_URL) from None
    except exc.ArgumentError:
        raise InputFault("is not a database URL", where=where, cure=_URL) from None
    except ModuleNotFoundError as error:
        postgres = (error.name or "").startswith("psycopg")
        cure = "pip install -e '.[postgres]'" if postgres else f"pip install {error.name}"
        raise InputFault(f"its driver {error.name} is not installed", where=where, cure=cure) from None
    except (exc.SQLAlchemyError, sqlite3.Error) as error:
        raise _fault_of(error, where) from error


def _fault_of(error: Exception, where: str) -> CtxbenchError:
    message = str(getattr(error, "orig", None) or error)
    for words, kind, what, cure in _CAUSES:
        if re.search(words, message.lower()):
            return kind(what, where=where, cure=cure)
    return MachineFault(f"the database says: {message}"[:300], where=where, cure=f"mend the cause, {_AGAIN}")

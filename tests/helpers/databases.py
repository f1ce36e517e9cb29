"""Databases for tests: new ones without the tables made again for each, open ones, those of another schema."""

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from ctxbench.harness.store import store
from ctxbench.harness.store.database import make_engine

_OPEN = contextlib.ExitStack()


def open_for_test(url: str) -> store.Store:
    """Open a database that is closed when the test ends."""
    return _OPEN.enter_context(store.open_store(url))


def close_all() -> None:
    """Close what was opened for the test that ends."""
    _OPEN.close()


@contextmanager
def made_once() -> Iterator[None]:
    """Let a new SQLite file begin as a copy of one that was made before, which takes a tenth of the time.

    Whatever is no new SQLite file is made as ever.
    """
    template = b""

    def with_schema(url: URL, *, create: bool) -> Engine:
        nonlocal template
        engine = make_engine(url, create=create)
        if create and engine.dialect.name == "sqlite" and not Path(str(url.database)).exists():
            template = template or _made()
            # Where a file cannot be made, the engine is to say so.
            with contextlib.suppress(OSError):
                _write_whole(Path(str(url.database)), template)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "make_engine", with_schema)
        yield


def _made() -> bytes:
    """Return the content of a database that holds no run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "make_engine", make_engine)
            store.open_store(f"sqlite:///{path}").close()
        return path.read_bytes()


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file unless somebody has; nobody ever sees a part of it."""
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:
        file.write(content)
        file.flush()
        os.link(file.name, path)


def set_schema(path: Path, number: int) -> None:
    """Give a SQLite database the schema number of another version."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER schema_number_no_update")
        connection.execute("UPDATE schema_number SET number = ?", (number,))

"""Databases for tests: copies of a template, open databases, and databases with another schema."""

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
    return _OPEN.enter_context(store.open_store(url))


def close_all() -> None:
    _OPEN.close()


@contextmanager
def made_once() -> Iterator[None]:
    """Create each new SQLite file as a copy of a template, which takes a tenth of the time."""
    template = b""

    def with_schema(url: URL, *, create: bool) -> Engine:
        nonlocal template
        engine = make_engine(url, create=create)
        if create and engine.dialect.name == "sqlite" and not Path(str(url.database)).exists():
            template = template or _made()
            # If a file cannot be written, the engine reports it.
            with contextlib.suppress(OSError):
                _write_whole(Path(str(url.database)), template)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "make_engine", with_schema)
        yield


def _made() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.db"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "make_engine", make_engine)
            store.open_store(f"sqlite:///{path}").close()
        return path.read_bytes()


def _write_whole(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:
        file.write(content)
        file.flush()
        os.link(file.name, path)


def set_schema(path: Path, number: int) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER schema_number_no_update")
        connection.execute("UPDATE schema_number SET number = ?", (number,))

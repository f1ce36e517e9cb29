"""New databases for tests, without every migration run again for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, inspect

from ctxbench.harness.store import store
from ctxbench.harness.store.upgrading import upgrade


@contextmanager
def migrated_once() -> Iterator[None]:
    """Fill a blank SQLite database as the migrations have filled the first one, which takes them a tenth of the time.

    Whatever is no blank SQLite database is migrated as ever.
    """
    statements: list[str] = []

    def copied(connection: Connection, *, where: str) -> None:
        if connection.dialect.name != "sqlite" or inspect(connection).get_table_names():
            upgrade(connection, where=where)
        elif statements:
            for statement in statements:
                connection.exec_driver_sql(statement)
        else:
            upgrade(connection, where=where)
            # Without its first and last one, which begin and end a transaction.
            statements[:] = list(connection.connection.driver_connection.iterdump())[1:-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "upgrade", copied)
        yield

"""Bulk loading: many rows as plain tuples, by `COPY` on PostgreSQL and by one prepared statement elsewhere.

SQLAlchemy's own way of inserting, a dictionary a row, takes several times as long as the database does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, exc, insert, select, tuple_

V = TypeVar("V")
Rows = Sequence[tuple[Any, ...]]
_DRIVERS_NAMES = {"float": "float8"}
"""Types that psycopg knows by another name than SQLAlchemy writes."""
_MANY = 500
"""Keys looked up at once; databases bound the number of parameters."""


def clean(value: V) -> V:
    """Replace what no database takes: lone surrogates and NUL; other values pass."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    return value


def load(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append rows that are not there yet.

    Args:
        connection: in a transaction.
        table: where to.
        names: of the columns, in the order of a row's values.
        rows: their values.

    Raises:
        IntegrityError: if one of them is there.
    """
    if not rows:
        return
    if connection.dialect.driver == "psycopg":
        _copy(connection, table, names, rows)
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_insert(table, names), list(rows))
    else:
        connection.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def merge(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append those of the rows that are not there yet; another process may be appending equal ones.

    Writers meet equal rows in the same order, that of their first column, so that none waits for one that waits for it.
    """
    if not rows:
        return
    ordered = sorted(rows, key=lambda row: row[0])
    if connection.dialect.driver == "psycopg":
        dialect = connection.dialect
        types = [table.c[name].type.compile(dialect) for name in names]
        arrays = ", ".join(f"%s::{kind}[]" for kind in types)
        statement = (
            f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"
        )
        connection.exec_driver_sql(statement, tuple(map(list, zip(*ordered, strict=True))))
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"{_insert(table, names)} ON CONFLICT DO NOTHING", ordered)
    else:
        load(connection, table, names, ordered)


def numbers(connection: Connection, table: Table, name: str, keys: Sequence[str]) -> dict[str, int]:
    """Return the key of rows -> their numbers, of those that are there.

    Args:
        connection: to the database.
        table: one with a column ``number``.
        name: the column of the keys.
        keys: what to look for.
    """
    column, number = table.c[name], table.c.number
    stored: dict[str, int] = {}
    for part in parts(keys):
        stored.update((key, at) for key, at in connection.execute(select(column, number).where(column.in_(part))))
    return stored


def name_numbers(
    connection: Connection, table: Table, names: Sequence[str], keys: Set[tuple[str, ...]]
) -> Mapping[tuple[str, ...], int]:
    """Return key -> number, in a small table that gives every key a number; keys without one are given one."""
    columns: list[Column[Any]] = [table.c[name] for name in names]
    query = select(*columns, table.c.number).order_by(table.c.number.desc())
    if len(keys) < 20:
        query = query.where(tuple_(*columns).in_(sorted(keys)))

    def stored() -> dict[tuple[str, ...], int]:
        return {tuple(key): number for *key, number in connection.execute(query)}

    known_numbers = stored()
    new = sorted(set(keys) - known_numbers.keys())
    if new:
        merge(connection, table, names, new)
        known_numbers = stored()
    return known_numbers


def parts(keys: Sequence[V]) -> Iterator[Sequence[V]]:
    """Split keys into as many as one statement may look up."""
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]


def _insert(table: Table, names: Sequence[str]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _copy(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append rows in the server's binary form, which takes either side a sixth less time than text does."""
    driver: Any = connection.dialect.dbapi
    statement = f"COPY {table.name} ({', '.join(names)}) FROM STDIN (FORMAT BINARY)"
    kinds = [table.c[name].type.compile(connection.dialect).lower().partition("(")[0] for name in names]
    try:
        cursor: Any = connection.connection.cursor()
        with cursor, cursor.copy(statement) as copy:
            copy.set_types([_DRIVERS_NAMES.get(kind, kind) for kind in kinds])
            for row in rows:
                copy.write_row(row)
    except driver.Error as error:
        # SQLAlchemy does not see what a driver raises when it is used directly.
        raise exc.DBAPIError.instance(statement, (), error, driver.Error, dialect=connection.dialect) from error

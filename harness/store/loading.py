"""Bulk loading: many rows as plain tuples, by one prepared statement.

SQLAlchemy's own way of inserting, a dictionary a row, takes four times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, select, tuple_

V = TypeVar("V")
Rows = Sequence[tuple[Any, ...]]
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
    if rows:
        connection.exec_driver_sql(_insert(connection, table, names), list(rows))


def merge(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append those of the rows that are not there yet; another process may be appending equal ones.

    Writers meet equal rows in the same order, that of their first column, so that none waits for one that waits for it.
    """
    if rows:
        statement = f"{_insert(connection, table, names)} ON CONFLICT DO NOTHING"
        connection.exec_driver_sql(statement, sorted(rows, key=lambda row: row[0]))


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


def _insert(connection: Connection, table: Table, names: Sequence[str]) -> str:
    place = "?" if connection.dialect.name == "sqlite" else "%s"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([place] * len(names))})"

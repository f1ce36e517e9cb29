"""Rows as plain tuples, for queries that return many."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Select


def fetched(connection: Connection, query: Select[Any], **parameters: Any) -> list[tuple[Any, ...]]:
    """Return all rows as the driver gives them; SQLAlchemy's own rows take longer to make than to read.

    Only for columns whose types the driver knows: texts, whole and floating-point numbers.
    """
    result = connection.execute(query, parameters)
    cursor: Any = result.cursor
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return rows


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage meanwhile: among a million rows it looks often, and rows hold no cycles."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

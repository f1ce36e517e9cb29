"""Rows as plain tuples, for questions with many of them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select


def fetched(connection: Connection, query: Select[Any], **parameters: Any) -> list[tuple[Any, ...]]:
    """Return all rows as the driver gives them; SQLAlchemy's own rows take longer to make than to read.

    Only for columns whose types the driver knows: texts, whole and floating-point numbers.
    """
    result = connection.execute(query, parameters)
    cursor: Any = result.cursor
    found: list[tuple[Any, ...]] = cursor.fetchall()
    result.close()
    return found

"""Which schema a database has, asked without the machinery that brings one up to date: most are."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

HEAD = "0008"
"""The newest migration under ``migrations/versions``; their numbers sort."""


def revision(connection: Connection) -> str | None:
    """Return the last migration that a database had; None if it had none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found

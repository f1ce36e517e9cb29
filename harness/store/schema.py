"""The schema version of a database, read without importing the migrations: most databases are up to date."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

HEAD = "0008"
"""The newest migration under ``migrations/versions``; their numbers sort."""


def revision(connection: Connection) -> str | None:
    """Return the last migration that a database had; None if it had none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version

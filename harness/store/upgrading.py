"""Bringing an older database up to this version's schema, through Alembic; never down."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store.engine import compact
from ctxbench.harness.store.schema import HEAD, METADATA, VIEWS

if TYPE_CHECKING:
    from alembic.config import Config

_LOG = logging.getLogger(__name__)
_NARROW, _NARROWED = "0015", "0016"
"""Between these two migrations the rows of before move into the narrow tables."""


def revision_of(connection: Connection) -> str | None:
    """Return the last migration that a database had; None if it had none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def upgrade(connection: Connection, *, where: str, to: str = "head") -> None:
    """Run the migrations that are missing, in the connection's transaction.

    Args:
        connection: a connection in a transaction that holds the write lock.
        where: the database, for messages.
        to: the revision to stop at; for tests.

    Raises:
        InputFault: if a newer version made the database, or it is another program's.
    """
    current = revision_of(connection)
    if current == HEAD:
        return
    from alembic import command  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = migrations(connection)
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in revisions:
        raise InputFault(
            f"was made by a newer ctxbench (schema {current}; this one knows up to {HEAD})",
            where=where,
            cure="upgrade ctxbench, or choose another database with --db",
        )
    if current is None:
        _check_blank(connection, where)
    command.upgrade(config, to)


def must_move(connection: Connection) -> bool:
    """Return whether an older database has rows that move, part by part, into tables of another layout."""
    current = revision_of(connection)
    return current is not None and current.isdecimal() and current < _NARROWED


def move_rows(engine: Engine, *, where: str) -> None:
    """Bring a database of a layout of before up to date; interrupted, it goes on where it was.

    Every part moves in a transaction of its own, and what was there is dropped once all of it has moved. No other
    version uses the database meanwhile: its schema is neither the older nor the newer one.

    Args:
        engine: the database's, for writing.
        where: the database, for messages.

    Raises:
        InputFault: as `upgrade`.
    """
    from ctxbench.harness.store.migrations import moving  # noqa: PLC0415 - seldom needed

    _LOG.warning("%s: bringing it up to date; that may take minutes, and goes on if it is interrupted", where)
    with engine.begin() as connection:
        if must_move(connection) and str(revision_of(connection)) < _NARROW:
            upgrade(connection, where=where, to=_NARROW)
    more = True
    while more:
        with engine.begin() as connection:
            more = must_move(connection) and moving.move_part(connection)
    with engine.begin() as connection:
        upgrade(connection, where=where)
    compact(engine)


def migrations(connection: Connection) -> Config:
    """Return what Alembic runs the migrations with."""
    from alembic.config import Config  # noqa: PLC0415 - slow to import, and seldom needed: most databases are up to date

    config = Config()
    # configparser reads % in a value.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _check_blank(connection: Connection, where: str) -> None:
    """Refuse a database that our tables cannot be made in."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        if tables:
            raise InputFault(
                "is a database of another program", where=where, cure="choose another file with --db sqlite:///FILE"
            )
        return
    if clashing := sorted(tables & {*METADATA.tables, *VIEWS.tables}):
        raise InputFault(
            f"is a database of another program, which has a table {clashing[0]!r} too",
            where=where,
            cure="choose another database with --db",
        )
    if connection.dialect.name == "postgresql":
        encoding = connection.scalar(text("SHOW server_encoding"))
        if encoding != "UTF8":
            raise InputFault(
                f"its encoding is {encoding}, which cannot hold every text",
                where=where,
                cure="make another with `createdb --encoding=UTF8 --template=template0 NAME`",
            )

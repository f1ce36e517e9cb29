"""Bring a database's schema up to this version's, through Alembic; never down."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema
from ctxbench.harness.store.tables import METADATA


def _config(connection: Connection) -> Config:
    config = Config()
    # configparser reads % in a value.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, *, where: str, to: str = "head") -> None:
    """Run the migrations that are missing, in the connection's transaction.

    Args:
        connection: a connection in a transaction that holds the write lock.
        where: the database, for messages.
        to: the revision to stop at; for tests.

    Raises:
        InputFault: if a newer version made the database, or it is another program's.
    """
    current = schema.revision(connection)
    if current == schema.HEAD:
        return
    config = _config(connection)
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in revisions:
        raise InputFault(
            f"was made by a newer ctxbench (schema {current}; this one knows up to {schema.HEAD})",
            where=where,
            cure="upgrade ctxbench, or choose another database with --db",
        )
    if current is None:
        _check_blank(connection, where)
    command.upgrade(config, to)


def _check_blank(connection: Connection, where: str) -> None:
    """Refuse a database that our tables cannot be made in."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        if tables:
            raise InputFault(
                "is a database of another program", where=where, cure="choose another file with --db sqlite:///FILE"
            )
        return
    if clashing := sorted(tables & set(METADATA.tables)):
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

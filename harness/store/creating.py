"""Making the tables in an empty database, and the number that says which schema a database has.

There is no way from one schema to another: a database of another number is refused.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, inspect, select, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store.schema import METADATA, SCHEMA, SCHEMA_NUMBER, VIEWS

_SAMPLE = "JOIN planned_fact p ON p.key = f.key JOIN run r ON r.number = p.run JOIN sample s ON s.number = p.sample"
_NAMES = "f.key, r.id AS run_id, s.id AS sample_id"
_VIEWS = {
    "planned": "SELECT f.key, r.id AS run_id, s.id AS sample_id, s.set_digest, f.ordinal FROM planned_fact f "
    "JOIN run r ON r.number = f.run JOIN sample s ON s.number = f.sample",
    "generation": "SELECT f.number, f.id, o.generator, o.version, q.digest AS prompt_digest, o.sampling, f.idx, "
    "f.text, f.finish, f.tokens_in, f.tokens_out, f.seconds, f.cached, f.price FROM generation_fact f "
    "JOIN source o ON o.number = f.source JOIN prompt_fact q ON q.number = f.prompt",
    "bits": "SELECT c.coder, c.language, q.digest AS prompt_digest, f.target_digest, f.bits FROM bits_fact f "
    "JOIN coder c ON c.number = f.coder JOIN prompt_fact q ON q.number = f.prompt",
    "result": f"SELECT {_NAMES}, q.digest AS prompt_digest, f.status, f.context_tokens, f.calls, f.flags, "
    f"f.strategy_seconds, f.generator_seconds FROM result_fact f {_SAMPLE} JOIN prompt_fact q ON q.number = f.prompt",
    "call": f"SELECT {_NAMES}, g.id AS generation_id, f.ordinal, f.role FROM call_fact f {_SAMPLE} "
    "JOIN generation_fact g ON g.number = f.generation",
    "engine_use": f"SELECT {_NAMES}, f.engine, f.version, f.mode, f.index_seconds, f.query_seconds, f.calls, f.places, "
    f"f.cut, f.index_bytes FROM engine_use_fact f {_SAMPLE}",
    "block": f"SELECT {_NAMES}, f.ordinal, f.kind, f.places, f.score, f.tokens, f.state, f.reason, f.char_start, "
    f"f.char_end FROM block_fact f {_SAMPLE}",
    "block_gain": f"SELECT {_NAMES}, f.ordinal, f.coder, f.gain FROM block_gain_fact f {_SAMPLE}",
    "completion": f"SELECT {_NAMES}, g.id AS generation_id, f.idx, f.status, f.text, f.flags FROM completion_fact f "
    f"{_SAMPLE} JOIN generation_fact g ON g.number = f.generation",
    "score": "SELECT f.key, r.id AS run_id, s.id AS sample_id, m.profile, m.metric, f.idx, f.value FROM score_fact f "
    "JOIN measure m ON m.number = f.measure JOIN run r ON r.number = f.run "
    "JOIN planned_fact p ON p.key = f.key JOIN sample s ON s.number = p.sample",
    "judged": f"SELECT {_NAMES}, f.idx, f.verdict_key FROM judged_fact f {_SAMPLE}",
    "summarised": "SELECT r.id AS run_id, g.id AS generation_id FROM summarised_fact f "
    "JOIN run r ON r.number = f.run JOIN generation_fact g ON g.number = f.generation",
    "access": f"SELECT {_NAMES}, f.opened, f.searches, f.characters, f.explored_files, f.explored_recall, "
    f"f.explored_precision, f.shown_recall, f.shown_precision FROM access_fact f {_SAMPLE}",
}
_REFUSAL = "rows are appended, never changed"
_OTHER_DATABASE = "choose another database with --db"


def schema_of(connection: Connection) -> int | None:
    """Return the number of a database's schema; None if it has none."""
    if not inspect(connection).has_table(SCHEMA.name):
        return None
    number: int | None = connection.scalar(select(SCHEMA.c.number))
    return number


def check_schema(number: int, *, where: str) -> None:
    """Refuse a database whose schema is not this version's.

    Args:
        number: its schema's.
        where: the database, for messages.

    Raises:
        InputFault: if it is another one.
    """
    if number != SCHEMA_NUMBER:
        raise InputFault(
            f"was made by another version of ctxbench (schema {number}; this version reads {SCHEMA_NUMBER})",
            where=where,
            cure="use the version that made it, or choose a new database with --db sqlite:///FILE and run again",
        )


def create_tables(connection: Connection, *, where: str) -> None:
    """Make what is missing in an empty database; one that has the tables stays as it is.

    Args:
        connection: a connection in a transaction that holds the write lock.
        where: the database, for messages.

    Raises:
        InputFault: if another version or another program made the database.
    """
    number = schema_of(connection)
    if number is not None:
        check_schema(number, where=where)
        return
    _check_blank(connection, where)
    METADATA.create_all(connection)
    for name, query in _VIEWS.items():
        connection.execute(text(f"CREATE VIEW {name} AS {query}"))
    connection.execute(insert(SCHEMA), {"number": SCHEMA_NUMBER})
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            "CREATE FUNCTION ctxbench_no_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
    for table in METADATA.tables:
        _refuse_changes(connection, table)


def _refuse_changes(connection: Connection, table: str) -> None:
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )
        return
    for change in ("UPDATE", "DELETE"):
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        )


def _check_blank(connection: Connection, where: str) -> None:
    """Refuse a database that our tables cannot be made in."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        if tables:
            raise InputFault(
                "is a database of another program or of an older ctxbench",
                where=where,
                cure="choose another file with --db sqlite:///FILE",
            )
        return
    if clashing := sorted(tables & {*METADATA.tables, *VIEWS.tables}):
        raise InputFault(
            f"is a database of another program or of an older ctxbench, with a table {clashing[0]!r}",
            where=where,
            cure=_OTHER_DATABASE,
        )
    if connection.dialect.name == "postgresql":
        encoding = connection.scalar(text("SHOW server_encoding"))
        if encoding != "UTF8":
            raise InputFault(
                f"its encoding is {encoding}, which cannot hold every text",
                where=where,
                cure="make another with `createdb --encoding=UTF8 --template=template0 NAME`",
            )

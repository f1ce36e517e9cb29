"""Creates the tables, protects their rows from changes, and deletes runs and verdicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, Table, delete, func, insert, inspect, select, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.facts import measure_numbers
from ctxbench.harness.store.schema import METADATA, SCHEMA, SCHEMA_NUMBER, VIEWS
from ctxbench.harness.store.verdicts import PASS, PROFILE
from ctxbench.harness.store.write import parts

if TYPE_CHECKING:
    from ctxbench.harness.store.store import Store

_REFUSAL = "rows are appended, never changed"
_OTHER_DATABASE = "choose another database with --db"


def schema_of(connection: Connection) -> int | None:
    """Return the schema number of a database; None without a schema."""
    if not inspect(connection).has_table(SCHEMA.name):
        return None
    number: int | None = connection.scalar(select(SCHEMA.c.number))
    return number


def check_schema(number: int, *, where: str) -> None:
    """Check that this version of ctxbench can use a database with this schema number.

    Raises:
        InputFault: if the number is not `SCHEMA_NUMBER`.
    """
    if number != SCHEMA_NUMBER:
        raise InputFault(
            f"another version of ctxbench created the database (schema {number}; this version reads {SCHEMA_NUMBER})",
            where=where,
            cure="use that version, or choose a new database with --db sqlite:///FILE",
        )


def create_tables(connection: Connection, *, where: str) -> None:
    """Create the tables in an empty database. Existing tables stay unchanged.

    Raises:
        InputFault: if another version or program created the database, or its encoding is not UTF-8.
    """
    number = schema_of(connection)
    if number is not None:
        check_schema(number, where=where)
        return
    _check_blank(connection, where)
    METADATA.create_all(connection)
    for name, query in t.VIEW_QUERIES.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query.compile(connection)}")
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
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        if tables:
            raise InputFault(
                "the database belongs to another program or an older ctxbench",
                where=where,
                cure="choose another file with --db sqlite:///FILE",
            )
        return
    if clashing := sorted(tables & {*METADATA.tables, *VIEWS.tables}):
        raise InputFault(
            f"the database belongs to another program or an older ctxbench: it has a table {clashing[0]!r}",
            where=where,
            cure=_OTHER_DATABASE,
        )
    if connection.dialect.name == "postgresql":
        encoding = connection.scalar(text("SHOW server_encoding"))
        if encoding != "UTF8":
            raise InputFault(
                f"the database has the encoding {encoding}, which cannot store every text",
                where=where,
                cure="create another with `createdb --encoding=UTF8 --template=template0 NAME`",
            )


def delete_run(store: Store, run: str) -> int:
    """Delete a run's own rows permanently, and return their number. No process may be working on the run."""

    def remove(connection: Connection) -> int:
        attempts = select(t.ATTEMPT.c.id).where(t.ATTEMPT.c.run_id == run)
        number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == run))
        keys = select(t.PLANNED_FACT.c.key).where(t.PLANNED_FACT.c.run == number)
        count = 0
        # Delete in reverse order, so that referring rows go before the rows to which they refer.
        for table in reversed(t.METADATA.sorted_tables):
            if "run_id" in table.c:
                rows = table.c.run_id == run
            elif "attempt_id" in table.c:
                rows = table.c.attempt_id.in_(attempts)
            elif "run" in table.c and table is not t.VERDICT:
                rows = table.c.run == number
            elif "key" in table.c and table.name.endswith("_fact"):
                rows = table.c.key.in_(keys)
            elif table is t.RUN:
                rows = table.c.id == run
            else:
                continue
            count += _delete_rows(connection, table, rows)
        return count

    return store.settle(remove)


def forget_unbegun(store: Store, run: str) -> None:
    """Delete a run if no attempt has stored a result or a fault for it."""
    attempts = select(t.ATTEMPT.c.id).where(t.ATTEMPT.c.run_id == run)
    with store.reading() as connection:
        is_begun = connection.scalar(
            select(func.count()).select_from(t.RESULT).where(t.RESULT.c.run_id == run)
        ) or connection.scalar(select(func.count()).select_from(t.FAULT).where(t.FAULT.c.attempt_id.in_(attempts)))
    if not is_begun:
        delete_run(store, run)


def delete_verdicts(store: Store, run: str) -> int:
    """Delete the verdicts on a run's completions; return their number. No process may be working on the run.

    Other runs with equal completions lose these verdicts too.
    """

    def remove(connection: Connection) -> int:
        j, s = t.JUDGED_FACT.c, t.SCORE_FACT.c
        of_run = select(t.PLANNED_FACT.c.key).where(t.PLANNED_FACT.c.run == t.run_number(run))
        keys = sorted(set(connection.scalars(select(j.verdict_key).where(j.key.in_(of_run)))))
        measure = measure_numbers(connection, [(PROFILE, PASS)])[PROFILE, PASS]
        for part in parts(keys):
            judged = select(j.key).where(j.verdict_key.in_(part), j.key == s.key, j.idx == s.idx).exists()
            _delete_rows(connection, t.SCORE_FACT, (s.measure == measure) & judged)
            _delete_rows(connection, t.JUDGED_FACT, j.verdict_key.in_(part))
            _delete_rows(connection, t.VERDICT, t.VERDICT.c.key.in_(part))
        return len(keys)

    return store.settle(remove)


def _delete_rows(connection: Connection, table: Table, rows: ColumnElement[bool]) -> int:
    if not connection.scalar(select(func.count()).select_from(table).where(rows)):
        return 0
    with _deletable(connection, table.name):
        return connection.execute(delete(table).where(rows)).rowcount


@contextlib.contextmanager
def _deletable(connection: Connection, table: str) -> Iterator[None]:
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
        yield
        connection.execute(text(f"ALTER TABLE {table} ENABLE TRIGGER USER"))
        return
    trigger = f"{table}_no_delete"
    made_by = connection.scalar(text("SELECT sql FROM sqlite_master WHERE name = :name"), {"name": trigger})
    connection.execute(text(f"DROP TRIGGER {trigger}"))
    yield
    connection.execute(text(str(made_by)))

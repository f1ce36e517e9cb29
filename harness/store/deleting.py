"""Deletion of all that is stored of a run, and of verdicts that are to be given anew.

Nothing else takes rows away. Answers of models stay, since other runs use them too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, Table, delete, func, select, text

from ctxbench.harness.store import schema as t
from ctxbench.harness.store.facts import measure_numbers
from ctxbench.harness.store.loading import parts
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import PASS, PROFILE


def delete_run(store: Store, run: str) -> int:
    """Delete all that is stored of one run, for good; return how many rows. No process may be at work on it."""

    def remove(connection: Connection) -> int:
        attempts = select(t.ATTEMPT.c.id).where(t.ATTEMPT.c.run_id == run)
        number = connection.scalar(select(t.RUN.c.number).where(t.RUN.c.id == run))
        keys = select(t.PLANNED_FACT.c.key).where(t.PLANNED_FACT.c.run == number)
        count = 0
        # Children stand behind their parents.
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


def delete_verdicts(store: Store, run: str) -> int:
    """Delete the verdicts on a run's completions; return how many. No process may be at work on the run.

    Other runs with an equal completion lose that verdict too: for all of them it is given anew.
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
    """Let rows of a table be deleted within the block, in the connection's transaction; nobody else can meanwhile."""
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

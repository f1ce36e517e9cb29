"""Names, notes and hiding of runs, and their deletion.

Labels are appended like every row: of each kind the last one counts. Only `delete_run` takes rows away, all of one
run's at once; what runs share (prompts, answers, verdicts) stays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlalchemy import Connection, delete, func, insert, select, text

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.loading import clean
from ctxbench.harness.store.store import Store

_HIDDEN = "hidden"


class LabelKind(StrEnum):
    """What a label is."""

    NAME = "name"
    """A word or two in place of the id."""
    NOTE = "note"
    """Whatever there is to say."""
    HIDDEN = "hidden"
    """Empty, or `hidden`: left out of boards and listings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabels:
    """The labels of one run that count; empty where there is none."""

    name: str = ""
    note: str = ""
    hidden: bool = False


NO_LABELS = RunLabels()


def add_label(store: Store, run: str, kind: LabelKind, value: str) -> bool:
    """Give a run a label in place of the one that counted; return False if it is the same.

    Args:
        store: where.
        run: its whole id.
        kind: which label.
        value: the text; empty takes the label away.

    Raises:
        InputFault: if another run has that name, or that id.
    """
    cleaned = clean(value.strip())

    def append(connection: Connection) -> bool:
        c = t.LABELLED.c
        rows = connection.execute(select(c.kind, c.text).where(c.run_id == run).order_by(c.ordinal)).all()
        if dict(map(tuple, rows)).get(kind, "") == cleaned:
            return False
        if kind is LabelKind.NAME and cleaned:
            _check_name(connection, run, cleaned)
        row = {"run_id": run, "ordinal": len(rows), "kind": str(kind), "text": cleaned}
        connection.execute(insert(t.LABELLED), row)
        return True

    return store.settle(append)


def _check_name(connection: Connection, run: str, name: str) -> None:
    """Refuse a name that stands for another run already."""
    ids = connection.scalars(select(t.RUN.c.id).where(t.RUN.c.id == name)).all()
    names = [other for other, of_run in labels(connection).items() if of_run.name == name and other != run]
    for other in names:
        raise InputFault(f"the run {other} has that name", where=repr(name), cure="choose another")
    if ids:
        raise InputFault("that is the id of a run", where=repr(name), cure="choose another name")


def hide(store: Store, run: str, *, hidden: bool = True) -> bool:
    """Leave a run out of boards and listings, or bring it back; return False if it was so already."""
    return add_label(store, run, LabelKind.HIDDEN, _HIDDEN if hidden else "")


def labels(connection: Connection, runs: Iterable[str] | None = None) -> dict[str, RunLabels]:
    """Return run -> its labels, of these runs or of all; those without any are not among them."""
    c = t.LABELLED.c
    query = select(c.run_id, c.kind, c.text).order_by(c.run_id, c.ordinal)
    labels_by_run: dict[str, RunLabels] = {}
    for run, kind, value in connection.execute(query if runs is None else query.where(c.run_id.in_(list(runs)))):
        old = labels_by_run.get(run, NO_LABELS)
        changed: dict[str, object] = {kind: bool(value) if kind == LabelKind.HIDDEN else value}
        labels_by_run[run] = replace(old, **changed)  # type: ignore[arg-type]
    return labels_by_run


def hidden_runs(connection: Connection) -> frozenset[str]:
    """Return the ids of the runs that are to be left out."""
    return frozenset(run for run, of_run in labels(connection).items() if of_run.hidden)


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
            elif "run" in table.c:
                rows = table.c.run == number
            elif "key" in table.c and table.name.endswith("_fact"):
                rows = table.c.key.in_(keys)
            elif table is t.RUN:
                rows = table.c.id == run
            else:
                continue
            if connection.scalar(select(func.count()).select_from(table).where(rows)):
                with _deletable(connection, table.name):
                    count += connection.execute(delete(table).where(rows)).rowcount
        return count

    return store.settle(remove)


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

"""Names, notes and hiding of runs. Labels are appended like every row: of each kind the last one counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlalchemy import Connection, insert, select

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

"""Names of runs. They are appended like every row: the last one of a run counts."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, insert, select

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.loading import clean
from ctxbench.harness.store.store import Store


def add_name(store: Store, run: str, name: str) -> bool:
    """Give a run a name in place of the one that counted; return False if it is the same.

    Args:
        store: where.
        run: its whole id.
        name: the name; empty takes it away.

    Raises:
        InputFault: if another run has that name, or that id.
    """
    cleaned = clean(name.strip())

    def append(connection: Connection) -> bool:
        c = t.NAMED.c
        stored = connection.scalars(select(c.name).where(c.run_id == run).order_by(c.ordinal)).all()
        if (stored[-1] if stored else "") == cleaned:
            return False
        if cleaned:
            _check(connection, run, cleaned)
        connection.execute(insert(t.NAMED), {"run_id": run, "ordinal": len(stored), "name": cleaned})
        return True

    return store.settle(append)


def _check(connection: Connection, run: str, name: str) -> None:
    """Refuse a name that stands for another run already."""
    for other, of_other in names(connection).items():
        if of_other == name and other != run:
            raise InputFault(f"the run {other} has that name", where=repr(name), cure="choose another")
    if connection.scalar(select(t.RUN.c.id).where(t.RUN.c.id == name)) is not None:
        raise InputFault("that is the id of a run", where=repr(name), cure="choose another name")


def names(connection: Connection, runs: Iterable[str] | None = None) -> dict[str, str]:
    """Return run -> its name, of these runs or of all; those without one are not among them."""
    c = t.NAMED.c
    query = select(c.run_id, c.name).order_by(c.run_id, c.ordinal)
    newest = dict(connection.execute(query if runs is None else query.where(c.run_id.in_(list(runs)))).all())
    return {run: name for run, name in newest.items() if name}

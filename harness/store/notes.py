"""Notes on runs, sets and generators: names, import files, remarks, invalid samples and training cutoffs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection, func, insert, select

from ctxbench.bench.errors import InputFault
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.store import Store
from ctxbench.harness.store.verdicts import passes_not_plain
from ctxbench.harness.store.write import Imported, Mark, clean, merge, row_of


def add_imported(store: Store, run: str, imported: Imported) -> bool:
    """Record that a run was imported; return False if this is already recorded."""
    row = row_of(t.IMPORTED, imported, run_id=run)
    return store.settle(lambda connection: merge(connection, t.IMPORTED, [row])) == 1


def add_marks(store: Store, set_digest: str, marks: Iterable[Mark]) -> int:
    """Mark samples of a set as invalid; return the number of new marks. A mark keeps its first reason."""
    rows = [row_of(t.MARK, mark, set_digest=set_digest) for mark in marks]
    return store.settle(lambda connection: merge(connection, t.MARK, rows))


def marks_of(store: Store, set_digest: str) -> list[Mark]:
    """Return the marks of a set's samples, ordered by sample and mark."""
    m = t.MARK.c
    query = select(m.sample_id, m.mark, m.reason, m.image).where(m.set_digest == set_digest)
    with store.reading() as connection:
        marks = [Mark(**row._mapping) for row in connection.execute(query)]
    return sorted(marks, key=lambda mark: (mark.sample_id, mark.mark))


def add_remarks(store: Store, run: str, remarks: Sequence[str]) -> int:
    """Add remarks that boards show beside a run's values; return the number of new remarks."""

    def append(connection: Connection) -> int:
        stored_texts = list(connection.scalars(select(t.REMARK.c.text).where(t.REMARK.c.run_id == run)))
        new = [text for text in dict.fromkeys(map(clean, remarks)) if text not in stored_texts]
        if new:
            numbered = enumerate(new, len(stored_texts))
            connection.execute(
                insert(t.REMARK), [{"run_id": run, "ordinal": at, "text": text} for at, text in numbered]
            )
        return len(new)

    return store.settle(append)


def add_cutoff(store: Store, generator: str, day: str) -> bool:
    """Store the last training day from a generator's spec; return False if it is the day that was stored last."""

    def append(connection: Connection) -> bool:
        c = t.CUTOFF.c
        days = list(connection.scalars(select(c.day).where(c.generator == generator).order_by(c.ordinal)))
        if days[-1:] == [day]:
            return False
        connection.execute(insert(t.CUTOFF), {"generator": generator, "ordinal": len(days), "day": day})
        return True

    return store.settle(append)


def cutoffs(connection: Connection) -> dict[str, str]:
    """Return the last day of training data stored for each generator, by the generator's spec."""
    c = t.CUTOFF.c
    return dict(connection.execute(select(c.generator, c.day).order_by(c.ordinal)).all())


def imports(connection: Connection, runs: Iterable[str]) -> dict[str, Imported]:
    """Return the import files of the imported runs among `runs`, by run id."""
    i = t.IMPORTED.c
    query = select(i.run_id, i.format, i.source, i.sha256).where(i.run_id.in_(list(runs)))
    return {
        run: Imported(format=kind, source=source, sha256=sha) for run, kind, source, sha in connection.execute(query)
    }


def remarks(connection: Connection, runs: Iterable[str], *, strict: bool = False) -> dict[str, tuple[str, ...]]:
    """Return the remarks by run id. The last one counts passes that are not plain, if there are any."""
    ids = list(runs)
    m = t.REMARK.c
    remarks_by_run: dict[str, tuple[str, ...]] = defaultdict(tuple)
    query = select(m.run_id, m.text).where(m.run_id.in_(ids)).order_by(m.run_id, m.ordinal)
    for run, text in connection.execute(query):
        remarks_by_run[run] += (text,)
    for run, text in _not_plain(connection, ids, strict=strict):
        remarks_by_run[run] += (text,)
    return remarks_by_run


def _not_plain(connection: Connection, runs: Sequence[str], *, strict: bool) -> Iterator[tuple[str, str]]:
    doubted = passes_not_plain(connection, runs)
    j, v = t.JUDGED.c, t.VERDICT.c
    query = (
        select(j.run_id, func.count())
        .select_from(t.JUDGED.join(t.VERDICT, j.verdict_key == v.key))
        .where(j.run_id.in_(doubted), v.verdict == "PASSED")
        .group_by(j.run_id)
    )
    counted = ", counted as failed" if strict else ""
    for run, passed in connection.execute(query):
        yield run, f"{doubted[run].total()} of {passed} passes are not plain{counted} (docs/verdicts.md)."


def invalid_samples(connection: Connection, digests: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the marks of invalid samples by set digest and sample id. ``broken`` takes precedence over ``vacuous``."""
    m = t.MARK.c
    marks_by_set: dict[str, dict[str, str]] = defaultdict(dict)
    query = select(m.set_digest, m.sample_id, m.mark).where(m.set_digest.in_(sorted(set(digests))))
    for digest, sample, mark in sorted(map(tuple, connection.execute(query)), reverse=True):
        marks_by_set[digest][sample] = mark
    return marks_by_set


def add_name(store: Store, run: str, name: str) -> bool:
    """Name a run, or remove its name if `name` is blank; return False if that changes nothing.

    Raises:
        InputFault: if another run has this name, or the name is the id of a run.
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
    for other, of_other in names(connection).items():
        if of_other == name and other != run:
            raise InputFault(f"the run {other} already has this name", where=repr(name), cure="choose another name")
    if connection.scalar(select(t.RUN.c.id).where(t.RUN.c.id == name)) is not None:
        raise InputFault("the name is the id of a run", where=repr(name), cure="choose another name")


def names(connection: Connection, runs: Iterable[str] | None = None) -> dict[str, str]:
    """Return the names of the named runs among `runs`, by run id; None means all runs."""
    c = t.NAMED.c
    query = select(c.run_id, c.name).order_by(c.run_id, c.ordinal)
    newest = dict(connection.execute(query if runs is None else query.where(c.run_id.in_(list(runs)))).all())
    return {run: name for run, name in newest.items() if name}

"""Rows into tables, within a transaction that the caller holds; what is there already stays as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from ctxbench.harness.store import rows
from ctxbench.harness.store import tables as t
from ctxbench.harness.store.records import Finished

_MANY = 500
"""Keys looked up at once; databases bound the number of parameters."""


def append(connection: Connection, table: Table, content: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to one table."""
    if content:
        connection.execute(insert(table), list(content))


def append_new(connection: Connection, table: Table, key: str, content: Mapping[str, Mapping[str, Any]]) -> None:
    """Append the rows whose key is not there yet."""
    known: set[str] = set()
    for part in parts(sorted(content)):
        known.update(connection.scalars(select(table.c[key]).where(table.c[key].in_(part))))
    append(connection, table, [row for found, row in content.items() if found not in known])


def append_finished(connection: Connection, run: str, coder: str, finished: Sequence[Finished]) -> int:
    """Append samples of one run with everything below them; return how many were not there yet.

    Many are appended with as many statements as one.
    """
    r = t.RESULT.c
    known: set[str] = set()
    for part in parts([one.sample_id for one in finished]):
        known.update(connection.scalars(select(r.sample_id).where(r.run_id == run, r.sample_id.in_(part))))
    new = [one for one in finished if one.sample_id not in known]
    prompts = {one.prompt_digest: one.prompt for one in new}
    prompts |= {bits.prompt_digest: bits.prompt for one in new for bits in one.bits}
    append_new(connection, t.PROMPT, "digest", rows.prompts(prompts))
    content: dict[Table, list[rows.Row]] = defaultdict(list)
    for one in new:
        for table, found in rows.finished(run, one).items():
            content[table] += found
    for table, together in content.items():
        append(connection, table, together)
    _append_bits(connection, coder, new)
    return len(new)


def _append_bits(connection: Connection, coder: str, finished: Sequence[Finished]) -> None:
    b = t.BITS.c
    costs = {(one.language, one.prompt_digest, one.target_digest): one.bits for every in finished for one in every.bits}
    known: set[tuple[str, str, str]] = set()
    for part in parts(sorted({prompt for _, prompt, _ in costs})):
        query = select(b.language, b.prompt_digest, b.target_digest).where(b.coder == coder, b.prompt_digest.in_(part))
        known.update(map(tuple, connection.execute(query)))
    names = ("language", "prompt_digest", "target_digest")
    new = [
        {"coder": coder, **dict(zip(names, key, strict=True)), "bits": bits}
        for key, bits in costs.items()
        if key not in known
    ]
    append(connection, t.BITS, new)


def parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split keys into as many as one statement may look up."""
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]

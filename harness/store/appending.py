"""Rows into tables, within a transaction that the caller holds; what is there already stays as it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from ctxbench.harness.store import rows
from ctxbench.harness.store import schema as t
from ctxbench.harness.store.records import Finished

_MANY = 500
"""Keys looked up at once; databases bound the number of parameters."""


def append(connection: Connection, table: Table, content: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to one table."""
    if content:
        connection.execute(insert(table), list(content))


def append_new(connection: Connection, table: Table, key: str, content: Mapping[str, Mapping[str, Any]]) -> None:
    """Append the rows whose key is not there yet."""
    stored_keys: set[str] = set()
    for part in parts(sorted(content)):
        stored_keys.update(connection.scalars(select(table.c[key]).where(table.c[key].in_(part))))
    append(connection, table, [row for row_key, row in content.items() if row_key not in stored_keys])


def append_finished(connection: Connection, run: str, coder: str, finished: Sequence[Finished]) -> int:
    """Append samples of one run with everything below them; return how many were not there yet.

    Many are appended with as many statements as one.
    """
    r = t.RESULT.c
    stored_ids: set[str] = set()
    for part in parts([sample.sample_id for sample in finished]):
        stored_ids.update(connection.scalars(select(r.sample_id).where(r.run_id == run, r.sample_id.in_(part))))
    new = [sample for sample in finished if sample.sample_id not in stored_ids]
    prompts = {sample.prompt_digest: sample.prompt for sample in new}
    prompts |= {bits.prompt_digest: bits.prompt for sample in new for bits in sample.bits}
    append_new(connection, t.PROMPT, "digest", rows.prompts(prompts))
    content: dict[Table, list[rows.Row]] = defaultdict(list)
    for sample in new:
        for table, table_rows in rows.finished(run, sample).items():
            content[table] += table_rows
    for table, together in content.items():
        append(connection, table, together)
    _append_bits(connection, coder, new)
    return len(new)


def _append_bits(connection: Connection, coder: str, finished: Sequence[Finished]) -> None:
    b = t.BITS.c
    costs = {
        (cost.language, cost.prompt_digest, cost.target_digest): cost.bits
        for sample in finished
        for cost in sample.bits
    }
    stored_keys: set[tuple[str, str, str]] = set()
    for part in parts(sorted({prompt for _, prompt, _ in costs})):
        query = select(b.language, b.prompt_digest, b.target_digest).where(b.coder == coder, b.prompt_digest.in_(part))
        stored_keys.update(map(tuple, connection.execute(query)))
    names = ("language", "prompt_digest", "target_digest")
    new = [
        {"coder": coder, **dict(zip(names, key, strict=True)), "bits": bits}
        for key, bits in costs.items()
        if key not in stored_keys
    ]
    append(connection, t.BITS, new)


def parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split keys into as many as one statement may look up."""
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]

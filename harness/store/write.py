"""Records handed to the store (a finished sample with its completions, verdicts, faults), their rows, their writing.

Rows are appended within a transaction that the caller holds; what is there already stays as it is. Many rows go as
plain tuples, by one prepared statement: SQLAlchemy inserts dictionaries, a row each, which takes four times as long.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, insert, select, tuple_

from ctxbench.bench.engines.types import EngineUse
from ctxbench.bench.secrets import redacted
from ctxbench.bench.types import Sample
from ctxbench.harness.results import Origin, Status, generator_label, is_released, samples_label
from ctxbench.harness.store import schema as t

V = TypeVar("V")
Rows = Sequence[tuple[Any, ...]]
_MANY = 500
"""Keys looked up at once; databases bound the number of parameters."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGeneration:
    """One answer of a generator, under the key of everything that decided it."""

    id: str
    generator: str
    version: str
    prompt_digest: str
    prompt: str
    sampling: str
    idx: int
    text: str
    finish: str
    tokens_in: int
    tokens_out: int
    seconds: float
    cached: int = 0
    """How many of `tokens_in` the service had at hand."""
    price: float | None = None
    """US dollars, as of when it was asked; None where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBits:
    """What a target costs after a prompt."""

    language: str
    prompt_digest: str
    prompt: str
    target_digest: str
    bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """A stretch of the final prompt, or one that was left out of it."""

    kind: str
    places: str
    """JSON: a list of [path, start, end]."""
    score: float | None
    tokens: int
    """0 for one that was left out and whose tokens are not known."""
    state: str
    """``kept``, ``cut`` or ``dropped``."""
    reason: str
    char_start: int | None
    char_end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """What the tests said of one text, under the key of everything that decided it."""

    key: str
    sample_digest: str
    text_digest: str
    image: str
    sandbox: str
    """Name of the back end."""
    verdict: str
    """Never ``BROKEN``: that is no verdict to use again."""
    reason: str
    tests_run: int
    output: str
    seconds: float
    peak_bytes: int
    flags: tuple[str, ...] = ()
    """What of the text is not plain, with the lines. It changes no score."""
    earlier: str = ""
    """What the tests said before, if they were run once more at once, with no other job beside them; else empty."""
    run: str = ""
    """The run that it alone counts for, where somebody else's shard brought it; empty for one made here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompletion:
    """One completion and its scores."""

    generation_id: str
    status: Status
    text: str
    flags: tuple[str, ...]
    scores: Mapping[tuple[str, str], float | None]
    """(profile, metric) -> value in the profile's own scale."""
    verdict: str | None = None
    """Key of the stored verdict; None for lines, for an empty completion, and for what nobody judged yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAccess:
    """What a strategy looked at for a sample, and what of that, and of what it showed, was of use."""

    opened: int
    """Files that it read."""
    searches: int
    characters: int
    """That it was handed."""
    explored_files: int
    """In which it was handed something."""
    explored_recall: float | None
    """Share of the definitions that the answer uses; None where none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Everything about one sample of a run; stored whole or not at all."""

    sample_id: str
    status: Status
    prompt_digest: str
    prompt: str
    context_tokens: int
    flags: tuple[str, ...]
    strategy_seconds: float
    """Time the strategy worked, its waiting for the model left out."""
    generator_seconds: float
    calls: tuple[tuple[str, str], ...]
    """(role, generation id) in order, the final one last."""
    blocks: tuple[StoredBlock, ...]
    completions: tuple[StoredCompletion, ...]
    bits: tuple[StoredBits, ...]
    scores: Mapping[tuple[str, str], float | None] = dataclasses.field(default_factory=dict)
    """(profile, metric) -> value of the prompt, where the run has no completions that could have it."""
    engines: tuple[EngineUse, ...] = ()
    """The work of context engines."""
    access: StoredAccess | None = None
    """None where no strategy worked, or nobody noted it."""

    @property
    def all_scores(self) -> tuple[Mapping[tuple[str, str], float | None], ...]:
        """The scores of each completion; those of the prompt alone where there is none."""
        return tuple(completion.scores for completion in self.completions) or (self.scores,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConstruction:
    """How long one thing took that a repository is searched by, made once for many samples."""

    repo: str
    stage: str
    """What was made, e.g. ``units function()`` or ``index bm25 of function()``."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFault:
    """Why a sample is missing."""

    sample_id: str
    kind: str
    """``machine`` or ``strategy``."""
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A sample of a set that no score is to rest on."""

    sample_id: str
    mark: str
    """``broken`` (its own answer fails its tests) or ``vacuous`` (an empty body passes them)."""
    reason: str = ""
    image: str = ""
    """What its tests were run in, when it was found out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The file that a run was imported from."""

    format: str
    source: str
    """The path as given; of reference results the name of their standard set."""
    sha256: str

    @property
    def origin(self) -> Origin:
        """The origin of a run that was read from it."""
        return Origin.REFERENCE if self.format == Origin.REFERENCE else Origin.IMPORTED


def sample_row(set_digest: str, record: Sample) -> Row:
    """Return the row of a sample's public facts; its answer is not stored."""
    return {
        "set_digest": set_digest,
        "id": record.id,
        "benchmark": record.benchmark,
        "language": str(record.language),
        "kind": str(record.kind),
        "subkind": record.subkind,
        "repo": record.repo,
        "path": record.path,
        "line": record.cursor.line,
        "col": record.cursor.column,
    }


def verdict_row(record: StoredVerdict) -> Row:
    """Return the row of a verdict."""
    row = {key: clean(value) for key, value in dataclasses.asdict(record).items()}
    return {**row, "flags": json.dumps(record.flags)}


def read_flags(stored: str | None) -> tuple[str, ...]:
    """Return flags as they were before they were stored; none where there is no row."""
    return tuple(json.loads(stored)) if stored else ()


def number_or_null(value: float | None) -> float | None:
    """Write no number as NULL: SQLite does it by itself, other databases would keep a NaN; so with an infinite one."""
    return value if value is not None and math.isfinite(value) else None


def versions(run: Any) -> dict[str, str]:
    """Return what made a run, from its row; an import says nothing of the generator's version."""
    named = {
        "ctxbench": run.code,
        "strategy": run.strategy_version,
        "generator": run.generator_version,
        "coder": run.coder,
        "tokenizer": run.tokenizer,
        "summariser": run.summariser_version,
    }
    return {name: version for name, version in named.items() if version}


def shown_samples(run: Any) -> str:
    """Return how the sample set of a run is named, from the run's row."""
    return samples_label(run.samples, limit=run.sample_limit, after=run.samples_after)


def shown_generator(run: Any) -> str:
    """Name a run's generator, apart where it was shown what follows the cursor, or where another one summarised.

    Runs are ranked together only where these names are equal.

    Args:
        run: a row of the table of runs.
    """
    return generator_label(
        redacted(run.generator),
        fim=json.loads(run.sampling).get("fim", False),
        summariser=redacted(run.summariser),
        summarises_tests=run.summarises_tests,
        released_template=is_released(run.summariser_version),
        tokenizer=run.tokenizer,
    )


def append(connection: Connection, table: Table, content: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to one table."""
    if content:
        connection.execute(insert(table), list(content))


def append_new(connection: Connection, table: Table, key: str, content: Mapping[str, Mapping[str, Any]]) -> None:
    """Append the rows whose key is not there yet."""
    stored_keys: set[str] = set()
    for part in parts(sorted(content)):
        stored_keys.update(connection.scalars(select(table.c[key]).where(table.c[key].in_(part))))
    # Sorted, so that writers at once meet the same rows in one order.
    append(connection, table, [content[row_key] for row_key in sorted(content.keys() - stored_keys)])


def append_days(connection: Connection, set_digest: str, days: Mapping[str, date | None]) -> None:
    """Append the days of samples' code that are known, and not there yet."""
    d = t.DATED.c
    stored_ids = set(connection.scalars(select(d.sample_id).where(d.set_digest == set_digest)))
    append(
        connection,
        t.DATED,
        [
            {"set_digest": set_digest, "sample_id": sample, "day": day.isoformat()}
            for sample, day in days.items()
            if day is not None and sample not in stored_ids
        ],
    )


def clean(value: V) -> V:
    """Replace what no database takes: lone surrogates and NUL; other values pass."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    return value


def load(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append rows that are not there yet.

    Args:
        connection: in a transaction.
        table: where to.
        names: of the columns, in the order of a row's values.
        rows: their values.

    Raises:
        IntegrityError: if one of them is there.
    """
    if rows:
        connection.exec_driver_sql(_insert(connection, table, names), list(rows))


def merge(connection: Connection, table: Table, names: Sequence[str], rows: Rows) -> None:
    """Append those of the rows that are not there yet; another process may be appending equal ones.

    Writers meet equal rows in the same order, that of their first column, so that none waits for one that waits for it.
    """
    if rows:
        statement = f"{_insert(connection, table, names)} ON CONFLICT DO NOTHING"
        connection.exec_driver_sql(statement, sorted(rows, key=lambda row: row[0]))


def numbers(connection: Connection, table: Table, name: str, keys: Sequence[str]) -> dict[str, int]:
    """Return the key of rows -> their numbers, of those that are there.

    Args:
        connection: to the database.
        table: one with a column ``number``.
        name: the column of the keys.
        keys: what to look for.
    """
    column, number = table.c[name], table.c.number
    stored: dict[str, int] = {}
    for part in parts(keys):
        stored.update((key, at) for key, at in connection.execute(select(column, number).where(column.in_(part))))
    return stored


def name_numbers(
    connection: Connection, table: Table, names: Sequence[str], keys: Set[tuple[str, ...]]
) -> Mapping[tuple[str, ...], int]:
    """Return key -> number, in a small table that gives every key a number; keys without one are given one."""
    columns: list[Column[Any]] = [table.c[name] for name in names]
    query = select(*columns, table.c.number).order_by(table.c.number.desc())
    if len(keys) < 20:
        query = query.where(tuple_(*columns).in_(sorted(keys)))

    def stored() -> dict[tuple[str, ...], int]:
        return {tuple(key): number for *key, number in connection.execute(query)}

    known_numbers = stored()
    new = sorted(set(keys) - known_numbers.keys())
    if new:
        merge(connection, table, names, new)
        known_numbers = stored()
    return known_numbers


def parts(keys: Sequence[V]) -> Iterator[Sequence[V]]:
    """Split keys into as many as one statement may look up."""
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]


def _insert(connection: Connection, table: Table, names: Sequence[str]) -> str:
    place = "?" if connection.dialect.name == "sqlite" else "%s"
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([place] * len(names))})"

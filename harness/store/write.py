"""Records for the store (finished samples, completions, verdicts, faults), and functions that append their rows."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from sqlalchemy import Column, Connection, Table, select, tuple_

from ctxbench.bench.engines.types import EngineUse
from ctxbench.bench.secrets import redacted
from ctxbench.harness.generators.base import Sampling
from ctxbench.harness.results import Origin, Status
from ctxbench.harness.run.spec import RunSpec

V = TypeVar("V")
Rows = Sequence[tuple[Any, ...]]
_PLAIN_CHOICES = (
    *("samples", "samples_digest", "set_size", "strategy", "strategy_version", "generator_version", "coder", "n"),
    *("seed", "tokenizer", "code", "summariser_version", "summarises_tests"),
)
_MANY = 500
"""Maximum number of keys per lookup. Databases limit the number of parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGeneration:
    """A stored answer of a generator. `id` is a digest of everything that determines the answer."""

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
    """Number of the `tokens_in` that the service read from its cache."""
    price: float | None = None
    """Price in US dollars at the time of the call; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBits:
    """The cost of the reference text after a prompt, in bits."""

    language: str
    prompt_digest: str
    prompt: str
    target_digest: str
    bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """A block in the final prompt, or a block dropped from it."""

    kind: str
    places: str
    score: float | None
    tokens: int
    """Number of tokens; 0 for a dropped block of unknown size."""
    state: str
    reason: str
    char_start: int | None
    char_end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """A stored verdict of tests. `key` is a digest of everything that determines the verdict."""

    key: str
    sample_digest: str
    text_digest: str
    image: str
    sandbox: str
    verdict: str
    """Verdict, such as ``PASSED``; never ``BROKEN``, because broken results are not stored."""
    reason: str
    tests_run: int
    output: str
    seconds: float
    peak_bytes: int
    flags: tuple[str, ...] = ()
    """Suspicious features of the completion, with their lines. Flags do not change stored scores."""
    earlier: str = ""
    """Verdict and reason of the first test run, if the tests were repeated alone; otherwise empty."""
    run: str = ""
    """The only run for which a verdict from a merged shard counts; empty for a verdict computed here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCompletion:
    """A completion to store, with its scores."""

    generation_id: str
    status: Status
    text: str
    flags: tuple[str, ...]
    scores: Mapping[tuple[str, str], float | None]
    """Values on the profile's scale, by (profile, metric)."""
    verdict: str | None = None
    """Key of the verdict; None for lines, blank completions and completions that are not judged yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAccess:
    """Counts of what a strategy read in a repository for a sample, and the share of needed definitions that it read."""

    opened: int
    searches: int
    characters: int
    explored_files: int
    explored_recall: float | None
    """Share (0 to 1) of definitions used by the reference that the strategy read; None if no definition is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A finished sample of a run with all its data. It is stored completely or not at all."""

    sample_id: str
    status: Status
    prompt_digest: str
    prompt: str
    context_tokens: int
    flags: tuple[str, ...]
    strategy_seconds: float
    """Seconds that the strategy ran, excluding waiting for the model or for a program in the sandbox."""
    generator_seconds: float
    calls: tuple[tuple[str, str], ...]
    blocks: tuple[StoredBlock, ...]
    completions: tuple[StoredCompletion, ...]
    bits: tuple[StoredBits, ...]
    scores: Mapping[tuple[str, str], float | None] = dataclasses.field(default_factory=dict)
    """Values for the prompt, by (profile, metric), for runs without completions."""
    engines: tuple[EngineUse, ...] = ()
    access: StoredAccess | None = None
    """Record of what the strategy read; None if no strategy ran or the data is missing."""

    @property
    def all_scores(self) -> tuple[Mapping[tuple[str, str], float | None], ...]:
        """Scores of each completion; without completions, those of the prompt."""
        return tuple(completion.scores for completion in self.completions) or (self.scores,)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConstruction:
    """The seconds to build one search structure of a repository, which many samples share."""

    repo: str
    stage: str
    """Name of the structure, such as ``units function()`` or ``index bm25 of function()``."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFault:
    """The reason why a sample is missing."""

    sample_id: str
    kind: str
    """``machine`` or ``strategy``."""
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The mark of an invalid sample of a set. Boards exclude the sample by default."""

    sample_id: str
    mark: str
    """``broken`` (its reference fails its tests) or ``vacuous`` (an empty body passes them)."""
    reason: str = ""
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The file from which a run was imported."""

    format: str
    source: str
    """Path as the user gave it; for reference results, the standard set's name; for a package, its id."""
    sha256: str

    @property
    def origin(self) -> Origin:
        """Origin of the results in the file: reference results or other imported results."""
        return Origin.REFERENCE if self.format == Origin.REFERENCE else Origin.IMPORTED


def read_flags(stored: str | None) -> tuple[str, ...]:
    """Parse stored flags; return an empty tuple for None."""
    return tuple(json.loads(stored)) if stored else ()


def spec_of(run: Any) -> RunSpec:
    """Return the choices of a run from its database row, without secrets. The result's id may differ from the run's."""
    sampling = json.loads(run.sampling)
    return RunSpec(
        **{name: getattr(run, name) for name in _PLAIN_CHOICES},
        limit=run.sample_limit,
        after=None if run.samples_after is None else date.fromisoformat(run.samples_after),
        generator=redacted(run.generator),
        sampling=Sampling(**{**sampling, "stop": tuple(sampling["stop"])}),
        summariser=redacted(run.summariser),
    )


def clean(value: V) -> V:
    """Return a value that all databases accept: None for NaN and infinity, texts without lone surrogates or NUL."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    if isinstance(value, float) and not math.isfinite(value):
        return None  # type: ignore[return-value]
    return value


@functools.cache
def _columns(table: Table) -> tuple[str, ...]:
    """Return the columns to write, without `number` where the database numbers the rows itself."""
    return tuple(column.name for column in table.c if not (column.name == "number" and column.primary_key))


def row_of(table: Table, record: object, **others: Any) -> tuple[Any, ...]:
    """Return a row built from `others` and from the fields of a record that have the names of the columns."""
    return tuple(clean(others[name] if name in others else getattr(record, name)) for name in _columns(table))


def load(connection: Connection, table: Table, rows: Rows) -> None:
    """Append rows, given as tuples in the order of `row_of`.

    Raises:
        IntegrityError: if a row is already stored.
    """
    if rows:
        connection.exec_driver_sql(_insert(connection, table), list(rows))


def merge(connection: Connection, table: Table, rows: Rows) -> int:
    """Append the rows that are not stored yet; return their number.

    Rows are sorted, so that concurrent writers cannot deadlock.
    """
    if not rows:
        return 0
    statement = f"{_insert(connection, table)} ON CONFLICT DO NOTHING"
    return connection.exec_driver_sql(statement, sorted(rows, key=lambda row: row[:2])).rowcount


def numbers(connection: Connection, table: Table, name: str, keys: Sequence[str]) -> dict[str, int]:
    """Return the row numbers of the stored keys, by key. `name` is the column that contains the keys."""
    column, number = table.c[name], table.c.number
    stored: dict[str, int] = {}
    for part in parts(keys):
        stored.update((key, at) for key, at in connection.execute(select(column, number).where(column.in_(part))))
    return stored


def name_numbers(connection: Connection, table: Table, keys: Set[tuple[str, ...]]) -> Mapping[tuple[str, ...], int]:
    """Return row numbers in a table of names, by key, and add rows for new keys."""
    columns: list[Column[Any]] = [table.c[name] for name in _columns(table)]
    query = select(*columns, table.c.number).order_by(table.c.number.desc())
    if len(keys) < 20:
        query = query.where(tuple_(*columns).in_(sorted(keys)))

    def stored() -> dict[tuple[str, ...], int]:
        return {tuple(key): number for *key, number in connection.execute(query)}

    known_numbers = stored()
    new = sorted(set(keys) - known_numbers.keys())
    if new:
        merge(connection, table, new)
        known_numbers = stored()
    return known_numbers


def parts(keys: Sequence[V]) -> Iterator[Sequence[V]]:
    """Split keys into parts that all databases accept in one lookup."""
    for start in range(0, len(keys), _MANY):
        yield keys[start : start + _MANY]


def _insert(connection: Connection, table: Table) -> str:
    place, names = "?" if connection.dialect.name == "sqlite" else "%s", _columns(table)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([place] * len(names))})"

"""Records handed to the store (a finished sample with its completions, verdicts, faults), their rows, their writing.

Rows are appended within a transaction that the caller holds; what is there already stays as it is.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, insert, select

from ctxbench.bench.secrets import redacted
from ctxbench.bench.types import Sample
from ctxbench.harness.results import Origin, Status, generator_label, samples_label
from ctxbench.harness.store import schema as t

Row = dict[str, Any]
V = TypeVar("V")
_MANY = 500
"""Keys looked up at once; databases bound the number of parameters."""


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
    """Names in `bench.testing.types.FLAGS`: what the text reaches for. They change no score."""
    earlier: str = ""
    """What the tests said before, if they were run once more at once, with no other job beside them; else empty."""


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


def clean(value: V) -> V:
    """Replace what no database takes: lone surrogates and NUL; other values pass."""
    if isinstance(value, str):
        # "replace" writes a question mark for each lone surrogate.
        return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")  # type: ignore[return-value]
    return value


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


def prompt_rows(texts: Mapping[str, str]) -> dict[str, Row]:
    """Return digest -> row."""
    return {digest: {"digest": digest, "text": clean(text)} for digest, text in texts.items()}


def generation_row(record: StoredGeneration) -> Row:
    """Return the row of an answer; its prompt has a row of its own."""
    return {
        "id": record.id,
        "generator": record.generator,
        "version": record.version,
        "prompt_digest": record.prompt_digest,
        "sampling": record.sampling,
        "idx": record.idx,
        "text": clean(record.text),
        "finish": clean(record.finish),
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "seconds": record.seconds,
        "cached": record.cached,
        "price": record.price,
    }


def verdict_row(record: StoredVerdict) -> Row:
    """Return the row of a verdict."""
    row = {key: clean(value) for key, value in dataclasses.asdict(record).items()}
    return {**row, "flags": json.dumps(record.flags)}


def read_flags(stored: str | None) -> tuple[str, ...]:
    """Return flags as they were before they were stored; none where there is no row."""
    return tuple(json.loads(stored)) if stored else ()


def finished_rows(run: str, record: Finished) -> dict[Table, list[Row]]:
    """Return the rows of a finished sample, parents first."""
    key = {"run_id": run, "sample_id": record.sample_id}
    result = {
        **key,
        "status": str(record.status),
        "prompt_digest": record.prompt_digest,
        "context_tokens": record.context_tokens,
        "calls": len(record.calls),
        "flags": json.dumps(record.flags),
        "strategy_seconds": record.strategy_seconds,
        "generator_seconds": record.generator_seconds,
    }
    calls = [
        {**key, "ordinal": ordinal, "role": clean(role), "generation_id": id_}
        for ordinal, (role, id_) in enumerate(record.calls)
    ]
    return {t.RESULT: [result], t.CALL: calls, t.BLOCK: _blocks(key, record), **_completions(key, record)}


def _blocks(key: Row, record: Finished) -> list[Row]:
    return [
        {
            **key,
            "ordinal": ordinal,
            "kind": block.kind,
            "places": clean(block.places),
            "score": block.score,
            "tokens": block.tokens,
            "state": block.state,
            "reason": clean(block.reason),
            "char_start": block.char_start,
            "char_end": block.char_end,
        }
        for ordinal, block in enumerate(record.blocks)
    ]


def _completions(key: Row, record: Finished) -> dict[Table, list[Row]]:
    completions, scores, judged = [], [], []
    for idx, completion in enumerate(record.completions):
        completions.append(
            {
                **key,
                "idx": idx,
                "generation_id": completion.generation_id,
                "status": str(completion.status),
                "text": clean(completion.text),
                "flags": json.dumps(completion.flags),
            }
        )
        scores += [
            {**key, "idx": idx, "profile": profile, "metric": metric, "value": number_or_null(value)}
            for (profile, metric), value in sorted(completion.scores.items())
        ]
        if completion.verdict is not None:
            judged.append({**key, "idx": idx, "verdict_key": completion.verdict})
    return {t.COMPLETION: completions, t.SCORE: scores, t.JUDGED: judged}


def number_or_null(value: float | None) -> float | None:
    """Write no number as NULL: SQLite does it by itself, other databases would keep a NaN."""
    return None if value is None or math.isnan(value) else value


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
    return samples_label(run.samples, limit=run.sample_limit, after=run.samples_after, until=until_of(run))


def until_of(run: Any) -> tuple[str, ...]:
    """Return the two strategies between which a decision ends a run, from the run's row; empty if none does."""
    return tuple(json.loads(run.until_decided)) if run.until_decided else ()


def shown_generator(run: Any) -> str:
    """Name a run's generator, apart where it was shown what follows the cursor, or where another one summarised.

    Runs are ranked together only where these names are equal.

    Args:
        run: a row of the table of runs.
    """
    # Older versions stored what a user had spelled, a key in `extra=` for one.
    return generator_label(
        redacted(run.generator),
        fim=json.loads(run.sampling).get("fim", False),
        summariser=redacted(run.summariser),
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
    append(connection, table, [row for row_key, row in content.items() if row_key not in stored_keys])


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


def append_generations(connection: Connection, generations: Sequence[StoredGeneration]) -> None:
    """Append answers with their prompts; those that are there already stay as they are."""
    prompts = {generation.prompt_digest: generation.prompt for generation in generations}
    append_new(connection, t.PROMPT, "digest", prompt_rows(prompts))
    append_new(
        connection, t.GENERATION, "id", {generation.id: generation_row(generation) for generation in generations}
    )


def append_verdicts(connection: Connection, verdicts: Iterable[StoredVerdict]) -> None:
    """Append verdicts; those that are there already stay as they are."""
    append_new(connection, t.VERDICT, "key", {verdict.key: verdict_row(verdict) for verdict in verdicts})


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
    append_new(connection, t.PROMPT, "digest", prompt_rows(prompts))
    content: dict[Table, list[Row]] = defaultdict(list)
    for sample in new:
        for table, table_rows in finished_rows(run, sample).items():
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

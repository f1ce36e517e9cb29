"""The database's tables and views. Rows are appended and never changed.

    run 1─* planned 1─0..1 result 1─* call, block, completion 1─* score
    block 1─* block_gain                             (measured later, by `ctxbench diagnose`)
    run 1─* attempt 1─0..1 outcome, 1─* fault        (the only tables with start or end times)
    attempt 1─* construction                         (seconds per repository and stage)
    prompt 1─* generation, bits                      (caches by content, shared by all runs)
    pack 1─* prompt                                  (prompts that were stored together, compressed)
    verdict 1─* judged *─1 completion                (verdicts by content, shared by all runs)
    run 1─0..1 imported, 1─* remark                  (the run's import file; remarks shown with the run)
    result 1─* engine_use                            (what context engines did for a sample)
    result 1─0..1 access                             (what the strategy read)
    run 1─* summarised *─1 generation                (summaries of APIs, which belong to no sample)
    mark                                             (samples excluded from scores, by set)
    dated                                            (dates of the samples' code, by set)
    run 1─* named                                    (names that users give to the run)
    cutoff                                           (last day of a generator's training data, from its spec)

A planned sample without a result row is missing. A result row is written in one transaction with all rows below it. The
row's key prevents a second result of the sample.

Narrow tables, `…_fact`, store millions of rows and refer to everything by number. Numbers identify runs, samples, a
run's sample (`key`), a profile with a metric (`measure`), a model with its sampling (`source`), prompts and answers.
Views replace the numbers by names: `score` shows `score_fact`. Rows are written to the narrow tables. They are read
from the views or, in bulk, from the narrow tables. Rows of one sample of one run share a `key`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    Select,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    select,
)
from sqlalchemy.schema import ForeignKeyConstraint, SchemaItem

SCHEMA_NUMBER = 28
"""Version of the tables and views, increased with each change. ctxbench refuses a database with another number."""
METADATA = MetaData()
VIEWS = MetaData()
VIEW_QUERIES: dict[str, Select[Any]] = {}
_KEY = String(64)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _key(parent: str) -> Column[int]:
    return Column("key", ForeignKey(f"{parent}.key"), primary_key=True, autoincrement=False)


def _number(name: str) -> Column[int]:
    """Define a column of a composite key, without SQLite's automatic numbering."""
    return Column(name, SmallInteger, primary_key=True, autoincrement=False)


def _fact(name: str, *items: SchemaItem) -> Table:
    """Define a narrow table, whose rows SQLite stores in the order of their key."""
    return Table(f"{name}_fact", METADATA, *items, sqlite_with_rowid=False)


def run_number(run: str | BindParameter[str]) -> ScalarSelect[int]:
    """Return a subquery for the number of the run whose id is `run`."""
    return select(RUN.c.number).where(RUN.c.id == run).scalar_subquery()


SCHEMA = Table("schema_number", METADATA, Column("number", Integer, primary_key=True, autoincrement=False))
"""Contains one row: the `SCHEMA_NUMBER` of the version that created the tables."""
RUN = Table(
    "run",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("samples", Text, nullable=False),
    Column("samples_digest", _KEY, nullable=False),
    Column("set_size", Integer, nullable=False),
    Column("sample_limit", Integer),
    *_texts("strategy", "strategy_version", "generator", "generator_version", "coder", "sampling"),
    Column("n", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("tokenizer", Text, nullable=False),
    Column("code", Text, nullable=False),
    # YYYY-MM-DD if only samples dated after that day were chosen from the set.
    Column("samples_after", String(10)),
    # Empty if the run's own generator wrote the summaries.
    Column("summariser", Text, nullable=False),
    Column("summariser_version", Text, nullable=False),
    Column("summarises_tests", Boolean, nullable=False),
    Column("number", Integer),
    Index("run_number_key", "number", unique=True),
)
SAMPLE = Table(
    "sample",
    METADATA,
    Column("set_digest", _KEY, primary_key=True),
    Column("id", String(500), primary_key=True),
    *_texts("benchmark", "language", "kind", "subkind", "repo", "path"),
    Column("line", Integer, nullable=False),
    Column("col", Integer, nullable=False),
    Column("number", Integer),
    Index("sample_number_key", "number", unique=True),
    # This index is for lookups by sample id without a set.
    Index("sample_by_id", "id"),
)
DATED = Table(
    "dated",
    METADATA,
    # Dates have their own table, because they may become known after a run has stored the samples.
    Column("set_digest", _KEY, primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    # YYYY-MM-DD, in UTC.
    Column("day", String(10), nullable=False),
)
CUTOFF = Table(
    "cutoff",
    METADATA,
    # A canonical spec. If several days are stored for it, the last stored day counts.
    Column("generator", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("day", String(10), nullable=False),
)
PLANNED_FACT = Table(
    "planned_fact",
    METADATA,
    Column("key", Integer, primary_key=True, autoincrement=False),
    Column("run", ForeignKey("run.number"), nullable=False),
    Column("sample", ForeignKey("sample.number"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    UniqueConstraint("run", "sample"),
)
PACK = Table(
    "pack",
    METADATA,
    Column("number", Integer, primary_key=True),
    # Prompts in UTF-8, concatenated and compressed by LZMA.
    Column("data", LargeBinary, nullable=False),
)
PROMPT = Table(
    "prompt_fact",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("digest", _KEY, nullable=False, unique=True),
    Column("pack", ForeignKey("pack.number"), nullable=False),
    # Position in the pack, in bytes.
    Column("start", Integer, nullable=False),
    Column("size", Integer, nullable=False),
)
SOURCE = Table(
    "source",
    METADATA,
    # If two writers number the same entry at once, the entry gets two numbers.
    Column("number", Integer, primary_key=True),
    *_texts("generator", "version", "sampling"),
)
GENERATION_FACT = Table(
    "generation_fact",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("id", _KEY, nullable=False, unique=True),
    Column("source", ForeignKey("source.number"), nullable=False),
    Column("prompt", ForeignKey("prompt_fact.number"), nullable=False),
    Column("idx", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish", Text, nullable=False),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    # Part of `tokens_in` that the service read from its cache.
    Column("cached", Integer, nullable=False),
    # US dollars at the time of the call; null if unknown.
    Column("price", Float),
)
CODER = Table(
    "coder",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("coder", String(500), nullable=False),
    Column("language", String(32), nullable=False),
    UniqueConstraint("coder", "language"),
)
BITS_FACT = _fact(
    "bits",
    Column("prompt", ForeignKey("prompt_fact.number"), primary_key=True, autoincrement=False),
    Column("coder", ForeignKey("coder.number"), primary_key=True, autoincrement=False),
    Column("target_digest", _KEY, primary_key=True),
    Column("bits", Float, nullable=False),
)
RESULT_FACT = Table(
    "result_fact",
    METADATA,
    _key("planned_fact"),
    Column("prompt", ForeignKey("prompt_fact.number"), nullable=False),
    Column("status", Text, nullable=False),
    Column("context_tokens", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("flags", Text, nullable=False),
    Column("strategy_seconds", Float, nullable=False),
    Column("generator_seconds", Float, nullable=False),
)
CALL_FACT = _fact(
    "call",
    _key("result_fact"),
    _number("ordinal"),
    Column("role", Text, nullable=False),
    Column("generation", ForeignKey("generation_fact.number"), nullable=False),
)
ENGINE_FACT = _fact(
    "engine_use",
    _key("result_fact"),
    Column("engine", String(500), primary_key=True),
    *_texts("version", "mode"),
    Column("index_seconds", Float, nullable=False),
    Column("query_seconds", Float, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("places", Integer, nullable=False),
    Column("cut", Integer, nullable=False),
    Column("index_bytes", BigInteger, nullable=False),
)
ACCESS_FACT = _fact(
    "access",
    _key("result_fact"),
    *(Column(name, Integer, nullable=False) for name in ("opened", "searches", "characters", "explored_files")),
    Column("explored_recall", Float),
)
BLOCK_FACT = _fact(
    "block",
    _key("result_fact"),
    _number("ordinal"),
    Column("kind", Text, nullable=False),
    Column("places", Text, nullable=False),
    Column("score", Float),
    Column("tokens", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("char_start", Integer),
    Column("char_end", Integer),
)
GAIN_FACT = _fact(
    "block_gain",
    Column("key", Integer, primary_key=True, autoincrement=False),
    _number("ordinal"),
    # The coder that measured the gain. Another version of the coder may measure it again.
    Column("coder", String(500), primary_key=True),
    Column("gain", Float, nullable=False),
    ForeignKeyConstraint(["key", "ordinal"], ["block_fact.key", "block_fact.ordinal"]),
)
COMPLETION_FACT = _fact(
    "completion",
    _key("result_fact"),
    _number("idx"),
    Column("generation", ForeignKey("generation_fact.number"), nullable=False),
    Column("status", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("flags", Text, nullable=False),
)
MEASURE = Table(
    "measure",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("profile", String(64), nullable=False),
    Column("metric", String(64), nullable=False),
    UniqueConstraint("profile", "metric"),
)
SCORE_FACT = _fact(
    "score",
    # The measure comes before the sample, so that a leaderboard reads one contiguous range. No foreign keys: a server
    # would look up three rows for each of many scores, and a score is only written after its result.
    Column("run", Integer, primary_key=True, autoincrement=False),
    _number("measure"),
    Column("key", Integer, primary_key=True, autoincrement=False),
    _number("idx"),
    Column("value", Float),
)
VERDICT = Table(
    "verdict",
    METADATA,
    # A digest of the next three columns and of everything else that decides a verdict.
    Column("key", _KEY, primary_key=True),
    Column("sample_digest", _KEY, nullable=False),
    Column("text_digest", _KEY, nullable=False),
    *_texts("image", "sandbox", "verdict", "reason"),
    Column("tests_run", Integer, nullable=False),
    Column("output", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("peak_bytes", BigInteger, nullable=False),
    Column("flags", Text, nullable=False),
    # Verdict and reason of the first test run, if the tests were repeated at once; otherwise empty.
    Column("earlier", Text, nullable=False),
    # The only run for which a verdict from a merged shard counts; empty for other verdicts.
    Column("run", Text, nullable=False),
)
JUDGED_FACT = _fact(
    "judged",
    Column("key", Integer, primary_key=True, autoincrement=False),
    _number("idx"),
    Column("verdict_key", ForeignKey("verdict.key"), nullable=False),
    ForeignKeyConstraint(["key", "idx"], ["completion_fact.key", "completion_fact.idx"]),
)
ATTEMPT = Table(
    "attempt",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("started", Float, nullable=False),
    Column("isolation", Text, nullable=False),
    # Whether the attempt's process held the lock on the run until the attempt ended.
    Column("locked", Integer, nullable=False, server_default="0"),
    # Concurrency of the attempt; null if not recorded.
    Column("workers", Integer),
    Column("requests", Integer),
    Column("cores", Integer),
)
OUTCOME = Table(
    "outcome",
    METADATA,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("ended", Float, nullable=False),
    Column("reason", Text, nullable=False),
    Column("finished", Integer, nullable=False),
    Column("missing", Integer, nullable=False),
)
FAULT = Table(
    "fault",
    METADATA,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    *_texts("sample_id", "kind", "message", "detail"),
)
CONSTRUCTION = Table(
    "construction",
    METADATA,
    Column("attempt_id", ForeignKey("attempt.id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("repo", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("seconds", Float, nullable=False),
)
SUMMARISED_FACT = Table(
    "summarised_fact",
    METADATA,
    Column("run", ForeignKey("run.number"), primary_key=True, autoincrement=False),
    Column("generation", ForeignKey("generation_fact.number"), primary_key=True, autoincrement=False),
)
IMPORTED = Table(
    "imported",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    Column("format", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("sha256", _KEY, nullable=False),
)
MARK = Table(
    "mark",
    METADATA,
    # No foreign key: samples are marked when their set is built, before a run has stored them.
    Column("set_digest", _KEY, primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("mark", String(32), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("image", Text, nullable=False),
)
REMARK = Table(
    "remark",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("text", Text, nullable=False),
)

NAMED = Table(
    "named",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    # A run's last name counts.
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)
_NUMBERED: Mapping[str, tuple[Table, Sequence[ColumnElement[Any]]]] = {
    "run": (RUN, [RUN.c.id.label("run_id")]),
    "sample": (SAMPLE, [SAMPLE.c.id.label("sample_id")]),
    "prompt": (PROMPT, [PROMPT.c.digest.label("prompt_digest")]),
    "generation": (GENERATION_FACT, [GENERATION_FACT.c.id.label("generation_id")]),
    "source": (SOURCE, [SOURCE.c.generator, SOURCE.c.version, SOURCE.c.sampling]),
    "coder": (CODER, [CODER.c.coder, CODER.c.language]),
    "measure": (MEASURE, [MEASURE.c.profile, MEASURE.c.metric]),
}
"""Number column -> the table to which it refers, and the columns that a view shows instead of the number."""


def _view(facts: Table, *others: ColumnElement[Any]) -> Table:
    """Define the view of a narrow table: it replaces numbers by names, and a key by run and sample."""
    by_number = {
        column.name: column for column in facts.c if column.name in _NUMBERED and not isinstance(column.type, String)
    }
    joined: FromClause = facts
    if "key" in facts.c and facts is not PLANNED_FACT:
        joined = joined.join(PLANNED_FACT, PLANNED_FACT.c.key == facts.c.key)
        by_number = {"run": PLANNED_FACT.c.run, "sample": PLANNED_FACT.c.sample} | by_number
    names: list[ColumnElement[Any]] = []
    for name, number in by_number.items():
        table, shown = _NUMBERED[name]
        joined, names = joined.join(table, table.c.number == number), [*names, *shown]
    own = [column for column in facts.c if column.name not in by_number]
    view = facts.name.removesuffix("_fact")
    VIEW_QUERIES[view] = query = select(*names, *others, *own).select_from(joined)
    return Table(view, VIEWS, *(Column(column.name, column.type) for column in query.selected_columns))


PLANNED = _view(PLANNED_FACT, SAMPLE.c.set_digest)
GENERATION, BITS = _view(GENERATION_FACT), _view(BITS_FACT)
RESULT, CALL, COMPLETION = _view(RESULT_FACT), _view(CALL_FACT), _view(COMPLETION_FACT)
BLOCK, BLOCK_GAIN, ACCESS, ENGINE_USE = _view(BLOCK_FACT), _view(GAIN_FACT), _view(ACCESS_FACT), _view(ENGINE_FACT)
SCORE, JUDGED = _view(SCORE_FACT), _view(JUDGED_FACT)


def key_of(run: str, sample: str) -> ScalarSelect[int]:
    """Return a subquery for the key of a run's sample, which does not read the run's other samples."""
    f, s = PLANNED_FACT.c, SAMPLE.c
    of_name = f.sample.in_(select(s.number).where(s.id == sample))
    return select(f.key).where(f.run == run_number(run), of_name).scalar_subquery()

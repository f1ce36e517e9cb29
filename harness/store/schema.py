"""The tables, as the newest migration leaves them. Rows are appended and never changed.

    run 1─* planned 1─0..1 result 1─* call, block, completion 1─* score
    block 1─* block_gain                             (priced afterwards, by `ctxbench diagnose`)
    run 1─* attempt 1─0..1 outcome, 1─* fault        (the only tables that tell the time)
    attempt 1─* construction                         (seconds a repository and stage)
    prompt 1─* generation, bits                      (caches by content, shared by all runs)
    verdict 1─* judged *─1 completion                (verdicts by content, shared by all runs)
    verdict 1─* rejudged *─1 verdict                 (what was said of the same content later)
    run 1─0..1 imported, 1─* remark                  (made elsewhere; what its reader must know)
    result 1─* engine_use                            (what context engines did for a sample)
    run 1─* summarised *─1 generation                (summaries of APIs, which belong to no sample)
    mark                                             (samples that no score is to rest on, by set)
    dated                                            (the days of samples' code, by set)
    twin                                             (what references and their twins cost, by set and coder)
    run 1─* labelled                                 (what people call it and say of it, and whether it is shown)
    cutoff                                           (up to which day a generator was trained, as its spec said)

A planned sample without a result row is missing. A result row is written in one transaction with
everything below it, and its key makes a second one impossible.

An older database is brought up to this version's schema through Alembic (`upgrade`); never down.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
    inspect,
    text,
)
from sqlalchemy.schema import ForeignKeyConstraint

from ctxbench.bench.errors import InputFault

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0014"
"""The newest migration under ``migrations/versions``; their numbers sort."""
METADATA = MetaData()
_KEY = String(64)


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _sample_key(parent: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["run_id", "sample_id"], [f"{parent}.run_id", f"{parent}.sample_id"])


RUN = Table(
    "run",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("samples", Text, nullable=False),
    Column("samples_digest", _KEY, nullable=False),
    Column("sample_limit", Integer),
    *_texts("strategy", "strategy_version", "generator", "generator_version", "coder", "sampling"),
    Column("n", Integer, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("tokenizer", Text, nullable=False),
    Column("code", Text, nullable=False),
    # YYYY-MM-DD where only samples dated after that day were chosen of the set.
    Column("samples_after", String(10)),
    # JSON: the two strategies between which a decision ends the run; null where it takes all its samples.
    Column("until_decided", Text),
    # Empty where the run's own generator wrote the summaries.
    Column("summariser", Text, nullable=False, server_default=""),
    Column("summariser_version", Text, nullable=False, server_default=""),
    Column("summarises_tests", Boolean, nullable=False, server_default=false()),
)
SAMPLE = Table(
    "sample",
    METADATA,
    Column("set_digest", _KEY, primary_key=True),
    Column("id", String(500), primary_key=True),
    *_texts("benchmark", "language", "kind", "subkind", "repo", "path"),
    Column("line", Integer, nullable=False),
    Column("col", Integer, nullable=False),
)
DATED = Table(
    "dated",
    METADATA,
    # Not a column of the samples: their days may become known after a run has put them in here.
    Column("set_digest", _KEY, primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    # YYYY-MM-DD, in UTC.
    Column("day", String(10), nullable=False),
)
TWIN = Table(
    "twin",
    METADATA,
    # A generator's memory of a sample is the same in every run.
    Column("set_digest", _KEY, primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("coder", String(500), primary_key=True),
    # Bits of the reference and of its twin; null where nothing in it can be renamed.
    Column("reference", Float),
    Column("twin", Float),
)
CUTOFF = Table(
    "cutoff",
    METADATA,
    # A canonical spec; of several days that were given for it the last one counts.
    Column("generator", Text, primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("day", String(10), nullable=False),
)
PLANNED = Table(
    "planned",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("set_digest", _KEY, nullable=False),
    Column("ordinal", Integer, nullable=False),
    ForeignKeyConstraint(["set_digest", "sample_id"], ["sample.set_digest", "sample.id"]),
)
PROMPT = Table("prompt", METADATA, Column("digest", _KEY, primary_key=True), Column("text", Text, nullable=False))
GENERATION = Table(
    "generation",
    METADATA,
    Column("id", _KEY, primary_key=True),
    Column("generator", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("prompt_digest", ForeignKey("prompt.digest"), nullable=False),
    Column("sampling", Text, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("finish", Text, nullable=False),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    # Of `tokens_in`, those that the service had at hand; 0 also in rows from before it was noted.
    Column("cached", Integer, nullable=False, server_default="0"),
    # US dollars, as of when it was asked; null where nobody knows.
    Column("price", Float),
)
BITS = Table(
    "bits",
    METADATA,
    Column("coder", String(500), primary_key=True),
    Column("language", String(32), primary_key=True),
    Column("prompt_digest", ForeignKey("prompt.digest"), primary_key=True),
    Column("target_digest", _KEY, primary_key=True),
    Column("bits", Float, nullable=False),
)
RESULT = Table(
    "result",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("status", Text, nullable=False),
    Column("prompt_digest", ForeignKey("prompt.digest"), nullable=False),
    Column("context_tokens", Integer, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("flags", Text, nullable=False),
    Column("strategy_seconds", Float, nullable=False),
    Column("generator_seconds", Float, nullable=False),
    _sample_key("planned"),
)
CALL = Table(
    "call",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("role", Text, nullable=False),
    Column("generation_id", ForeignKey("generation.id"), nullable=False),
    _sample_key("result"),
)
ENGINE_USE = Table(
    "engine_use",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("engine", String(500), primary_key=True),
    *_texts("version", "mode"),
    Column("index_seconds", Float, nullable=False),
    Column("query_seconds", Float, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("places", Integer, nullable=False),
    Column("cut", Integer, nullable=False),
    Column("index_bytes", BigInteger, nullable=False),
    _sample_key("result"),
)
BLOCK = Table(
    "block",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("places", Text, nullable=False),
    Column("score", Float),
    Column("tokens", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("char_start", Integer),
    Column("char_end", Integer),
    _sample_key("result"),
)
BLOCK_GAIN = Table(
    "block_gain",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("ordinal", Integer, primary_key=True),
    # What priced it: another version of it may be asked again.
    Column("coder", String(500), primary_key=True),
    Column("gain", Float, nullable=False),
    ForeignKeyConstraint(["run_id", "sample_id", "ordinal"], ["block.run_id", "block.sample_id", "block.ordinal"]),
)
COMPLETION = Table(
    "completion",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("generation_id", ForeignKey("generation.id"), nullable=False),
    Column("status", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("flags", Text, nullable=False),
    _sample_key("result"),
)
SCORE = Table(
    "score",
    METADATA,
    # Profile and metric stand before the sample, so that a leaderboard reads one stretch of the table.
    Column("run_id", String(16), primary_key=True),
    Column("profile", String(64), primary_key=True),
    Column("metric", String(64), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("value", Float),
    _sample_key("result"),
    sqlite_with_rowid=False,
)
VERDICT = Table(
    "verdict",
    METADATA,
    # A digest of the next three, and of what besides them decides a verdict.
    Column("key", _KEY, primary_key=True),
    Column("sample_digest", _KEY, nullable=False),
    Column("text_digest", _KEY, nullable=False),
    *_texts("image", "sandbox", "verdict", "reason"),
    Column("tests_run", Integer, nullable=False),
    Column("output", Text, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("peak_bytes", BigInteger, nullable=False),
    Column("flags", Text, nullable=False, server_default="[]"),
    # What its tests said before, where they were run once more at once; else empty.
    Column("earlier", Text, nullable=False, server_default=""),
)
JUDGED = Table(
    "judged",
    METADATA,
    Column("run_id", String(16), primary_key=True),
    Column("sample_id", String(500), primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("verdict_key", ForeignKey("verdict.key"), nullable=False),
    ForeignKeyConstraint(
        ["run_id", "sample_id", "idx"], ["completion.run_id", "completion.sample_id", "completion.idx"]
    ),
)
REJUDGED = Table(
    "rejudged",
    METADATA,
    # The verdict that the completions are linked to, which stays; `counted` tells which one counts.
    Column("key", ForeignKey("verdict.key"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("verdict_key", ForeignKey("verdict.key"), nullable=False),
    # Whether it took the place of what counted before.
    Column("counts", Boolean, nullable=False),
)
ATTEMPT = Table(
    "attempt",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("run_id", ForeignKey("run.id"), nullable=False),
    Column("started", Float, nullable=False),
    Column("isolation", Text, nullable=False),
    # Whether its process holds a claim on it for as long as it lives; 0 also in rows from before that.
    Column("claimed", Integer, nullable=False, server_default="0"),
    # How much was done at once; null where nobody noted it.
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
SUMMARISED = Table(
    "summarised",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    Column("generation_id", ForeignKey("generation.id"), primary_key=True),
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
    # A set is marked when it is made, before any run has put its samples in here.
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

LABELLED = Table(
    "labelled",
    METADATA,
    Column("run_id", ForeignKey("run.id"), primary_key=True),
    # Of each kind the last one counts.
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(8), nullable=False),
    Column("text", Text, nullable=False),
)


def revision_of(connection: Connection) -> str | None:
    """Return the last migration that a database had; None if it had none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return version


def upgrade(connection: Connection, *, where: str, to: str = "head") -> None:
    """Run the migrations that are missing, in the connection's transaction.

    Args:
        connection: a connection in a transaction that holds the write lock.
        where: the database, for messages.
        to: the revision to stop at; for tests.

    Raises:
        InputFault: if a newer version made the database, or it is another program's.
    """
    current = revision_of(connection)
    if current == HEAD:
        return
    from alembic import command  # noqa: PLC0415
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    config = migrations(connection)
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in revisions:
        raise InputFault(
            f"was made by a newer ctxbench (schema {current}; this one knows up to {HEAD})",
            where=where,
            cure="upgrade ctxbench, or choose another database with --db",
        )
    if current is None:
        _check_blank(connection, where)
    command.upgrade(config, to)


def migrations(connection: Connection) -> Config:
    """Return what Alembic runs the migrations with."""
    from alembic.config import Config  # noqa: PLC0415 - slow to import, and seldom needed: most databases are up to date

    config = Config()
    # configparser reads % in a value.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _check_blank(connection: Connection, where: str) -> None:
    """Refuse a database that our tables cannot be made in."""
    tables = set(inspect(connection).get_table_names())
    if connection.dialect.name == "sqlite":
        if tables:
            raise InputFault(
                "is a database of another program", where=where, cure="choose another file with --db sqlite:///FILE"
            )
        return
    if clashing := sorted(tables & set(METADATA.tables)):
        raise InputFault(
            f"is a database of another program, which has a table {clashing[0]!r} too",
            where=where,
            cure="choose another database with --db",
        )
    if connection.dialect.name == "postgresql":
        encoding = connection.scalar(text("SHOW server_encoding"))
        if encoding != "UTF8":
            raise InputFault(
                f"its encoding is {encoding}, which cannot hold every text",
                where=where,
                cure="make another with `createdb --encoding=UTF8 --template=template0 NAME`",
            )

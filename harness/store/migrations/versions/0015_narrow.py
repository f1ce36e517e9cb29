"""Numbers for runs and samples, and the narrow tables, still empty: `migrations.moving` fills them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TABLES = (
    *("planned_fact", "pack", "prompt_fact", "source", "generation_fact", "coder", "bits_fact", "result_fact"),
    *("call_fact", "block_fact", "block_gain_fact", "completion_fact", "measure", "score_fact", "judged_fact"),
    *("summarised_fact", "engine_use_fact"),
)


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    for table in ("run", "sample"):
        op.add_column(table, sa.Column("number", sa.Integer()))
        _number(table, dialect)
        # SQLite adds no constraint to a table that is there; a key may refer to what an index keeps unique.
        op.create_index(f"{table}_number_key", table, ["number"], unique=True)
    op.create_index("sample_by_id", "sample", ["id"])
    _names()
    _shared()
    _of_samples()
    for table in _TABLES:
        if dialect == "sqlite":
            for change in ("UPDATE", "DELETE"):
                _refuse_in_file(table, change)
        if dialect == "postgresql":
            op.execute(
                f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
            )


def _refuse_in_file(table: str, change: str) -> None:
    op.execute(
        f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
    )


def _number(table: str, dialect: str) -> None:
    """Number the rows that are there: the only time that one is changed."""
    if dialect == "sqlite":
        op.execute(f"DROP TRIGGER {table}_no_update")
        op.execute(f"UPDATE {table} SET number = rowid")
        _refuse_in_file(table, "UPDATE")
        return
    key = {"run": "id", "sample": "set_digest, id"}[table]
    same = " AND ".join(f"o.{name} = {table}.{name}" for name in key.split(", "))
    if dialect == "postgresql":
        op.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_change")
    op.execute(
        f"UPDATE {table} SET number = o.number FROM "
        f"(SELECT {key}, row_number() OVER (ORDER BY {key}) AS number FROM {table}) o WHERE {same}"
    )
    if dialect == "postgresql":
        op.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_no_change")


def _names() -> None:
    """Make the tables that number names."""
    op.create_table(
        "source",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("generator", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("sampling", sa.Text(), nullable=False),
    )
    op.create_table(
        "coder",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("coder", sa.String(500), nullable=False),
        sa.Column("language", sa.String(32), nullable=False),
        sa.UniqueConstraint("coder", "language"),
    )
    op.create_table(
        "measure",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("profile", sa.String(64), nullable=False),
        sa.Column("metric", sa.String(64), nullable=False),
        sa.UniqueConstraint("profile", "metric"),
    )


def _shared() -> None:
    """Make the caches by content, and what refers to them alone."""
    op.create_table(
        "pack",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )
    op.create_table(
        "prompt_fact",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("pack", sa.Integer(), sa.ForeignKey("pack.number"), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
    )
    op.create_table(
        "generation_fact",
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("source", sa.Integer(), sa.ForeignKey("source.number"), nullable=False),
        sa.Column("prompt", sa.Integer(), sa.ForeignKey("prompt_fact.number"), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("finish", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("cached", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("price", sa.Float()),
    )
    op.create_table(
        "bits_fact",
        _key("prompt", "prompt_fact.number"),
        _key("coder", "coder.number"),
        sa.Column("target_digest", sa.String(64), primary_key=True),
        sa.Column("bits", sa.Float(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "summarised_fact",
        _key("run", "run.number"),
        _key("generation", "generation_fact.number"),
    )


def _key(name: str, parent: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), sa.ForeignKey(parent), primary_key=True, autoincrement=False)


def _at(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.SmallInteger(), primary_key=True, autoincrement=False)


def _of_samples() -> None:
    """Make the tables of a run's samples."""
    op.create_table(
        "planned_fact",
        sa.Column("key", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("run", sa.Integer(), sa.ForeignKey("run.number"), nullable=False),
        sa.Column("sample", sa.Integer(), sa.ForeignKey("sample.number"), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.UniqueConstraint("run", "sample"),
    )
    op.create_table(
        "result_fact",
        _key("key", "planned_fact.key"),
        sa.Column("prompt", sa.Integer(), sa.ForeignKey("prompt_fact.number"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("strategy_seconds", sa.Float(), nullable=False),
        sa.Column("generator_seconds", sa.Float(), nullable=False),
    )
    op.create_table(
        "call_fact",
        _key("key", "result_fact.key"),
        _at("ordinal"),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), sa.ForeignKey("generation_fact.number"), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "block_fact",
        _key("key", "result_fact.key"),
        _at("ordinal"),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("places", sa.Text(), nullable=False),
        sa.Column("score", sa.Float()),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("char_start", sa.Integer()),
        sa.Column("char_end", sa.Integer()),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "engine_use_fact",
        _key("key", "result_fact.key"),
        sa.Column("engine", sa.String(500), primary_key=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("index_seconds", sa.Float(), nullable=False),
        sa.Column("query_seconds", sa.Float(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("cut", sa.Integer(), nullable=False),
        sa.Column("index_bytes", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "block_gain_fact",
        sa.Column("key", sa.Integer(), primary_key=True, autoincrement=False),
        _at("ordinal"),
        sa.Column("coder", sa.String(500), primary_key=True),
        sa.Column("gain", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["key", "ordinal"], ["block_fact.key", "block_fact.ordinal"]),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "completion_fact",
        _key("key", "result_fact.key"),
        _at("idx"),
        sa.Column("generation", sa.Integer(), sa.ForeignKey("generation_fact.number"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "judged_fact",
        sa.Column("key", sa.Integer(), primary_key=True, autoincrement=False),
        _at("idx"),
        sa.Column("verdict_key", sa.String(64), sa.ForeignKey("verdict.key"), nullable=False),
        sa.ForeignKeyConstraint(["key", "idx"], ["completion_fact.key", "completion_fact.idx"]),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "score_fact",
        sa.Column("run", sa.Integer(), primary_key=True, autoincrement=False),
        _at("measure"),
        sa.Column("key", sa.Integer(), primary_key=True, autoincrement=False),
        _at("idx"),
        sa.Column("value", sa.Float()),
        sqlite_with_rowid=False,
    )

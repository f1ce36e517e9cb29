"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "prompt",
    "run",
    "sample",
    "attempt",
    "bits",
    "generation",
    "planned",
    "fault",
    "outcome",
    "result",
    "block",
    "call",
    "completion",
    "score",
)


def upgrade() -> None:
    """Make the tables, and forbid changes of their rows where the engine lets us."""
    op.create_table(
        "prompt",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("text", sa.Text(), nullable=False),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("samples", sa.Text(), nullable=False),
        sa.Column("samples_digest", sa.String(64), nullable=False),
        sa.Column("sample_limit", sa.Integer()),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("strategy_version", sa.Text(), nullable=False),
        sa.Column("generator", sa.Text(), nullable=False),
        sa.Column("generator_version", sa.Text(), nullable=False),
        sa.Column("coder", sa.Text(), nullable=False),
        sa.Column("sampling", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("tokenizer", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
    )
    op.create_table(
        "sample",
        sa.Column("set_digest", sa.String(64), primary_key=True),
        sa.Column("id", sa.String(500), primary_key=True),
        sa.Column("benchmark", sa.Text(), nullable=False),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subkind", sa.Text(), nullable=False),
        sa.Column("repo", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("col", sa.Integer(), nullable=False),
    )
    op.create_table(
        "attempt",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), nullable=False),
        sa.Column("started", sa.Float(), nullable=False),
        sa.Column("isolation", sa.Text(), nullable=False),
    )
    op.create_table(
        "bits",
        sa.Column("coder", sa.String(500), primary_key=True),
        sa.Column("language", sa.String(32), primary_key=True),
        sa.Column("prompt_digest", sa.String(64), sa.ForeignKey("prompt.digest"), primary_key=True),
        sa.Column("target_digest", sa.String(64), primary_key=True),
        sa.Column("bits", sa.Float(), nullable=False),
    )
    op.create_table(
        "generation",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("generator", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("prompt_digest", sa.String(64), sa.ForeignKey("prompt.digest"), nullable=False),
        sa.Column("sampling", sa.Text(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("finish", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), nullable=False),
        sa.Column("tokens_out", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
    )
    op.create_table(
        "planned",
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("set_digest", sa.String(64), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["set_digest", "sample_id"], ["sample.set_digest", "sample.id"]),
    )
    op.create_table(
        "fault",
        sa.Column("attempt_id", sa.Integer(), sa.ForeignKey("attempt.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("sample_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )
    op.create_table(
        "outcome",
        sa.Column("attempt_id", sa.Integer(), sa.ForeignKey("attempt.id"), primary_key=True),
        sa.Column("ended", sa.Float(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("finished", sa.Integer(), nullable=False),
        sa.Column("missing", sa.Integer(), nullable=False),
    )
    op.create_table(
        "result",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("prompt_digest", sa.String(64), sa.ForeignKey("prompt.digest"), nullable=False),
        sa.Column("context_tokens", sa.Integer(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("strategy_seconds", sa.Float(), nullable=False),
        sa.Column("generator_seconds", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["planned.run_id", "planned.sample_id"]),
    )
    op.create_table(
        "block",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("places", sa.Text(), nullable=False),
        sa.Column("score", sa.Float()),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("char_start", sa.Integer()),
        sa.Column("char_end", sa.Integer()),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["result.run_id", "result.sample_id"]),
    )
    op.create_table(
        "call",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("generation_id", sa.String(64), sa.ForeignKey("generation.id"), nullable=False),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["result.run_id", "result.sample_id"]),
    )
    op.create_table(
        "completion",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("idx", sa.Integer(), primary_key=True),
        sa.Column("generation_id", sa.String(64), sa.ForeignKey("generation.id"), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["result.run_id", "result.sample_id"]),
    )
    op.create_table(
        "score",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("profile", sa.String(64), primary_key=True),
        sa.Column("metric", sa.String(64), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("idx", sa.Integer(), primary_key=True),
        sa.Column("value", sa.Float()),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["result.run_id", "result.sample_id"]),
        sqlite_with_rowid=False,
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for table in _TABLES:
            for change in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
                )
    if dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION ctxbench_no_change() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'rows are appended, never changed'; END $$"
        )
        for table in _TABLES:
            op.execute(
                f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
            )

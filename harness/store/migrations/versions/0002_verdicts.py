"""Verdicts of completions of functions, and which completion of which run has which."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TABLES = ("verdict", "judged")


def upgrade() -> None:
    op.create_table(
        "verdict",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("sample_digest", sa.String(64), nullable=False),
        sa.Column("text_digest", sa.String(64), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
        sa.Column("sandbox", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("tests_run", sa.Integer(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("peak_bytes", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "judged",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("idx", sa.Integer(), primary_key=True),
        sa.Column("verdict_key", sa.String(64), sa.ForeignKey("verdict.key"), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "sample_id", "idx"], ["completion.run_id", "completion.sample_id", "completion.idx"]
        ),
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
        for table in _TABLES:
            op.execute(
                f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
            )

"""What context engines did for a sample."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "engine_use",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("engine", sa.String(500), primary_key=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("index_seconds", sa.Float(), nullable=False),
        sa.Column("query_seconds", sa.Float(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("places", sa.Integer(), nullable=False),
        sa.Column("cut", sa.Integer(), nullable=False),
        sa.Column("index_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run_id", "sample_id"], ["result.run_id", "result.sample_id"]),
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER engine_use_no_{change.lower()} BEFORE {change} ON engine_use "
                f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
            )
    if dialect == "postgresql":
        op.execute(
            "CREATE TRIGGER engine_use_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON engine_use "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )

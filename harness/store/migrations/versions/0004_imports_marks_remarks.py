"""Where imported runs come from, samples that no score is to rest on, and what a run's reader must know."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("imported", "mark", "remark")


def upgrade() -> None:
    op.create_table(
        "imported",
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
    op.create_table(
        "mark",
        sa.Column("set_digest", sa.String(64), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("mark", sa.String(32), primary_key=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("image", sa.Text(), nullable=False),
    )
    op.create_table(
        "remark",
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("text", sa.Text(), nullable=False),
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

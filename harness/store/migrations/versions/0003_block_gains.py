"""What each block of a stored prompt is worth, priced after the run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_TABLES = ("block_gain",)


def upgrade() -> None:
    op.create_table(
        "block_gain",
        sa.Column("run_id", sa.String(16), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True),
        sa.Column("coder", sa.String(500), primary_key=True),
        sa.Column("gain", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "sample_id", "ordinal"], ["block.run_id", "block.sample_id", "block.ordinal"]
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

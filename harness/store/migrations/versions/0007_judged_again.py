"""Verdicts on completions that were judged again, and what was said before of those judged twice at once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLES = ("rejudged",)


def upgrade() -> None:
    # Added to rows that are there: they were judged once.
    op.add_column("verdict", sa.Column("earlier", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "rejudged",
        sa.Column("key", sa.String(64), sa.ForeignKey("verdict.key"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("verdict_key", sa.String(64), sa.ForeignKey("verdict.key"), nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
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

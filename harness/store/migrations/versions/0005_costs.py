"""What answers cost, and how long it took to make what repositories are searched by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TABLES = ("construction",)


def upgrade() -> None:
    # Added to rows that are there: which of their tokens the service had at hand was not noted, nor a price.
    op.add_column("generation", sa.Column("cached", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("generation", sa.Column("price", sa.Float()))
    op.create_table(
        "construction",
        sa.Column("attempt_id", sa.Integer(), sa.ForeignKey("attempt.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("repo", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
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

"""What references cost a generator beside their renamed twins, and the cutoffs that generators' specs give."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "twin",
        sa.Column("set_digest", sa.String(64), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("coder", sa.String(500), primary_key=True),
        sa.Column("reference", sa.Float()),
        sa.Column("twin", sa.Float()),
    )
    op.create_table(
        "cutoff",
        sa.Column("generator", sa.Text(), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("day", sa.String(10), nullable=False),
    )
    dialect = op.get_bind().dialect.name
    for table in ("twin", "cutoff"):
        if dialect == "sqlite":
            for change in ("UPDATE", "DELETE"):
                op.execute(
                    f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
                )
        if dialect == "postgresql":
            op.execute(
                f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
            )

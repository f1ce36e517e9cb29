"""The days of samples' code, and of a run the day after which its samples were chosen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "dated",
        sa.Column("set_digest", sa.String(64), primary_key=True),
        sa.Column("sample_id", sa.String(500), primary_key=True),
        sa.Column("day", sa.String(10), nullable=False),
    )
    # Added to rows that are there: those runs took their samples whatever their days.
    op.add_column("run", sa.Column("samples_after", sa.String(10)))
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER dated_no_{change.lower()} BEFORE {change} ON dated "
                f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
            )
    if dialect == "postgresql":
        op.execute(
            "CREATE TRIGGER dated_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON dated "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )

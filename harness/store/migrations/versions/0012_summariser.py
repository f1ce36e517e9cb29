"""The summariser of a run, and the answers that summarised APIs for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Rows that are there stay as they were: their own generators wrote the summaries.
    op.add_column("run", sa.Column("summariser", sa.Text(), nullable=False, server_default=""))
    op.add_column("run", sa.Column("summariser_version", sa.Text(), nullable=False, server_default=""))
    op.add_column("run", sa.Column("summarises_tests", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "summarised",
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("generation_id", sa.String(64), sa.ForeignKey("generation.id"), primary_key=True),
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER summarised_no_{change.lower()} BEFORE {change} ON summarised "
                f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
            )
    if dialect == "postgresql":
        op.execute(
            "CREATE TRIGGER summarised_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON summarised "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )

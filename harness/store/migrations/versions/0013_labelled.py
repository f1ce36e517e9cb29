"""What people call a run, say of it, and whether it is to be shown."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "labelled",
        sa.Column("run_id", sa.String(16), sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("ordinal", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER labelled_no_{change.lower()} BEFORE {change} ON labelled "
                f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
            )
    if dialect == "postgresql":
        op.execute(
            "CREATE TRIGGER labelled_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON labelled "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )

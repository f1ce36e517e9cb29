"""What strategies looked at."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_COUNTS = ("opened", "searches", "characters", "explored_files")
_SHARES = ("explored_recall", "explored_precision", "shown_recall", "shown_precision")


def upgrade() -> None:
    op.create_table(
        "access_fact",
        sa.Column("key", sa.Integer(), sa.ForeignKey("result_fact.key"), primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in _COUNTS),
        *(sa.Column(name, sa.Float()) for name in _SHARES),
        sa.Column("places", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER access_fact_no_{change.lower()} BEFORE {change} ON access_fact "
                f"BEGIN SELECT RAISE(ABORT, 'rows are appended, never changed'); END"
            )
    if dialect == "postgresql":
        op.execute(
            "CREATE TRIGGER access_fact_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON access_fact "
            "FOR EACH STATEMENT EXECUTE FUNCTION ctxbench_no_change()"
        )
    columns = ", ".join(f"f.{name}" for name in (*_COUNTS, *_SHARES, "places"))
    op.execute(
        f"CREATE VIEW access AS SELECT f.key, r.id AS run_id, s.id AS sample_id, {columns} FROM access_fact f "
        "JOIN planned_fact p ON p.key = f.key JOIN run r ON r.number = p.run JOIN sample s ON s.number = p.sample"
    )

"""Of a run, the two strategies between which a decision ends it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Added to rows that are there: those runs take all their samples.
    op.add_column("run", sa.Column("until_decided", sa.Text()))

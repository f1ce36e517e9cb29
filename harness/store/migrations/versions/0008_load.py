"""Of an attempt, whether its process holds a claim on it, and how much it did at once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Added to rows that are there: nobody claimed those attempts, and how much they did at once was not noted.
    op.add_column("attempt", sa.Column("claimed", sa.Integer(), nullable=False, server_default="0"))
    for name in ("workers", "requests", "cores"):
        op.add_column("attempt", sa.Column(name, sa.Integer()))

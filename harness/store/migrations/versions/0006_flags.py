"""What completions reached for while they were judged, beside their verdicts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Added to rows that are there: nobody looked at what their texts reach for.
    op.add_column("verdict", sa.Column("flags", sa.Text(), nullable=False, server_default="[]"))

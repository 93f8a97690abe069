"""What models were asked: requests and tokens of each run of ``crosslens judge``."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from crosslens.web.judging.database.migrations import column, number, reference

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "model_requests",
        number(),
        reference("project", index=True),
        reference("account"),
        *(column(name, sa.BigInteger) for name in ("requests", "sent", "received", "uncounted")),
        column("cost", sa.Double, nullable=True),
        column("created", sa.DateTime),
    )

"""The tables as they are now. The first change after a release writes them out here and adds a revision of its own."""

from __future__ import annotations

from alembic import op

from crosslens.web.judging.database.tables import JudgingTable

revision = "tables_1"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    JudgingTable.metadata.create_all(op.get_bind(), checkfirst=False)
